// SPDX-License-Identifier: Apache-2.0
#include "verifier/attest/fence.h"

#include <utility>

namespace assay::attest {

HostState Fence::Peek(const Digest& host) const {
  const Shard& shard = ShardOf(host);
  const std::lock_guard lock(shard.mutex);
  const auto found = shard.hosts.find(host);
  return found == shard.hosts.end() ? HostState{} : found->second;
}

FenceOutcome Fence::Pass(const Digest& host, const FenceAttempt& attempt) {
  Shard& shard = ShardOf(host);
  const std::lock_guard lock(shard.mutex);
  HostState& state = shard.hosts[host];
  // The generation beats any cached AIK record: an attester that was rotated away is refused here.
  if (attempt.generation < state.generation) return FenceOutcome::kRetiredKey;
  FenceOutcome outcome = FenceOutcome::kPassed;
  if (state.last) {
    switch (JudgeClock(*state.last, attempt.clock)) {
      case ClockJudgement::kAdvances: break;
      case ClockJudgement::kAdvancesUnsafe: outcome = FenceOutcome::kPassedUnsafe; break;
      case ClockJudgement::kReplay: return FenceOutcome::kReplay;
      case ClockJudgement::kClonedState:
        if (!state.reset_accepted) return FenceOutcome::kClonedState;
        break;
      case ClockJudgement::kTpmCleared:
        if (!state.reset_accepted) return FenceOutcome::kTpmCleared;
        break;
    }
  }
  state.generation = attempt.generation;
  state.last = attempt.clock;
  state.reset_accepted = false;
  if (attempt.new_anchor) state.anchor = attempt.new_anchor;
  else if (state.anchor && state.anchor->tpm.reset_count != attempt.clock.reset_count) state.anchor.reset();
  state.runtime = attempt.runtime;
  return outcome;
}

void Fence::SetGeneration(const Digest& host, std::uint64_t generation) {
  Shard& shard = ShardOf(host);
  const std::lock_guard lock(shard.mutex);
  HostState& state = shard.hosts[host];
  if (generation > state.generation) {
    state.generation = generation;
    state.runtime.next_index = 0;
  }
}

RefusalBudget Fence::CountRefusal(const Digest& host, std::uint64_t now_ms) {
  constexpr std::uint64_t kMinuteMs = 60'000;
  Shard& shard = ShardOf(host);
  const std::lock_guard lock(shard.mutex);
  HostState& state = shard.hosts[host];
  if (now_ms < state.refusals_since_ms || now_ms - state.refusals_since_ms >= kMinuteMs) {
    state.refusals_since_ms = now_ms;
    state.refusals = 0;
  }
  if (state.refusals >= kRecordedRefusals) return RefusalBudget::kSpent;
  ++state.refusals;
  return RefusalBudget::kLeft;
}

void Fence::AcceptReset(const Digest& host, bool accepted) {
  Shard& shard = ShardOf(host);
  const std::lock_guard lock(shard.mutex);
  shard.hosts[host].reset_accepted = accepted;
}

void Fence::ForgetEnrollment(const Digest& host) {
  Shard& shard = ShardOf(host);
  const std::lock_guard lock(shard.mutex);
  const auto found = shard.hosts.find(host);
  if (found == shard.hosts.end()) return;
  HostState left;
  left.last = found->second.last;
  found->second = std::move(left);
}

void Fence::Restore(const Digest& host, const tpm::ClockInfo& last) {
  Shard& shard = ShardOf(host);
  const std::lock_guard lock(shard.mutex);
  shard.hosts[host].last = last;
}

}  // namespace assay::attest
