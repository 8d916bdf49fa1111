// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdio>

#include "sdk/core/crypto.h"
#include "sdk/core/json.h"
#include "tests/vectors/groups.h"
#include "verifier/authz/constraints.h"
#include "verifier/authz/pattern.h"
#include "verifier/token/canonical_json.h"

namespace assay::vectors {
namespace {

Json Refused(authz::Reason reason) { return {{"error", authz::ReasonName(reason)}}; }

Json Match(authz::Language language, const Json& input) {
  const auto pattern = authz::Pattern::Compile(language, input.at("pattern").get<std::string>());
  if (!pattern) return Refused(authz::Reason::kInvalidPattern);
  return {{"match", pattern->Matches(input.at("resource").get<std::string>())}};
}

// "2026-06-01T09:00:00Z"
std::int64_t SecondsOf(const std::string& text) {
  std::tm when{};
  if (std::sscanf(text.c_str(), "%d-%d-%dT%d:%d:%dZ", &when.tm_year, &when.tm_mon, &when.tm_mday, &when.tm_hour,
                  &when.tm_min, &when.tm_sec) != 6) {
    throw std::runtime_error("not a time: " + text);
  }
  when.tm_year -= 1900;
  when.tm_mon -= 1;
  return timegm(&when);
}

// Constraints as a rule would carry them.
std::optional<authz::Constraints> Parse(const Json& constraints) {
  const std::string text = constraints.dump();
  JsonParser parser(text.size());
  const auto root = parser.TryParse(text);
  return root ? authz::ParseConstraints(*root, Zones()) : std::nullopt;
}

}  // namespace

authz::ZoneSource& Zones() {
  static authz::SystemZones zones;
  return zones;
}

Json MatchColon(const Json& input) { return Match(authz::Language::kColon, input); }
Json MatchPath(const Json& input) { return Match(authz::Language::kPath, input); }

Json MatchAction(const Json& input) {
  const auto actions = input.at("actions").get<std::vector<std::string>>();
  return {{"match", authz::MatchesAction(actions, input.at("action").get<std::string>())}};
}

Json SubsetColon(const Json& input) {
  const auto parent = authz::Pattern::Compile(authz::Language::kColon, input.at("parent").get<std::string>());
  const auto child = authz::Pattern::Compile(authz::Language::kColon, input.at("child").get<std::string>());
  if (!parent || !child) return Refused(authz::Reason::kInvalidPattern);
  return {{"subset", parent->Covers(*child)}};
}

Json Canonical(const Json& input) {
  const auto canonical = token::CanonicalJson(input.at("value").dump(), 1 << 20);
  if (!canonical.ok()) return {{"error", "INVALID_JSON"}};
  return {{"canonical", *canonical}, {"sha256", ToHex(Sha256(AsBytes(*canonical)))}};
}

Json IpAllowlist(const Json& input) {
  const auto constraints = Parse({{"ip_allowlist", input.at("allowlist")}});
  if (!constraints) return Refused(authz::Reason::kInvalidConstraint);
  const authz::Arguments none;
  const authz::CallFacts facts{0, authz::IpAddress::Parse(input.at("ip").get<std::string>()), &none};
  return {{"allowed", constraints->Check(facts) == authz::Reason::kNone}};
}

Json TimeWindow(const Json& input) {
  const auto constraints =
      Parse({{"time_window", {{"start", input.at("start")}, {"end", input.at("end")}, {"zone", input.at("zone")}}}});
  if (!constraints) return Refused(authz::Reason::kInvalidConstraint);
  const authz::Arguments none;
  const authz::CallFacts facts{SecondsOf(input.at("at_utc").get<std::string>()), std::nullopt, &none};
  return {{"allowed", constraints->Check(facts) == authz::Reason::kNone}};
}

}  // namespace assay::vectors
