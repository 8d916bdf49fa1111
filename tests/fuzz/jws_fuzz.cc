// SPDX-License-Identifier: Apache-2.0
// Compact JWS against a key that signed nothing of the corpus: nothing may verify, and no input may do harm.
#include <cstdlib>

#include "sdk/core/token.h"

namespace {

// The public key of RFC 7515 appendix A.3.
constexpr char kJwks[] =
    R"({"keys":[{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0","kid":"a"}]})";

const assay::KeySet& Keys() {
  static const assay::KeySet keys = assay::KeySet::ParseJwks(kJwks).value();
  return keys;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  assay::Buffer scratch(size);
  const auto check = assay::VerifyJws(Keys(), assay::AsText({data, size}), assay::kResultTokenType, scratch);
  if (check.fault == assay::JwsFault::kNone) std::abort();
  return 0;
}
