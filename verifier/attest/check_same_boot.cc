// SPDX-License-Identifier: Apache-2.0
#include "verifier/attest/clock_rule.h"

namespace assay::attest {

ClockJudgement JudgeSameBoot(const tpm::ClockInfo& last, const tpm::ClockInfo& now) noexcept {
  if (now.restart_count < last.restart_count || now.clock <= last.clock) return ClockJudgement::kReplay;
  return ClockJudgement::kAdvances;
}

}  // namespace assay::attest
