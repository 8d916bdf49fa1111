// SPDX-License-Identifier: Apache-2.0
// Is a quote on a challenge that rode on an earlier result recent? Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "sdk/core/tpm.h"

namespace assay::attest {

inline constexpr std::uint64_t kYoungChallengeMs = 5000;  // a challenge this young needs no other proof
inline constexpr std::uint64_t kMaxLagMs = 10000;         // drift and delay that the anchor allows, either way

// The last quote accepted on a young challenge: verifier time beside TPM clock. Never moved by an older challenge,
// so small delays cannot add up.
struct Anchor {
  std::uint64_t verifier_ms = 0;
  tpm::ClockInfo tpm;
};

enum class Freshness : std::uint8_t { kYoung, kAnchored, kAskAgain };

struct FreshnessInput {
  std::uint64_t challenge_age_ms = 0;
  std::uint64_t now_ms = 0;  // verifier time
  tpm::ClockInfo quoted;
  std::optional<Anchor> anchor;
  bool always_ask = false;  // policy: freshness = "asked"
};
Freshness JudgeFreshness(const FreshnessInput& input) noexcept;

}  // namespace assay::attest
