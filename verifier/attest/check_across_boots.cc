// SPDX-License-Identifier: Apache-2.0
#include "verifier/attest/clock_rule.h"

namespace assay::attest {

ClockJudgement JudgeAcrossBoots(const tpm::ClockInfo& last, const tpm::ClockInfo& now) noexcept {
  if (now.reset_count < last.reset_count) {
    // TPM2_Clear zeroes the counters and leaves the endorsement seed, so an honest host keeps its AIK.
    return now.reset_count <= 1 && now.safe ? ClockJudgement::kTpmCleared : ClockJudgement::kClonedState;
  }
  if (now.clock >= last.clock) return ClockJudgement::kAdvances;
  if (now.safe || last.clock - now.clock > kMaxClockLossMs) return ClockJudgement::kClonedState;
  return ClockJudgement::kAdvancesUnsafe;
}

}  // namespace assay::attest
