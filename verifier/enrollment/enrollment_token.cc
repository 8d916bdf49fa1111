// SPDX-License-Identifier: Apache-2.0
#include "verifier/enrollment/enrollment_token.h"

#include "sdk/core/crypto.h"

namespace assay::enrollment {

std::string DrawEnrollmentToken() { return "aet_" + ToBase64Url(RandomArray<32>()); }

// A token has 256 bits of its own, so a plain hash keeps it: there is nothing to guess.
Digest EnrollmentTokenHash(std::string_view token) {
  return Sha256({AsBytes("assay/enrollment-token/1"), AsBytes(token)});
}

}  // namespace assay::enrollment
