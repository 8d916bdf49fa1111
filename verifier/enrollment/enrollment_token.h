// SPDX-License-Identifier: Apache-2.0
// One-time enrollment tokens: drawn for an operator, shown once, kept as a hash only.
#pragma once

#include <string>
#include <string_view>

#include "sdk/core/bytes.h"

namespace assay::enrollment {

std::string DrawEnrollmentToken();                   // "aet_" and 32 random bytes in base64url
Digest EnrollmentTokenHash(std::string_view token);  // SHA-256("assay/enrollment-token/1" | token)

}  // namespace assay::enrollment
