// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "verifier/server/proxy_protocol.h"

// An accepted header names an address, or nobody.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const assay::Bytes input(data, size);
  const assay::Bytes fixed = input.first(std::min(size, assay::server::kProxyFixed));
  const auto body_size = assay::server::ProxyBodySize(fixed);
  const auto source = assay::server::ProxySource(fixed, input.subspan(fixed.size()));
  if (!source.ok()) return 0;
  if (!body_size.ok() || *body_size != size - fixed.size()) std::abort();
  std::array<std::uint8_t, 16> address{};
  const bool v4 = ::inet_pton(AF_INET, source->c_str(), address.data()) == 1;
  const bool v6 = ::inet_pton(AF_INET6, source->c_str(), address.data()) == 1;
  if (!source->empty() && !v4 && !v6) std::abort();
  return 0;
}
