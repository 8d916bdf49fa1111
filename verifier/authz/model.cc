// SPDX-License-Identifier: Apache-2.0
#include "verifier/authz/model.h"

#include <algorithm>

#include "sdk/core/cbor.h"

namespace assay::authz {

std::optional<PrincipalKind> PrincipalKindFromName(std::string_view name) noexcept {
  if (name == "operator") return PrincipalKind::kOperator;
  if (name == "studio") return PrincipalKind::kStudio;
  if (name == "game_server") return PrincipalKind::kGameServer;
  if (name == "endpoint") return PrincipalKind::kEndpoint;
  if (name == "service") return PrincipalKind::kService;
  return std::nullopt;
}

Reason JudgePrincipal(const Principal* principal, std::int64_t now) noexcept {
  if (principal == nullptr) return Reason::kPrincipalNotFound;
  if (principal->status == PrincipalStatus::kRevoked) return Reason::kPrincipalRevoked;
  if (principal->expires_at && *principal->expires_at <= now) return Reason::kPrincipalExpired;
  if (principal->status == PrincipalStatus::kSuspended) return Reason::kPrincipalSuspended;
  return Reason::kNone;
}

Reason JudgeLink(const Link& link, std::int64_t now) noexcept {
  if (link.revoked) return Reason::kDelegationRevoked;
  return link.expires_at <= now ? Reason::kDelegationExpired : Reason::kNone;
}

bool IsName(std::string_view text, std::size_t limit) noexcept {
  return !text.empty() && text.size() <= limit && IsUtf8(text) && std::none_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
  });
}

namespace {

bool ParseActions(JsonValue value, std::vector<std::string>& actions) {
  const bool whole = value.EachElement([&](JsonValue element) {
    const auto text = element.String();
    if (!text || actions.size() == kActions || !IsName(*text, kActionSize)) return false;
    if (*text != "*" && text->find('*') != std::string_view::npos) return false;
    actions.emplace_back(*text);
    return true;
  });
  return whole && !actions.empty();
}

// The members of a rule as they come; what is missing stays empty.
struct RuleParts {
  std::optional<std::string_view> resource;
  std::vector<std::string> actions;
  Effect effect = Effect::kAllow;
  Language language = Language::kColon;
  Constraints constraints;
  Reason fault = Reason::kNone;
};

bool ReadPart(RuleParts& parts, std::string_view name, JsonValue value) {
  parts.fault = Reason::kInvalidPermission;
  const std::string_view text = value.String().value_or("");
  if (name == "resource") {
    parts.resource = value.String();
    if (!parts.resource) return false;
  } else if (name == "actions") {
    if (!ParseActions(value, parts.actions)) return false;
  } else if (name == "effect") {
    if (text != "allow" && text != "deny") return false;
    parts.effect = text == "deny" ? Effect::kDeny : Effect::kAllow;
  } else if (name == "language") {
    if (text != "colon" && text != "path") return false;
    parts.language = text == "path" ? Language::kPath : Language::kColon;
  } else {
    return false;
  }
  parts.fault = Reason::kNone;
  return true;
}

}  // namespace

ParsedRule ParseRule(JsonValue object, ZoneSource& zones, const ConstraintNames& names) {
  RuleParts parts;
  const bool whole = object.EachMember([&](std::string_view name, JsonValue value) {
    if (name != "constraints") return ReadPart(parts, name, value);
    auto constraints = ParseConstraints(value, zones, names);
    if (!constraints) parts.fault = Reason::kInvalidConstraint;
    else parts.constraints = std::move(*constraints);
    return constraints.has_value();
  });
  if (parts.fault != Reason::kNone) return parts.fault;
  if (!whole || !parts.resource || parts.actions.empty()) return Reason::kInvalidPermission;
  if (parts.resource->empty()) return Reason::kInvalidPattern;
  auto pattern = Pattern::Compile(parts.language, *parts.resource);
  if (!pattern) return Reason::kInvalidPattern;
  // What counts or asks cannot narrow a denial.
  const bool counts = parts.constraints.approval_required || parts.constraints.calls_per_hour;
  if (parts.effect == Effect::kDeny && counts) return Reason::kInvalidConstraint;
  return Rule{{}, std::move(*pattern), std::move(parts.actions), parts.effect, std::move(parts.constraints)};
}

ParsedRules ParseRules(std::string_view json_array, ZoneSource& zones) {
  if (json_array.size() > kRulesText) return Reason::kLimitExceeded;
  JsonParser parser(json_array.size());
  const auto root = parser.TryParse(json_array);
  if (!root || root->kind() != JsonKind::kArray) return Reason::kInvalidPermission;
  std::vector<Rule> rules;
  Reason fault = Reason::kNone;
  const bool whole = root->EachElement([&](JsonValue element) {
    auto rule = ParseRule(element, zones);
    if (const Reason* refused = std::get_if<Reason>(&rule)) fault = *refused;
    else if (rules.size() == kRulesPerWrite) fault = Reason::kLimitExceeded;
    else rules.push_back(std::move(*std::get_if<Rule>(&rule)));
    return fault == Reason::kNone;
  });
  if (fault != Reason::kNone) return fault;
  if (!whole) return Reason::kInvalidPermission;
  if (rules.empty()) return Reason::kEmptyPermissions;
  return rules;
}

}  // namespace assay::authz
