// SPDX-License-Identifier: Apache-2.0
// Stands alone in this file: a test build links another object in its place and must then fail at the step of the
// demo that needs it.
#include "verifier/audit/check_mac.h"

namespace assay::audit {

MacCheck CheckMac(const MacInput& input, const Digest& stated) noexcept {
  return EqualConstantTime(ComputeMac(input), stated) ? MacCheck::kRight : MacCheck::kWrong;
}

}  // namespace assay::audit
