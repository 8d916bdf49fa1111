// SPDX-License-Identifier: Apache-2.0
// TSS2_RC to words (TPM 2.0 Part 2, section 6.6).
#include <tss2/tss2_rc.h>

#include "sdk/tpm/esys_device.h"

namespace assay::tpm {
namespace {

// Format-one codes carry a parameter, handle or session number in bits 8 to 11: not part of what went wrong.
TSS2_RC Plain(TSS2_RC rc) noexcept { return (rc & TPM2_RC_FMT1) != 0 ? rc & ~static_cast<TSS2_RC>(0xF00 | 0x40) : rc; }

}  // namespace

Error TpmError(const char* what, TSS2_RC rc) {
  std::string detail = std::string(what) + ": ";
  Code code = Code::kTpm;
  if ((rc & TSS2_RC_LAYER_MASK) == TSS2_TPM_RC_LAYER) {
    switch (Plain(rc)) {
      case TPM2_RC_LOCKOUT:
        detail += "the TPM is in dictionary attack lockout; wait for it to recover or run tpm2_dictionarylockout --clear-lockout with the lockout authorization";
        break;
      case TPM2_RC_AUTH_FAIL:
      case TPM2_RC_BAD_AUTH:
        detail += "the TPM refused the authorization value; owner and endorsement hierarchies must have an empty password";
        break;
      case TPM2_RC_RETRY:
      case TPM2_RC_YIELDED:
      case TPM2_RC_TESTING:
        detail += "the TPM stayed busy; try again later";
        code = Code::kBusy;
        break;
      case TPM2_RC_HANDLE:
      case TPM2_RC_REFERENCE_H0:
        detail += "there is no such object in the TPM";
        code = Code::kNotFound;
        break;
      case TPM2_RC_INITIALIZE: detail += "the TPM was not started (TPM2_Startup); boot with firmware that starts it"; break;
      case TPM2_RC_OBJECT_MEMORY: detail += "the TPM has no room for another object; flush what others left with tpm2_flushcontext -t"; break;
      case TPM2_RC_NV_SPACE: detail += "the TPM has no room for another persistent object; remove one with tpm2_evictcontrol"; break;
      default: detail += Tss2_RC_Decode(rc); break;
    }
  } else if ((rc & TSS2_RC_LAYER_MASK) == TSS2_TCTI_RC_LAYER || (rc & 0xFFFF) == TSS2_BASE_RC_IO_ERROR) {
    detail += std::string("the TPM cannot be reached: ") + Tss2_RC_Decode(rc);
    code = Code::kUnavailable;
  } else {
    detail += Tss2_RC_Decode(rc);
  }
  return MakeError(code, std::move(detail), rc);
}

}  // namespace assay::tpm
