// SPDX-License-Identifier: Apache-2.0
// Attester id -> an immutable record with its key parsed, bounded, in front of the store. Any thread; sharded, and a
// hit holds its shard's lock only for one hash lookup. A hit may be stale: an entry says which generation of the host
// it was read under, and the caller compares that with the fence's, which wins:
//   entry->host_generation < fence generation  ->  Reload(attester), then judge what came back
//   entry->row.generation < entry->host_generation  ->  a retired key
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

struct AikEntry {
  AikRow row;
  PublicKey key;                      // of row.public_area
  std::uint64_t host_generation = 0;  // of the host when the entry was read
  std::string host_state;             // "active" | "replaced"
};
// Owners: the cache and each request that is using the entry.
using AikEntryPtr = std::shared_ptr<const AikEntry>;

class AikCache {
 public:
  // `store` outlives the cache. `capacity`: entries in all, at least one a shard.
  AikCache(Store& store, std::size_t capacity);

  // From the cache, else from the store. Null: no such AIK (not remembered, so strangers evict nothing).
  Result<AikEntryPtr> Find(const Digest& attester);
  // Past the cache: from the store, replacing what is cached.
  Result<AikEntryPtr> Reload(const Digest& attester);
  // After an enrollment, a replacement or a forgotten host: entries of `host` go, and reads already on their way to
  // the store are not kept. Walks the whole cache.
  void InvalidateHost(const Digest& host_id);

  std::size_t size() const;
  struct Counters { std::uint64_t hits = 0, misses = 0, evictions = 0; };
  Counters counters() const;

 private:
  static constexpr std::size_t kShards = 64;
  struct DigestHash {
    std::size_t operator()(const Digest& digest) const noexcept { return static_cast<std::size_t>(Reader(digest).U64Be()); }
  };
  struct Slot { AikEntryPtr entry; bool used = false; };  // used: looked up since the hand last passed
  struct alignas(64) Shard {
    mutable std::mutex mutex;
    std::unordered_map<Digest, std::size_t, DigestHash> index;  // into slots
    std::vector<Slot> slots;
    std::size_t hand = 0;
    std::uint64_t version = 0;  // raised by every invalidation: an older read is not kept
    Counters counters;
  };
  Shard& ShardOf(const Digest& attester) noexcept { return shards_[attester[31] % kShards]; }
  Result<AikEntryPtr> Read(const Digest& attester);
  void Keep(Shard& shard, const AikEntryPtr& entry);
  std::size_t FreeSlot(Shard& shard);

  Store& store_;
  const std::size_t per_shard_;
  std::array<Shard, kShards> shards_;
};

}  // namespace assay::store
