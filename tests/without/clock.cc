// SPDX-License-Identifier: Apache-2.0
// Test build only: the clock rule across boots judges nothing, so a copied TPM state passes.
#include "verifier/attest/clock_rule.h"

namespace assay::attest {

ClockJudgement JudgeAcrossBoots(const tpm::ClockInfo&, const tpm::ClockInfo&) noexcept {
  return ClockJudgement::kAdvances;
}

}  // namespace assay::attest
