// SPDX-License-Identifier: Apache-2.0
#include "verifier/attest/freshness.h"

namespace assay::attest {

Freshness JudgeFreshness(const FreshnessInput& input) noexcept {
  if (input.challenge_age_ms < kYoungChallengeMs) return Freshness::kYoung;
  if (input.always_ask || !input.anchor) return Freshness::kAskAgain;
  const Anchor& anchor = *input.anchor;
  if (anchor.tpm.reset_count != input.quoted.reset_count || anchor.tpm.restart_count != input.quoted.restart_count)
    return Freshness::kAskAgain;
  if (input.now_ms < anchor.verifier_ms || input.quoted.clock < anchor.tpm.clock) return Freshness::kAskAgain;
  const std::uint64_t verifier_passed = input.now_ms - anchor.verifier_ms;
  const std::uint64_t tpm_passed = input.quoted.clock - anchor.tpm.clock;
  const std::uint64_t lag = verifier_passed > tpm_passed ? verifier_passed - tpm_passed : tpm_passed - verifier_passed;
  return lag <= kMaxLagMs ? Freshness::kAnchored : Freshness::kAskAgain;
}

}  // namespace assay::attest
