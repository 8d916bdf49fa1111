// SPDX-License-Identifier: Apache-2.0
// Host tokens: what parses must serialize to the same bytes.
#include <cstdlib>

#include "sdk/core/host_token.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const assay::Bytes input(data, size);
  assay::HostToken token;
  if (!assay::TryParseHostToken(input, token)) return 0;
  assay::Buffer out(assay::limits::kHostToken);
  const auto written = assay::SerializeHostToken(token, out);
  if (!written.ok() || !assay::Equal(assay::Bytes(out).first(*written), input)) std::abort();
  (void)assay::HostTokenBodyDigest(token);
  return 0;
}
