// SPDX-License-Identifier: Apache-2.0
// What narrows a rule: time of day, address, arguments, approval, calls per hour; checked in this order. A constraint
// that is unknown or malformed is refused when the rule is written, so that none is ever met.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sdk/core/json.h"
#include "verifier/authz/arguments.h"
#include "verifier/authz/ip_range.h"
#include "verifier/authz/reason.h"
#include "verifier/authz/text_pattern.h"
#include "verifier/authz/zone.h"

namespace assay::authz {

inline constexpr std::size_t kIpRanges = 256;
inline constexpr std::size_t kArgumentPatterns = 32;
inline constexpr std::uint32_t kMaxCallsPerHour = 1'000'000;

// Minutes of the local day, both ends within; a start after the end wraps midnight.
struct TimeWindow {
  int start = 0, end = 0;
  std::shared_ptr<const Zone> zone;  // shared with the source's cache
  static std::optional<TimeWindow> Make(std::string_view start, std::string_view end, std::shared_ptr<const Zone> zone);
  bool Contains(std::int64_t now) const noexcept;
};

// What a call tells about itself.
struct CallFacts {
  std::int64_t now = 0;  // seconds since the epoch
  std::optional<IpAddress> ip;
  const Arguments* arguments = nullptr;  // never null in a decision
};

struct Constraints {
  std::optional<TimeWindow> time_window;
  std::optional<std::vector<IpRange>> ip_allowlist;
  std::optional<std::vector<TextPattern>> argument_patterns;
  bool approval_required = false;
  std::optional<std::uint32_t> calls_per_hour;

  // The first of time, address and arguments that does not hold, or kNone.
  Reason Check(const CallFacts& facts) const;
  // For a rule that denies: whether the call may be what it names. What the call does not tell counts as a yes, and
  // one matching value among many is enough.
  bool MayApply(const CallFacts& facts) const;
  bool CheckArguments(const Arguments& arguments) const;
};

bool AllowsIp(const std::vector<IpRange>& ranges, const std::optional<IpAddress>& ip) noexcept;

// The members' names in JSON. Device bundles use another set.
struct ConstraintNames {
  std::string_view time_window = "time_window", ip_allowlist = "ip_allowlist", argument_patterns = "argument_patterns",
                   approval_required = "approval_required", calls_per_hour = "calls_per_hour";
  bool zone_optional = false;  // UTC when not named
};
std::optional<Constraints> ParseConstraints(JsonValue object, ZoneSource& zones, const ConstraintNames& names = {});
std::optional<std::vector<IpRange>> ParseIpAllowlist(JsonValue array);

}  // namespace assay::authz
