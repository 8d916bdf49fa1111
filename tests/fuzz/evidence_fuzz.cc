// SPDX-License-Identifier: Apache-2.0
// Evidence and its body: what decodes must encode to the same bytes.
#include <cstdlib>

#include "sdk/core/evidence.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const assay::Bytes input(data, size);
  if (const auto evidence = assay::DecodeEvidence(input); evidence.ok()) {
    if (!assay::Equal(assay::EncodeEvidence(*evidence), input)) std::abort();
    if (const auto body = assay::DecodeEvidenceBody(evidence->body);
        body.ok() && !assay::Equal(assay::EncodeEvidenceBody(*body), evidence->body))
      std::abort();
  }
  if (const auto body = assay::DecodeEvidenceBody(input); body.ok()) {
    if (!assay::Equal(assay::EncodeEvidenceBody(*body), input)) std::abort();
  }
  return 0;
}
