// SPDX-License-Identifier: Apache-2.0
// Attester id -> an immutable record with its key parsed, bounded, in front of the store. Any thread; sharded, and a
// hit holds its shard's lock only for one hash lookup. A hit may be stale: a record says which generation of the host
// it was read under (host.generation), and the fence's wins: Fence::Pass refuses an older aik.generation as retired.
//   record->host.generation < fence generation  ->  Reload(attester) shows the host as it is now
//   record->aik.generation < record->host.generation  ->  a retired key
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "sdk/core/crypto.h"
#include "sdk/core/result.h"
#include "verifier/store/store.h"

namespace assay::store {

struct AikRecord {
  AikRow aik;
  HostRow host;   // as it was when the record was read
  PublicKey key;  // of aik.public_area
  Buffer spki;    // its SubjectPublicKeyInfo, DER
};
// Owners: the cache and each request that is using the record.
using AikRecordPtr = std::shared_ptr<const AikRecord>;

class AikCache {
 public:
  // `store` outlives the cache. `capacity`: records in all, at least one a shard.
  AikCache(Store& store, std::size_t capacity);

  // From the cache, else from the store. kNotFound: no such AIK (not remembered, so strangers evict nothing).
  Result<AikRecordPtr> Find(const Digest& attester);
  // From the cache alone, null when it is not there.
  AikRecordPtr FindCached(const Digest& attester);
  // Past the cache: from the store, replacing what is cached.
  Result<AikRecordPtr> Reload(const Digest& attester);
  // After a change of the AIK or its host. Reads already on their way to the store are not kept.
  void Forget(const Digest& attester);
  // After an enrollment, an operator's change or a forgotten host: every AIK of it. Walks the whole cache.
  void ForgetHost(const Digest& host_id);

  std::size_t size() const;
  struct Counters {
    std::uint64_t hits = 0, misses = 0, evictions = 0;
  };
  Counters counters() const;

 private:
  static constexpr std::size_t kShards = 64;
  struct DigestHash {
    std::size_t operator()(const Digest& digest) const noexcept {
      return static_cast<std::size_t>(Reader(digest).U64Be());
    }
  };
  struct Slot {
    AikRecordPtr record;
    bool used = false;
  };  // used: looked up since the hand last passed
  struct alignas(64) Shard {
    mutable std::mutex mutex;
    std::unordered_map<Digest, std::size_t, DigestHash> index;  // into slots
    std::vector<Slot> slots;
    std::size_t hand = 0;
    std::uint64_t version = 0;  // raised by every invalidation: an older read is not kept
    Counters counters;
  };
  Shard& ShardOf(const Digest& attester) noexcept { return shards_[attester[31] % kShards]; }
  Result<AikRecordPtr> Read(const Digest& attester);
  static void Drop(Shard& shard, const Digest& attester);
  void Keep(Shard& shard, const AikRecordPtr& record);
  std::size_t FreeSlot(Shard& shard);

  Store& store_;
  const std::size_t per_shard_;
  std::array<Shard, kShards> shards_;
};

}  // namespace assay::store
