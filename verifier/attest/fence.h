// SPDX-License-Identifier: Apache-2.0
// The fence: per host, compare-and-set of (AIK generation, resetCount, restartCount, clock). Of racing copies of one
// quote exactly one passes. Only a valid signature reaches it, so strangers burn nothing. In memory, its durable
// truth is the audit trail. Counters are the TPM's: they outlive rotation and re-enrollment of the host.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sdk/core/bytes.h"
#include "sdk/core/tpm.h"
#include "verifier/attest/clock_rule.h"
#include "verifier/attest/freshness.h"

namespace assay::attest {

// The runtime log of this boot as far as the verifier knows it.
struct RuntimeKnown {
  std::uint32_t reset_count = 0;
  std::uint64_t next_index = 0;  // 0: nothing known, the whole log is wanted
  Digest pcr14{};                // after entry next_index - 1
  bool released = false;         // a release entry was seen this boot
  bool resumed = false;          // PCRs were reset under a running agent (hibernation): a later log, a new start
  std::vector<Digest> agents;    // distinct agent digests of identity entries, bounded
};

struct HostState {
  std::uint64_t generation = 0;        // of the AIK that may attest; an older one is retired
  std::optional<tpm::ClockInfo> last;  // of the last quote accepted
  std::optional<Anchor> anchor;
  RuntimeKnown runtime;
  std::uint64_t refusals_since_ms = 0;  // the minute that `refusals` counts
  std::uint32_t refusals = 0;           // recorded ones of this minute
  bool reset_accepted = false;          // an operator allowed the counters to start over, once
};

// How many refusals of one host are recorded within a minute.
inline constexpr std::uint32_t kRecordedRefusals = 60;
enum class RefusalBudget : std::uint8_t { kLeft, kSpent };

enum class FenceOutcome : std::uint8_t { kPassed, kPassedUnsafe, kReplay, kClonedState, kTpmCleared, kRetiredKey };

struct FenceAttempt {
  std::uint64_t generation = 0;
  tpm::ClockInfo clock;
  std::optional<Anchor> new_anchor;  // set when the challenge was young
  RuntimeKnown runtime;              // stored when the attempt passes
};

class Fence {
 public:
  // Reads a copy of the host's state; empty for a host never seen.
  HostState Peek(const Digest& host) const;
  // Compare-and-set. Anything but kPassed and kPassedUnsafe leaves the state as it was.
  FenceOutcome Pass(const Digest& host, const FenceAttempt& attempt);
  // Enrollment or rotation: older generations are retired from here on. Counters stay.
  void SetGeneration(const Digest& host, std::uint64_t generation);
  // Takes one from the host's budget of recorded refusals.
  RefusalBudget CountRefusal(const Digest& host, std::uint64_t now_ms);
  void AcceptReset(const Digest& host, bool accepted);
  // The host's enrollment is gone: generations begin anew, and nothing an operator allowed or an anchor said goes on.
  // Counters stay.
  void ForgetEnrollment(const Digest& host);
  // Start-up, before any traffic: the last accepted clock of the trail. Never moves a host's counters back.
  void Restore(const Digest& host, const tpm::ClockInfo& last);

 private:
  static constexpr std::size_t kShards = 64;
  struct DigestHash {
    std::size_t operator()(const Digest& digest) const noexcept {
      return static_cast<std::size_t>(Reader(digest).U64Be());
    }
  };
  struct Shard {
    mutable std::mutex mutex;
    std::unordered_map<Digest, HostState, DigestHash> hosts;  // as many as hosts are enrolled
  };
  Shard& ShardOf(const Digest& host) noexcept { return shards_[host[31] % kShards]; }
  const Shard& ShardOf(const Digest& host) const noexcept { return shards_[host[31] % kShards]; }
  std::array<Shard, kShards> shards_;
};

}  // namespace assay::attest
