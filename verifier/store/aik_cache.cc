// SPDX-License-Identifier: Apache-2.0
#include "verifier/store/aik_cache.h"

#include <algorithm>

#include "sdk/core/tpm.h"

namespace assay::store {

AikCache::AikCache(Store& store, std::size_t capacity)
    : store_(store), per_shard_(std::max<std::size_t>(1, capacity / kShards)) {}

AikRecordPtr AikCache::FindCached(const Digest& attester) {
  Shard& shard = ShardOf(attester);
  const std::lock_guard lock(shard.mutex);
  const auto at = shard.index.find(attester);
  if (at == shard.index.end()) {
    ++shard.counters.misses;
    return nullptr;
  }
  Slot& slot = shard.slots[at->second];
  slot.used = true;
  ++shard.counters.hits;
  return slot.record;
}

Result<AikRecordPtr> AikCache::Find(const Digest& attester) {
  if (AikRecordPtr cached = FindCached(attester)) return cached;
  return Reload(attester);
}

Result<AikRecordPtr> AikCache::Reload(const Digest& attester) {
  Shard& shard = ShardOf(attester);
  std::uint64_t version = 0;
  {
    const std::lock_guard lock(shard.mutex);
    version = shard.version;
  }
  Result<AikRecordPtr> record = Read(attester);
  if (!record.ok() && record.error().code != Code::kNotFound) return record;  // could not tell: what is cached stays
  const std::lock_guard lock(shard.mutex);
  if (!record.ok()) Drop(shard, attester);
  else if (version == shard.version) Keep(shard, *record);
  return record;
}

Result<AikRecordPtr> AikCache::Read(const Digest& attester) {
  ASSAY_TRY(std::optional<AikRow> aik, store_.FindAik(attester));
  if (!aik) return MakeError(Code::kNotFound, "no AIK with this id is enrolled");
  // The host after its AIK: generations only rise, so the pair is never older than either read.
  ASSAY_TRY(std::optional<HostRow> host, store_.FindHost(aik->host_id));
  if (!host) return MakeError(Code::kNotFound, "the AIK's host was forgotten");
  ASSAY_TRY(const tpm::PublicArea area, tpm::DecodePublicArea(aik->public_area));
  ASSAY_TRY(PublicKey key, tpm::KeyOf(area));
  Buffer spki = key.Spki();
  return AikRecordPtr(
      std::make_shared<const AikRecord>(AikRecord{*std::move(aik), *std::move(host), std::move(key), std::move(spki)}));
}

void AikCache::Drop(Shard& shard, const Digest& attester) {
  const auto at = shard.index.find(attester);
  if (at == shard.index.end()) return;
  shard.slots[at->second] = {};
  shard.index.erase(at);
}

std::size_t AikCache::FreeSlot(Shard& shard) {
  if (shard.slots.size() < per_shard_) {
    shard.slots.emplace_back();
    return shard.slots.size() - 1;
  }
  while (true) {  // second chance: at most two rounds
    Slot& slot = shard.slots[shard.hand];
    const std::size_t at = shard.hand;
    shard.hand = (shard.hand + 1) % shard.slots.size();
    if (slot.record == nullptr) return at;
    if (!slot.used) {
      shard.index.erase(slot.record->aik.attester);
      ++shard.counters.evictions;
      return at;
    }
    slot.used = false;
  }
}

void AikCache::Keep(Shard& shard, const AikRecordPtr& record) {
  const auto at = shard.index.find(record->aik.attester);
  if (at != shard.index.end()) {
    Slot& slot = shard.slots[at->second];
    // Two reads may race: the later generation stays.
    if (slot.record->host.generation <= record->host.generation) slot.record = record;
    slot.used = true;
    return;
  }
  const std::size_t slot = FreeSlot(shard);
  shard.slots[slot] = {record, false};
  shard.index.emplace(record->aik.attester, slot);
}

void AikCache::Forget(const Digest& attester) {
  Shard& shard = ShardOf(attester);
  const std::lock_guard lock(shard.mutex);
  ++shard.version;
  Drop(shard, attester);
}

void AikCache::ForgetHost(const Digest& host_id) {
  for (Shard& shard : shards_) {
    const std::lock_guard lock(shard.mutex);
    ++shard.version;
    for (Slot& slot : shard.slots) {
      if (slot.record == nullptr || slot.record->aik.host_id != host_id) continue;
      shard.index.erase(slot.record->aik.attester);
      slot = {};
    }
  }
}

std::size_t AikCache::size() const {
  std::size_t total = 0;
  for (const Shard& shard : shards_) {
    const std::lock_guard lock(shard.mutex);
    total += shard.index.size();
  }
  return total;
}

AikCache::Counters AikCache::counters() const {
  Counters total;
  for (const Shard& shard : shards_) {
    const std::lock_guard lock(shard.mutex);
    total.hits += shard.counters.hits;
    total.misses += shard.counters.misses;
    total.evictions += shard.counters.evictions;
  }
  return total;
}

}  // namespace assay::store
