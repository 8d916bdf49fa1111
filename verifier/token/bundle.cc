// SPDX-License-Identifier: Apache-2.0
#include "verifier/token/bundle.h"

#include <algorithm>
#include <array>

#include "verifier/token/compact.h"

namespace assay::token {
namespace {

constexpr authz::ConstraintNames kNames{"timeWindow",      "ipAllowlist",     "argumentPatterns",
                                        "requireApproval", "maxCallsPerHour", true};

struct Claims {
  std::string_view issuer, subject;
  bool audience = false;
  std::optional<std::int64_t> issued_at, not_before, expires_at;
  std::int64_t version = 0;
  bool malformed = false;
};

bool NamesAudience(JsonValue value, std::string_view device) {
  if (value.kind() == JsonKind::kString) return *value.String() == device;
  bool found = false;
  (void)value.EachElement([&](JsonValue element) { return !(found = element.String() == device); });
  return found;
}

// A rule that cannot be read takes nothing away from the others' denials, and allows nothing itself.
bool ReadRules(JsonValue array, Bundle& bundle, authz::ZoneSource& zones) {
  return array.EachElement([&](JsonValue element) {
    auto rule = authz::ParseRule(element, zones, kNames);
    if (authz::Rule* good = std::get_if<authz::Rule>(&rule)) {
      good->id = std::to_string(bundle.rules.size());
      bundle.rules.push_back(std::move(*good));
    } else {
      bundle.unknown = true;
    }
    return bundle.rules.size() <= authz::kRulesPerPrincipal;
  });
}

Claims ReadClaims(JsonValue root, const BundleCheck& check, Bundle& bundle, authz::ZoneSource& zones) {
  Claims claims;
  bool rules = false;
  const auto time = [&claims](JsonValue value) {
    claims.malformed |= !value.Int();
    return value.Int();
  };
  const bool whole = root.EachMember([&](std::string_view name, JsonValue value) {
    if (name == "iss") claims.issuer = value.String().value_or("");
    else if (name == "sub") claims.subject = value.String().value_or("");
    else if (name == "aud") claims.audience = NamesAudience(value, check.device);
    else if (name == "jti") bundle.id = value.String().value_or("");
    else if (name == "iat") claims.issued_at = time(value);
    else if (name == "nbf") claims.not_before = time(value);
    else if (name == "exp") claims.expires_at = time(value);
    else if (name == "ver") claims.version = time(value).value_or(-1);
    else if (name == "perms") rules = ReadRules(value, bundle, zones);
    return true;
  });
  claims.malformed |= !whole || !rules || !claims.expires_at || !claims.issued_at || claims.version < 0;
  return claims;
}

BundleFault Judge(const Claims& claims, const BundleCheck& check) {
  if (claims.malformed) return BundleFault::kMalformed;
  if (claims.issuer != check.issuer) return BundleFault::kIssuer;
  if (claims.subject != check.device || !claims.audience) return BundleFault::kDevice;
  if (*claims.issued_at - check.skew_s > check.now ||
      (claims.not_before && *claims.not_before - check.skew_s > check.now))
    return BundleFault::kNotYetValid;
  if (*claims.expires_at + check.skew_s <= check.now) return BundleFault::kExpired;
  return static_cast<std::uint64_t>(claims.version) < check.least_version ? BundleFault::kRollback : BundleFault::kNone;
}

}  // namespace

OpenedBundle OpenBundle(const KeySet& keys, std::string_view token, const BundleCheck& check,
                        authz::ZoneSource& zones) {
  OpenedBundle opened;
  if (token.size() > kCompactSize) return opened;
  Buffer scratch(token.size());
  const JwsCheck verified = VerifyJws(keys, token, kBundleType, scratch);
  if (verified.fault != JwsFault::kNone) {
    opened.fault = BundleFault::kSignature;
    return opened;
  }
  JsonParser parser(verified.jws.payload.size());
  const auto root = parser.TryParse(verified.jws.payload);
  if (!root) return opened;
  const Claims claims = ReadClaims(*root, check, opened.bundle, zones);
  opened.fault = Judge(claims, check);
  if (opened.fault != BundleFault::kNone) return opened;
  opened.bundle.device = check.device;
  opened.bundle.expires_at = *claims.expires_at + check.skew_s;
  opened.bundle.version = static_cast<std::uint64_t>(claims.version);
  return opened;
}

std::string_view BundleAnswerName(BundleAnswer answer) noexcept {
  return answer == BundleAnswer::kAllow ? "allow" : answer == BundleAnswer::kDeny ? "deny" : "needs_online";
}

BundleAnswer DecideBundle(const Bundle& bundle, const BundleCall& call, authz::RateLedger* calls) {
  if (bundle.unknown || call.facts.now >= bundle.expires_at) return BundleAnswer::kDeny;
  BundleAnswer best = BundleAnswer::kDeny;
  const authz::Rule* counted = nullptr;
  for (const authz::Rule& rule : bundle.rules) {
    if (!rule.Applies(call.action, call.resource)) continue;
    if (rule.effect == authz::Effect::kDeny) {
      if (rule.constraints.MayApply(call.facts)) return BundleAnswer::kDeny;
      continue;
    }
    if (rule.constraints.Check(call.facts) != authz::Reason::kNone) continue;
    if (rule.constraints.approval_required) {
      if (best == BundleAnswer::kDeny) best = BundleAnswer::kNeedsOnline;
    } else if (!rule.constraints.calls_per_hour) {
      best = BundleAnswer::kAllow;
    } else if (*rule.constraints.calls_per_hour > 0) {
      counted = &rule;
    }
  }
  if (best == BundleAnswer::kAllow || counted == nullptr) return best;
  if (calls == nullptr) return BundleAnswer::kNeedsOnline;
  const std::array charge{authz::Charge{counted->id, *counted->constraints.calls_per_hour}};
  return calls->Take(charge, call.facts.now) ? BundleAnswer::kAllow : best;
}

}  // namespace assay::token
