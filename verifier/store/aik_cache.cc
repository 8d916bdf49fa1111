// SPDX-License-Identifier: Apache-2.0
#include "verifier/store/aik_cache.h"

#include <algorithm>

#include "sdk/core/tpm.h"

namespace assay::store {

AikCache::AikCache(Store& store, std::size_t capacity) : store_(store), per_shard_(std::max<std::size_t>(1, capacity / kShards)) {}

Result<AikEntryPtr> AikCache::Find(const Digest& attester) {
  Shard& shard = ShardOf(attester);
  {
    const std::lock_guard lock(shard.mutex);
    const auto at = shard.index.find(attester);
    if (at != shard.index.end()) {
      Slot& slot = shard.slots[at->second];
      slot.used = true;
      ++shard.counters.hits;
      return slot.entry;
    }
    ++shard.counters.misses;
  }
  return Reload(attester);
}

Result<AikEntryPtr> AikCache::Reload(const Digest& attester) {
  Shard& shard = ShardOf(attester);
  std::uint64_t version = 0;
  {
    const std::lock_guard lock(shard.mutex);
    version = shard.version;
  }
  ASSAY_TRY(AikEntryPtr entry, Read(attester));
  const std::lock_guard lock(shard.mutex);
  if (entry == nullptr) {
    const auto at = shard.index.find(attester);
    if (at != shard.index.end()) {
      shard.slots[at->second] = {};
      shard.index.erase(at);
    }
  } else if (version == shard.version) {
    Keep(shard, entry);
  }
  return entry;
}

Result<AikEntryPtr> AikCache::Read(const Digest& attester) {
  ASSAY_TRY(std::optional<AikRow> row, store_.FindAik(attester));
  if (!row) return AikEntryPtr();
  // The host after its AIK: generations only rise, so the pair is never older than either read.
  ASSAY_TRY(const std::optional<HostRow> host, store_.FindHost(row->host_id));
  if (!host) return AikEntryPtr();  // forgotten between the two reads
  ASSAY_TRY(const tpm::PublicArea area, tpm::DecodePublicArea(row->public_area));
  ASSAY_TRY(PublicKey key, tpm::KeyOf(area));
  return AikEntryPtr(std::make_shared<const AikEntry>(AikEntry{std::move(*row), std::move(key), host->generation, host->state}));
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
    if (slot.entry == nullptr) return at;
    if (!slot.used) {
      shard.index.erase(slot.entry->row.attester);
      ++shard.counters.evictions;
      return at;
    }
    slot.used = false;
  }
}

void AikCache::Keep(Shard& shard, const AikEntryPtr& entry) {
  const auto at = shard.index.find(entry->row.attester);
  if (at != shard.index.end()) {
    Slot& slot = shard.slots[at->second];
    // Two reads may race: the later generation stays.
    if (slot.entry->host_generation <= entry->host_generation) slot.entry = entry;
    slot.used = true;
    return;
  }
  const std::size_t slot = FreeSlot(shard);
  shard.slots[slot] = {entry, false};
  shard.index.emplace(entry->row.attester, slot);
}

void AikCache::InvalidateHost(const Digest& host_id) {
  for (Shard& shard : shards_) {
    const std::lock_guard lock(shard.mutex);
    ++shard.version;
    for (Slot& slot : shard.slots) {
      if (slot.entry == nullptr || slot.entry->row.host_id != host_id) continue;
      shard.index.erase(slot.entry->row.attester);
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
