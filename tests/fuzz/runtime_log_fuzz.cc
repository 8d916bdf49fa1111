// SPDX-License-Identifier: Apache-2.0
// Entries of the agent's log: what decodes must encode to the same bytes.
#include <cstdlib>

#include "sdk/core/runtime_log.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const assay::Bytes input(data, size);
  const auto entry = assay::DecodeRuntimeEntry(input);
  if (entry.ok() && !assay::Equal(assay::EncodeRuntimeEntry(*entry), input)) std::abort();
  return 0;
}
