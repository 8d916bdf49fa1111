// SPDX-License-Identifier: Apache-2.0
// TPMT_SIGNATURE: what decodes encodes to the same bytes, and its raw form has the size that a verification takes.
#include <cstdlib>

#include "sdk/core/tpm.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const assay::Bytes input(data, size);
  const auto signature = assay::tpm::DecodeSignature(input);
  if (!signature.ok()) return 0;
  const bool ecdsa = signature->scheme == assay::tpm::Alg::kEcdsa;
  assay::Writer out;
  out.U16Be(static_cast<std::uint16_t>(signature->scheme));
  out.U16Be(static_cast<std::uint16_t>(signature->hash));
  if (!ecdsa) out.PutU16Sized(signature->rsa);
  if (ecdsa) out.PutU16Sized(signature->ecdsa_r);
  if (ecdsa) out.PutU16Sized(signature->ecdsa_s);
  if (!assay::Equal(out.buffer(), input)) std::abort();
  const auto raw = assay::tpm::ToRaw(*signature);
  if (raw.ok() && raw->size != (ecdsa ? 64 : signature->rsa.size())) std::abort();
  return 0;
}
