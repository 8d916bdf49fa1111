// SPDX-License-Identifier: Apache-2.0
// TPMS_ATTEST: everything decoded is a view of the input, within the limits, and names no PCR above 23.
#include <cstdlib>

#include "sdk/core/tpm.h"

namespace {

void RequireInside(assay::Bytes part, assay::Bytes whole) {
  if (part.empty()) return;
  if (part.data() < whole.data() || part.data() + part.size() > whole.data() + whole.size()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const assay::Bytes input(data, size);
  const auto attest = assay::tpm::DecodeAttest(input);
  if (!attest.ok()) return 0;
  for (const assay::Bytes part : {attest->qualified_signer, attest->extra_data, attest->pcr_digest, attest->object_name,
                                  attest->creation_hash, attest->qualified_name}) {
    RequireInside(part, input);
  }
  if (attest->selections.count > assay::tpm::kMaxSelections) std::abort();
  for (const auto& selection : attest->selections.items)
    if (selection.mask >= 1U << assay::limits::kPcrs) std::abort();
  // The list encodes to what it was decoded from, when it had three bytes a selection.
  const assay::Buffer encoded = assay::tpm::EncodePcrSelections(attest->selections);
  if (encoded.size() != 4 + attest->selections.count * 6) std::abort();
  return 0;
}
