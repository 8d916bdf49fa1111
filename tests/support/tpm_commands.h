// SPDX-License-Identifier: Apache-2.0
// A few TPM commands written by hand, for what a test does to a TPM behind the back of the code under test.
#pragma once

#include <cstdint>
#include <vector>

#include "sdk/core/bytes.h"
#include "sdk/core/result.h"
#include "tests/support/swtpm.h"

namespace assay::test {

inline constexpr std::uint32_t kTransientHandles = 0x80000000;
inline constexpr std::uint32_t kLoadedSessions = 0x02000000;
inline constexpr std::uint32_t kSavedSessions = 0x03000000;
inline constexpr std::uint32_t kPersistentHandles = 0x81000000;

// Error.os of a refusal is the TPM's response code.
Status TpmShutdown(const Swtpm& tpm);                                                  // TPM2_Shutdown(CLEAR)
Result<std::vector<std::uint32_t>> TpmHandles(const Swtpm& tpm, std::uint32_t range);  // TPM2_GetCapability(HANDLES)
Status TpmExtend(const Swtpm& tpm, std::uint8_t pcr, const Digest& digest);            // sha256 bank
Status TpmClockSet(const Swtpm& tpm, std::uint64_t clock_ms);  // owner hierarchy, empty password
Status TpmClear(const Swtpm& tpm);                             // lockout hierarchy, empty password

}  // namespace assay::test
