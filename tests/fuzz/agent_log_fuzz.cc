// SPDX-License-Identifier: Apache-2.0
// The agent's log file: what is read without damage must be written as the same bytes.
#include <cstdlib>

#include "agent/events/log_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const assay::Bytes input(data, size);
  const auto content = assay::agent::DecodeLogContent(input);
  if (!content.ok()) return 0;
  if (content->damaged > size) std::abort();
  const assay::Buffer again = assay::agent::EncodeLogContent(*content);
  if (!assay::Equal(again, input.first(size - content->damaged))) std::abort();
  return 0;
}
