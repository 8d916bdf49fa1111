// SPDX-License-Identifier: Apache-2.0
#include "verifier/attest/check_quote.h"

namespace assay::attest {

Mark CheckBinding(Bytes extra_data, const Digest& expected) noexcept {
  return Equal(extra_data, expected) ? Mark::kHolds : Mark::kFails;
}

}  // namespace assay::attest
