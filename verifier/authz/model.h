// SPDX-License-Identifier: Apache-2.0
// Principals, rules, delegation links. Plain data; times are seconds since the epoch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sdk/core/json.h"
#include "verifier/authz/constraints.h"
#include "verifier/authz/pattern.h"
#include "verifier/authz/reason.h"

namespace assay::authz {

inline constexpr std::size_t kIdSize = 128;
inline constexpr std::size_t kActionSize = 128;
inline constexpr std::size_t kActions = 32;            // of one rule
inline constexpr std::size_t kRulesPerWrite = 64;      // more than kJsonMembers never fits a body
inline constexpr std::size_t kRulesText = 256 * 1024;  // bytes of JSON of one write
inline constexpr std::size_t kRulesPerPrincipal = 1024;
inline constexpr std::size_t kInboundLinks = 64;  // active links to one principal
inline constexpr std::uint32_t kMaxDepth = 16;    // links in one chain, whatever a caller asks for
inline constexpr std::uint32_t kDefaultDepth = 8;

enum class PrincipalKind : std::uint8_t { kOperator, kStudio, kGameServer, kEndpoint, kService };
std::optional<PrincipalKind> PrincipalKindFromName(std::string_view name) noexcept;

enum class PrincipalStatus : std::uint8_t { kActive, kSuspended, kRevoked };

struct Principal {
  std::string id;
  PrincipalKind kind = PrincipalKind::kService;
  std::string owner;
  std::string tenant;
  PrincipalStatus status = PrincipalStatus::kActive;
  std::optional<std::int64_t> expires_at;
};
// kNone when alive, else why not. Judged at each use: nothing remembers the answer.
Reason JudgePrincipal(const Principal* principal, std::int64_t now) noexcept;

enum class Effect : std::uint8_t { kAllow, kDeny };

struct Rule {
  std::string id;  // unique within the directory; given when stored
  Pattern resource;
  std::vector<std::string> actions;
  Effect effect = Effect::kAllow;
  Constraints constraints;

  bool Applies(std::string_view action, std::string_view resource_name) const noexcept {
    return MatchesAction(actions, action) && resource.Matches(resource_name);
  }
};

struct Link {
  std::string id;
  std::string from, to;
  std::vector<Rule> rules;
  std::uint32_t depth = 1;                  // links from the origin to here when it was made
  std::uint32_t max_depth = kDefaultDepth;  // no chain through this link may have more links
  std::int64_t expires_at = 0;
  bool revoked = false;
};
Reason JudgeLink(const Link& link, std::int64_t now) noexcept;

// A rule from {"resource","actions","effect","constraints","language"}; effect is "allow" and language "colon" unless
// named. The refusal says which part is wrong.
using ParsedRule = std::variant<Rule, Reason>;
ParsedRule ParseRule(JsonValue object, ZoneSource& zones, const ConstraintNames& names = {});
using ParsedRules = std::variant<std::vector<Rule>, Reason>;
ParsedRules ParseRules(std::string_view json_array, ZoneSource& zones);

bool IsName(std::string_view text, std::size_t limit) noexcept;  // 1..limit bytes of UTF-8 without control characters

}  // namespace assay::authz
