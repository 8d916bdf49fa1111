// SPDX-License-Identifier: Apache-2.0
#include "verifier/server/proxy_protocol.h"

#include <arpa/inet.h>

#include <array>

namespace assay::server {
namespace {

constexpr std::array<std::uint8_t, 12> kSignature = {0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A};
constexpr std::uint8_t kLocal = 0x20;
constexpr std::uint8_t kProxy = 0x21;
constexpr std::uint8_t kTcp4 = 0x11;
constexpr std::uint8_t kTcp6 = 0x21;
constexpr std::size_t kTcp4Size = 12;
constexpr std::size_t kTcp6Size = 36;

Result<std::string> AddressText(int family, Bytes address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (::inet_ntop(family, address.data(), text.data(), text.size()) == nullptr) return MakeError(Code::kMalformed, "a PROXY address does not print");
  return std::string(text.data());
}

}  // namespace

Result<std::size_t> ProxyBodySize(Bytes fixed) {
  Reader in(fixed);
  const Bytes signature = in.Take(kSignature.size());
  const std::uint8_t command = in.U8();
  (void)in.U8();
  const std::size_t size = in.U16Be();
  ASSAY_CHECK_OK(in.Finish("a PROXY header"));
  if (!Equal(signature, kSignature)) return MakeError(Code::kMalformed, "the connection does not begin with a PROXY protocol v2 header");
  if (command != kLocal && command != kProxy) return MakeError(Code::kMalformed, "a PROXY header of another version or command");
  if (size > kProxyMaxBody) return MakeError(Code::kLimit, "a PROXY header is longer than 552 bytes");
  return size;
}

Result<std::string> ProxySource(Bytes fixed, Bytes body) {
  ASSAY_TRY(const std::size_t size, ProxyBodySize(fixed));
  if (body.size() != size) return MakeError(Code::kMalformed, "a PROXY header is cut short");
  if (fixed[12] == kLocal) return std::string();
  const std::uint8_t family = fixed[13];
  if (family == kTcp4 && body.size() >= kTcp4Size) return AddressText(AF_INET, body.first(4));
  if (family == kTcp6 && body.size() >= kTcp6Size) return AddressText(AF_INET6, body.first(16));
  return MakeError(Code::kMalformed, "a PROXY header names neither TCP over IPv4 nor over IPv6");
}

}  // namespace assay::server
