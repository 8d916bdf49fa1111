// SPDX-License-Identifier: Apache-2.0
// What the TPM's counters say about a quote that follows another of the same host. Pure.
#pragma once

#include <cstdint>

#include "sdk/core/tpm.h"

namespace assay::attest {

enum class ClockJudgement : std::uint8_t {
  kAdvances,
  kAdvancesUnsafe,  // a power cut took back a little clock: accepted, reported as clock_unsafe
  kReplay,          // same boot, not strictly later
  kClonedState,     // counters of an older or a copied TPM state
  kTpmCleared,      // counters as after TPM2_Clear
};

// A power cut loses at most what the clock's NV update interval leaves out (Part 1, 36.3.2): 2^22 ms.
inline constexpr std::uint64_t kMaxClockLossMs = 1ULL << 22;

// Within one boot (same resetCount): restartCount not lower and clock strictly higher, else kReplay.
ClockJudgement JudgeSameBoot(const tpm::ClockInfo& last, const tpm::ClockInfo& now) noexcept;
// Across boots (another resetCount). Stands alone in its file: a test build replaces it to show what it is worth.
ClockJudgement JudgeAcrossBoots(const tpm::ClockInfo& last, const tpm::ClockInfo& now) noexcept;

inline ClockJudgement JudgeClock(const tpm::ClockInfo& last, const tpm::ClockInfo& now) noexcept {
  return now.reset_count == last.reset_count ? JudgeSameBoot(last, now) : JudgeAcrossBoots(last, now);
}

}  // namespace assay::attest
