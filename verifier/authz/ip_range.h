// SPDX-License-Identifier: Apache-2.0
// Addresses and CIDR ranges, parsed strictly. A v4 address mapped into v6 is the v4 address.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace assay::authz {

struct IpAddress {
  bool v6 = false;
  std::array<std::uint8_t, 16> bytes{};  // v4: the first four
  static std::optional<IpAddress> Parse(std::string_view text) noexcept;
};

// "address" or "address/bits". Text that breaks this form is refused; a well-formed range with more bits than its
// family has is kept and holds no address at all.
class IpRange {
 public:
  static std::optional<IpRange> Parse(std::string_view text) noexcept;
  bool Contains(const IpAddress& address) const noexcept;

 private:
  IpAddress base_;
  unsigned bits_ = 0;
  bool empty_ = false;
};

}  // namespace assay::authz
