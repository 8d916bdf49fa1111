// SPDX-License-Identifier: Apache-2.0
// Opaque tokens: "asy_" and 32 random bytes in base64url, shown once, kept as a SHA-256.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sdk/core/bytes.h"

namespace assay::token {

inline constexpr char kOpaquePrefix[] = "asy_";
inline constexpr std::size_t kOpaqueBytes = 32;

std::string NewOpaqueToken();
// Nothing for a text that is no token of this form. A lookup by this hash compares nothing secret: whoever can make
// it match knows the token.
std::optional<Digest> OpaqueTokenHash(std::string_view token);

}  // namespace assay::token
