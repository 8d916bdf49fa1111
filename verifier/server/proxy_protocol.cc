// SPDX-License-Identifier: Apache-2.0
#include "verifier/server/proxy_protocol.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>

namespace assay::server {
namespace {

constexpr std::array<std::uint8_t, 12> kSignature = {0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D,
                                                     0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A};
constexpr std::uint8_t kLocal = 0x20;
constexpr std::uint8_t kProxy = 0x21;
constexpr std::uint8_t kTcp4 = 0x11;
constexpr std::uint8_t kTcp6 = 0x21;
constexpr std::size_t kCommandAt = 12, kFamilyAt = 13;
constexpr std::size_t kPorts = 4;
constexpr std::uint8_t kTypeCrc32c = 0x03;

// CRC-32C (RFC 9260, appendix A), bit by bit: a header has at most 552 bytes.
std::uint32_t Crc32c(std::uint32_t crc, std::uint8_t byte) noexcept {
  constexpr std::uint32_t kPolynomial = 0x82F63B78U;
  crc ^= byte;
  for (int bit = 0; bit < 8; ++bit) crc = (crc & 1U) != 0 ? (crc >> 1) ^ kPolynomial : crc >> 1;
  return crc;
}

// Over the whole header, its own four bytes taken as zero (section 2.2.3).
bool ChecksumHolds(Bytes fixed, Bytes body, std::size_t checksum_at, std::uint32_t claimed) noexcept {
  std::uint32_t crc = ~0U;
  for (const std::uint8_t byte : fixed) crc = Crc32c(crc, byte);
  for (std::size_t i = 0; i < body.size(); ++i) {
    const bool own = i >= checksum_at && i < checksum_at + sizeof claimed;
    crc = Crc32c(crc, own ? 0 : body[i]);
  }
  return ~crc == claimed;
}

// Type, 16-bit length, value, up to the end.
Status CheckTlvs(Bytes fixed, Bytes body, std::size_t offset) {
  Reader in(body);
  in.Skip(offset);
  while (in.ok() && !in.AtEnd()) {
    const std::uint8_t type = in.U8();
    const std::size_t size = in.U16Be();
    const std::size_t at = in.position();
    const Bytes value = in.Take(size);
    if (!in.ok() || type != kTypeCrc32c) continue;
    Reader number(value);
    const std::uint32_t claimed = number.U32Be();
    ASSAY_CHECK_OK(number.Finish("the checksum of a PROXY header"));
    if (!ChecksumHolds(fixed, body, at, claimed))
      return MakeError(Code::kMalformed, "the checksum of a PROXY header does not hold");
  }
  return in.Finish("a PROXY header");
}

Result<std::string> AddressText(int family, Bytes address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (::inet_ntop(family, address.data(), text.data(), text.size()) == nullptr)
    return MakeError(Code::kMalformed, "a PROXY address does not print");
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
  if (!Equal(signature, kSignature))
    return MakeError(Code::kMalformed, "the connection does not begin with a PROXY protocol v2 header");
  if (command != kLocal && command != kProxy)
    return MakeError(Code::kMalformed, "a PROXY header of another version or command");
  if (size > kProxyMaxBody) return MakeError(Code::kLimit, "a PROXY header is longer than 552 bytes");
  return size;
}

Result<std::string> ProxySource(Bytes fixed, Bytes body) {
  ASSAY_TRY(const std::size_t size, ProxyBodySize(fixed));
  if (body.size() != size) return MakeError(Code::kMalformed, "a PROXY header is cut short");
  if (fixed[kCommandAt] == kLocal) return std::string();  // its family and addresses are to be ignored
  const std::uint8_t family = fixed[kFamilyAt];
  if (family != kTcp4 && family != kTcp6)
    return MakeError(Code::kUnsupported, "a PROXY header names neither TCP over IPv4 nor over IPv6");
  const std::size_t address = family == kTcp4 ? sizeof(in_addr) : sizeof(in6_addr);
  const std::size_t addresses = 2 * address + kPorts;
  if (body.size() < addresses) return MakeError(Code::kMalformed, "a PROXY header is shorter than its addresses");
  ASSAY_CHECK_OK(CheckTlvs(fixed, body, addresses));
  return AddressText(family == kTcp4 ? AF_INET : AF_INET6, body.first(address));
}

}  // namespace assay::server
