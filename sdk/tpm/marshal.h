// SPDX-License-Identifier: Apache-2.0
// Between our byte buffers and libtss2's structures: TPM2B contents, and whole structures through libtss2-mu.
#pragma once

#include <tss2/tss2_esys.h>
#include <tss2/tss2_mu.h>

#include <string_view>

#include "sdk/core/bytes.h"
#include "sdk/core/handle.h"
#include "sdk/core/result.h"
#include "sdk/tpm/device.h"
#include "sdk/tpm/rc.h"

namespace assay::tpm {

// What ESYS allocates for its caller.
template <typename T>
using EsysPtr = Handle<T, Esys_Free>;

inline constexpr std::size_t kMaxStructure = 4096;  // TPM2_MAX_RESPONSE_SIZE: no structure is larger than an answer

template <auto F, typename T>
Result<Buffer> Marshal(const T& value) {
  Buffer out(kMaxStructure);
  std::size_t size = 0;
  const TSS2_RC rc = F(&value, out.data(), out.size(), &size);
  if (rc != TSS2_RC_SUCCESS) return RcError(rc, "encoding a TPM structure");
  out.resize(size);
  return out;
}

// The whole input, nothing after.
template <auto F, typename T>
Status Unmarshal(Bytes encoded, std::string_view what, T& out) {
  std::size_t used = 0;
  const TSS2_RC rc = F(encoded.data(), encoded.size(), &used, &out);
  if (rc != TSS2_RC_SUCCESS)
    return MakeError(Code::kMalformed, std::string(what) + " does not decode: " + RcText(rc), rc);
  if (used != encoded.size()) return MakeError(Code::kMalformed, std::string(what) + " is followed by stray bytes");
  return Ok();
}

// Sets a TPM2B whose content is `field` and whose length is `size`.
template <std::size_t N>
Status FillTpm2b(Bytes content, UINT16& size, BYTE (&field)[N]) {
  if (content.size() > N)
    return MakeError(Code::kLimit,
                     "a value of " + std::to_string(content.size()) + " bytes is too long for its TPM field");
  CopyBytes(content, MutableBytes(field).first(content.size()));
  size = static_cast<UINT16>(content.size());
  return Ok();
}

inline constexpr TPMT_SIG_SCHEME kSchemeOfKey = {.scheme = TPM2_ALG_NULL, .details = {}};  // the one in its public area

inline Result<AttestedBytes> Attested(const TPM2B_ATTEST& attest, const TPMT_SIGNATURE& signature) {
  ASSAY_TRY(Buffer encoded, (Marshal<Tss2_MU_TPMT_SIGNATURE_Marshal>(signature)));
  return AttestedBytes{ToBuffer(Bytes(attest.attestationData, attest.size)), std::move(encoded)};
}

}  // namespace assay::tpm
