// SPDX-License-Identifier: Apache-2.0
// How long to wait after the n-th failure in a row: full jitter, so that many machines that lost one verifier do not
// come back at once.
#pragma once

#include <algorithm>
#include <cstdint>

namespace assay::relay {

class Backoff {
 public:
  Backoff(std::uint64_t first_ms, std::uint64_t cap_ms) : first_ms_(first_ms), cap_ms_(cap_ms) {}

  // The longest wait after one more failure: first, doubled each time, capped.
  std::uint64_t Ceiling() const noexcept {
    std::uint64_t ceiling = first_ms_;
    for (std::uint32_t i = 1; i < failures_ && ceiling < cap_ms_; ++i) ceiling *= 2;
    return std::min(ceiling, cap_ms_);
  }
  // random: uniform. at_least_ms: what the verifier asked for (Retry-After), itself capped.
  std::uint64_t Next(std::uint64_t random, std::uint64_t at_least_ms) noexcept {
    ++failures_;
    const std::uint64_t wait = random % (Ceiling() + 1);
    return std::max(wait, std::min(at_least_ms, cap_ms_));
  }
  void Reset() noexcept { failures_ = 0; }
  std::uint32_t failures() const noexcept { return failures_; }

 private:
  std::uint64_t first_ms_;
  std::uint64_t cap_ms_;
  std::uint32_t failures_ = 0;
};

}  // namespace assay::relay
