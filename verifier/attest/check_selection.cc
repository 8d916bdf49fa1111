// SPDX-License-Identifier: Apache-2.0
#include "verifier/attest/check_quote.h"

namespace assay::attest {

Mark CheckSelection(const tpm::PcrSelections& signed_selections, tpm::PcrSelection asked) noexcept {
  return signed_selections.count == 1 && signed_selections.items[0] == asked ? Mark::kHolds : Mark::kFails;
}

}  // namespace assay::attest
