// SPDX-License-Identifier: Apache-2.0
// The local socket's messages: what decodes must encode to the same bytes.
#include <cstdlib>

#include "sdk/core/agent_protocol.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const assay::Bytes input(data, size);
  if (const auto request = assay::local::DecodeRequest(input); request.ok()) {
    if (!assay::Equal(assay::local::EncodeRequest(*request), input)) std::abort();
  }
  if (const auto reply = assay::local::DecodeReply(input); reply.ok()) {
    if (!assay::Equal(assay::local::EncodeReply(*reply), input)) std::abort();
  }
  return 0;
}
