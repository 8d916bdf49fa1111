// SPDX-License-Identifier: Apache-2.0
// The one judgement on which every claim about the trail stands.
#pragma once

#include "verifier/audit/chain.h"

namespace assay::audit {

enum class MacCheck : std::uint8_t { kWrong, kRight };
MacCheck CheckMac(const MacInput& input, const Digest& stated) noexcept;

}  // namespace assay::audit
