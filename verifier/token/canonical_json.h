// SPDX-License-Identifier: Apache-2.0
// Canonical JSON (RFC 8785): members by UTF-16 code units, numbers as ECMAScript writes them, no spaces.
// An integer that a double cannot hold is refused: two calls that differ must never have one hash.
#pragma once

#include <string>
#include <string_view>

#include "sdk/core/json.h"
#include "sdk/core/result.h"

namespace assay::token {

Result<std::string> CanonicalJson(JsonValue value);
Result<std::string> CanonicalJson(std::string_view text, std::size_t limit);

}  // namespace assay::token
