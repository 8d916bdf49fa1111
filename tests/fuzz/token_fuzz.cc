// SPDX-License-Identifier: Apache-2.0
// Claims of a result token and revocation lists: what decodes must decode from its own encoding, to the same.
#include <cstdlib>

#include "sdk/core/token.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = assay::AsText({data, size});
  if (const auto claims = assay::DecodeResultClaims(text); claims.ok()) {
    const std::string again = assay::EncodeResultClaims(*claims);
    const auto second = assay::DecodeResultClaims(again);
    if (again.size() <= assay::limits::kResultToken && (!second.ok() || assay::EncodeResultClaims(*second) != again))
      std::abort();
  }
  if (const auto list = assay::DecodeRevocationList(text); list.ok()) {
    const auto again = assay::DecodeRevocationList(assay::EncodeRevocationList(*list));
    if (!again.ok() || again->token_ids != list->token_ids || again->device_ids != list->device_ids) std::abort();
  }
  return 0;
}
