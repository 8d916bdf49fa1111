// SPDX-License-Identifier: Apache-2.0
#include "verifier/authz/ip_range.h"

#include <arpa/inet.h>

#include <algorithm>

namespace assay::authz {
namespace {

constexpr unsigned kMappedPrefix = 12;  // ::ffff:0:0/96, RFC 4291 section 2.5.5.2

bool IsMapped(const std::array<std::uint8_t, 16>& bytes) noexcept {
  return std::all_of(bytes.begin(), bytes.begin() + 10, [](std::uint8_t b) { return b == 0; }) && bytes[10] == 0xFF &&
         bytes[11] == 0xFF;
}

IpAddress Unmap(const IpAddress& mapped) noexcept {
  IpAddress v4;
  std::copy_n(mapped.bytes.begin() + kMappedPrefix, 4, v4.bytes.begin());
  return v4;
}

std::optional<IpAddress> ParsePlain(std::string_view text) noexcept {
  std::array<char, INET6_ADDRSTRLEN> buffer{};
  if (text.empty() || text.size() >= buffer.size() || text.find('\0') != std::string_view::npos) return std::nullopt;
  std::copy(text.begin(), text.end(), buffer.begin());
  IpAddress address;
  address.v6 = text.find(':') != std::string_view::npos;
  if (inet_pton(address.v6 ? AF_INET6 : AF_INET, buffer.data(), address.bytes.data()) != 1) return std::nullopt;
  return address;
}

std::optional<unsigned> ParseBits(std::string_view text) noexcept {
  if (text.empty() || text.size() > 3 || (text.size() > 1 && text[0] == '0')) return std::nullopt;
  unsigned bits = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    bits = bits * 10 + static_cast<unsigned>(c - '0');
  }
  return bits;
}

}  // namespace

std::optional<IpAddress> IpAddress::Parse(std::string_view text) noexcept {
  const auto address = ParsePlain(text);
  return address && address->v6 && IsMapped(address->bytes) ? Unmap(*address) : address;
}

std::optional<IpRange> IpRange::Parse(std::string_view text) noexcept {
  const std::size_t slash = text.find('/');
  const auto base = ParsePlain(text.substr(0, slash));
  if (!base) return std::nullopt;
  IpRange range;
  range.base_ = *base;
  const unsigned width = base->v6 ? 128 : 32;
  range.bits_ = width;
  if (slash != std::string_view::npos) {
    const auto bits = ParseBits(text.substr(slash + 1));
    if (!bits) return std::nullopt;
    range.bits_ = *bits;
  }
  range.empty_ = range.bits_ > width;
  if (base->v6 && IsMapped(base->bytes) && range.bits_ >= 8 * kMappedPrefix) {
    range.base_ = Unmap(*base);
    range.bits_ -= 8 * kMappedPrefix;
  }
  return range;
}

bool IpRange::Contains(const IpAddress& address) const noexcept {
  if (empty_ || address.v6 != base_.v6) return false;
  const std::size_t whole = bits_ / 8;
  if (!std::equal(base_.bytes.begin(), base_.bytes.begin() + static_cast<std::ptrdiff_t>(whole), address.bytes.begin()))
    return false;
  const unsigned rest = bits_ % 8;
  return rest == 0 || ((base_.bytes[whole] ^ address.bytes[whole]) >> (8 - rest)) == 0;
}

}  // namespace assay::authz
