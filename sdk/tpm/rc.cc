// SPDX-License-Identifier: Apache-2.0
// Words for response codes: the ones with a cause an operator can act on are our own, the rest are libtss2's.
#include "sdk/tpm/rc.h"

#include <tss2/tss2_common.h>
#include <tss2/tss2_rc.h>
#include <tss2/tss2_tpm2_types.h>

#include "sdk/core/bytes.h"

namespace assay::tpm {
namespace {

constexpr std::uint32_t kFormatOne = 0x080;      // bit F: the low six bits are the code
constexpr std::uint32_t kFormatOneCode = 0x0BF;  // without parameter bit and number

struct Known {
  std::uint32_t base;
  Code code;
  const char* words;
};
constexpr Known kKnown[] = {
    {TPM2_RC_HANDLE, Code::kNotFound, "there is nothing at that handle"},
    {TPM2_RC_REFERENCE_H0, Code::kNotFound, "the first handle is not loaded"},
    {TPM2_RC_REFERENCE_H1, Code::kNotFound, "the second handle is not loaded"},
    {TPM2_RC_NV_UNINITIALIZED, Code::kNotFound, "the NV index was defined but never written"},
    {TPM2_RC_LOCKOUT, Code::kTpm, "the TPM is in dictionary-attack lockout after failed authorizations"},
    {TPM2_RC_AUTH_FAIL, Code::kTpm, "the authorization value is wrong, and the try was counted"},
    {TPM2_RC_BAD_AUTH, Code::kTpm,
     "the authorization value is wrong: owner and endorsement hierarchies must have an empty password"},
    {TPM2_RC_INTEGRITY, Code::kTpm, "the credential was made for another key or was changed"},
    {TPM2_RC_OBJECT_MEMORY, Code::kTpm, "no room for another object; flush some with `tpm2_flushcontext -t`"},
    {TPM2_RC_SESSION_MEMORY, Code::kTpm, "no room for another session; flush some with `tpm2_flushcontext -l`"},
    {TPM2_RC_SESSION_HANDLES, Code::kTpm, "no session handle is free; flush some with `tpm2_flushcontext -l` and `-s`"},
    {TPM2_RC_NV_SPACE, Code::kTpm, "no room in NV memory; evict a persistent object or index that is not needed"},
    {TPM2_RC_NV_DEFINED, Code::kConflict, "the persistent handle is taken"},
    {TPM2_RC_INITIALIZE, Code::kTpm, "the TPM was not started: it waits for TPM2_Startup"},
    {TPM2_RC_FAILURE, Code::kTpm, "the TPM is in failure mode: it needs a reset, and service if that does not help"},
    {TPM2_RC_HIERARCHY, Code::kTpm, "the hierarchy is disabled"},
    {TPM2_RC_DISABLED, Code::kTpm, "the command is disabled"},
    {TPM2_RC_RETRY, Code::kTpm, "the TPM is not ready for the command"},
    {TPM2_RC_YIELDED, Code::kTpm, "the TPM gave the command up for another"},
    {TPM2_RC_TESTING, Code::kTpm, "the TPM is testing itself"},
};

bool FromTpm(std::uint32_t rc) noexcept {
  const std::uint32_t layer = rc & TSS2_RC_LAYER_MASK;
  return layer == TSS2_TPM_RC_LAYER || layer == TSS2_RESMGR_TPM_RC_LAYER;
}

const Known* Find(std::uint32_t rc) noexcept {
  if (!FromTpm(rc)) return nullptr;
  const std::uint32_t base = BaseCode(rc);
  for (const Known& known : kKnown)
    if (known.base == base) return &known;
  return nullptr;
}

}  // namespace

std::uint32_t BaseCode(std::uint32_t rc) noexcept {
  const std::uint32_t code = rc & ~TSS2_RC_LAYER_MASK;
  return (code & kFormatOne) != 0 ? code & kFormatOneCode : code;
}

std::string RcText(std::uint32_t rc) {
  Writer number;
  number.U32Be(rc);
  const Known* known = Find(rc);
  return "0x" + ToHex(number.buffer()) + " (" + (known != nullptr ? known->words : Tss2_RC_Decode(rc)) + ")";
}

Error RcError(std::uint32_t rc, std::string_view doing) {
  const Known* known = Find(rc);
  const Code code = known != nullptr ? known->code : FromTpm(rc) ? Code::kTpm : Code::kUnavailable;
  return MakeError(
      code,
      std::string(doing) + ": " + (FromTpm(rc) ? "the TPM answered " : "the TPM's library answered ") + RcText(rc), rc);
}

}  // namespace assay::tpm
