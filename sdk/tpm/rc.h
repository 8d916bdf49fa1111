// SPDX-License-Identifier: Apache-2.0
// Response codes of the TPM and of libtss2 in words and as the few causes a caller branches on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sdk/core/result.h"

namespace assay::tpm {

// The code without its parameter, handle or session number (Part 2, section 6.6.2).
std::uint32_t BaseCode(std::uint32_t rc) noexcept;
std::string RcText(std::uint32_t rc);                     // "0x00000921 (the TPM is in lockout ...)"
Error RcError(std::uint32_t rc, std::string_view doing);  // doing: "quoting"

}  // namespace assay::tpm
