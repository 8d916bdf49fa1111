// SPDX-License-Identifier: Apache-2.0
// Random sequences of changes, each followed by decisions that a plain evaluation of the same facts must give too.
#include <doctest/doctest.h>

#include <map>
#include <random>

#include "sdk/core/json.h"
#include "verifier/authz/authority.h"

namespace assay::authz {
namespace {

class CountingSink final : public DecisionSink {
 public:
  Status Record(const Query&, std::string_view, const Decision&, std::int64_t) override {
    ++records;
    return Ok();
  }
  std::size_t records = 0;
};

struct PlainRule {
  std::string resource;
  std::vector<std::string> actions;
  bool deny;
};
struct PlainLink {
  std::string from, to;
  std::vector<PlainRule> rules;
  std::int64_t expires_at;
  std::uint32_t max_depth;
  bool revoked;
};

// The facts as lists, searched from the start each time.
struct Plain {
  std::map<std::string, PrincipalStatus> status;
  std::map<std::string, std::vector<PlainRule>> rules;
  std::map<std::string, PlainLink> links;

  static bool Applies(const PlainRule& rule, const std::string& action, const std::string& resource) {
    bool named = false;
    for (const auto& one : rule.actions) named = named || one == "*" || one == action;
    return named && Pattern::Compile(Language::kColon, rule.resource)->Matches(resource);
  }
  bool Denied(const std::string& id, const std::string& action, const std::string& resource) const {
    const auto found = rules.find(id);
    if (found == rules.end()) return false;
    for (const auto& rule : found->second)
      if (rule.deny && Applies(rule, action, resource)) return true;
    return false;
  }
  // Every chain is tried: `chain` are the links already gone up.
  bool Allowed(const std::string& id, const std::string& action, const std::string& resource, std::int64_t now,
               std::vector<const PlainLink*> chain = {}) const {
    if (status.at(id) != PrincipalStatus::kActive || Denied(id, action, resource)) return false;
    if (const auto own = rules.find(id); own != rules.end()) {
      for (const auto& rule : own->second) {
        if (rule.deny || !Applies(rule, action, resource)) continue;
        bool fits = true;
        for (const PlainLink* link : chain) fits = fits && chain.size() <= link->max_depth;
        if (fits) return true;
      }
    }
    for (const auto& [name, link] : links) {
      if (link.to != id || link.revoked || link.expires_at <= now) continue;
      bool passes = false;
      for (const auto& rule : link.rules) passes = passes || Applies(rule, action, resource);
      if (!passes) continue;
      chain.push_back(&link);
      if (Allowed(link.from, action, resource, now, chain)) return true;
      chain.pop_back();
    }
    return false;
  }
};

const std::vector<std::string> kIds = {"p0", "p1", "p2", "p3", "p4", "p5"};
const std::vector<std::string> kPatterns = {"*", "a:*", "a", "a:b", "*:b", "b:*", "a:*:c"};
const std::vector<std::string> kResources = {"a", "b", "a:b", "a:c", "b:b", "c", "a:b:c", "x:b"};
const std::vector<std::vector<std::string>> kActionLists = {{"r"}, {"w"}, {"r", "w"}, {"*"}};
const std::vector<std::string> kActionNames = {"r", "w", "x"};

std::string ToJson(const std::vector<PlainRule>& rules) {
  JsonWriter out;
  out.BeginArray();
  for (const auto& rule : rules) {
    out.BeginObject()
        .Name("resource")
        .String(rule.resource)
        .Name("effect")
        .String(rule.deny ? "deny" : "allow")
        .Name("actions")
        .BeginArray();
    for (const auto& action : rule.actions) out.String(action);
    out.EndArray().EndObject();
  }
  return std::move(out.EndArray()).Take();
}

class Sequence {
 public:
  explicit Sequence(std::uint64_t seed) : random_(seed) {
    for (const auto& id : kIds) {
      Principal principal;
      principal.id = id;
      const auto created = authority_.Create(std::move(principal), now_);
      REQUIRE(std::holds_alternative<std::string>(created));
      plain_.status[id] = PrincipalStatus::kActive;
    }
    // Something to pass on from the start.
    for (const auto& [id, resource] : {std::pair<std::string, std::string>{"p0", "*"}, {"p1", "a:*"}, {"p2", "*:b"}}) {
      plain_.rules[id] = {{resource, {"*"}, false}};
      REQUIRE(authority_.Permit(id, ToJson(plain_.rules[id])) == Reason::kNone);
    }
  }

  void Change() {
    switch (random_() % 10) {
      case 0:
      case 1: Permit(); break;
      case 2: Unpermit(); break;
      case 3: SetStatus(); break;
      case 4: RevokeLink(); break;
      case 5: now_ += static_cast<std::int64_t>(random_() % 40); break;
      default: Delegate();
    }
  }

  void Compare() {
    Query query;
    query.principal = Pick(kIds);
    query.action = Pick(kActionNames);
    query.resource = Pick(kResources);
    const bool expected = plain_.Allowed(query.principal, query.action, query.resource, now_);
    const std::size_t before = sink_.records;
    const Decision simulated = authority_.Simulate(query, now_);
    REQUIRE(sink_.records == before);
    const Decision decision = authority_.Authorize(query, now_);
    REQUIRE(sink_.records == before + 1);
    REQUIRE_MESSAGE(decision.allowed() == expected, query.principal << " " << query.action << " " << query.resource
                                                                    << " " << ReasonName(decision.reason));
    REQUIRE(simulated.reason == decision.reason);
    REQUIRE(simulated.rule_id == decision.rule_id);
    allowed += expected ? 1 : 0;
    by_link += decision.allowed() && !decision.link_ids.empty() ? 1 : 0;
  }

  int allowed = 0, by_link = 0, delegated = 0;

 private:
  template <typename T>
  const T& Pick(const std::vector<T>& from) {
    return from[random_() % from.size()];
  }
  PlainRule AnyRule(bool may_deny) { return {Pick(kPatterns), Pick(kActionLists), may_deny && random_() % 5 == 0}; }

  void Permit() {
    const std::string& id = Pick(kIds);
    const std::vector<PlainRule> rules{AnyRule(true)};
    REQUIRE(authority_.Permit(id, ToJson(rules)) == Reason::kNone);
    plain_.rules[id].push_back(rules[0]);
  }
  void Unpermit() {
    const std::string& id = Pick(kIds);
    const std::string& resource = Pick(kPatterns);
    const auto removed =
        std::erase_if(plain_.rules[id], [&](const PlainRule& rule) { return rule.resource == resource; });
    REQUIRE(authority_.Unpermit(id, resource) == removed);
  }
  void SetStatus() {
    const std::string& id = Pick(kIds);
    const bool suspend = random_() % 3 == 0;
    plain_.status[id] = suspend ? PrincipalStatus::kSuspended : PrincipalStatus::kActive;
    REQUIRE(authority_.SetStatus(id, plain_.status[id]) == Reason::kNone);
  }
  void Delegate() {
    const std::string id = "d" + std::to_string(++links_);
    PlainLink link{Pick(kIds),
                   Pick(kIds),
                   {AnyRule(false)},
                   now_ + static_cast<std::int64_t>(random_() % 400),
                   1 + static_cast<std::uint32_t>(random_() % 4),
                   false};
    const auto checked =
        authority_.Delegate({id, link.from, link.to, link.expires_at, link.max_depth}, ToJson(link.rules), now_);
    const Link* made = std::get_if<Link>(&checked);
    if (made == nullptr) return;
    ++delegated;
    REQUIRE(link.from != link.to);
    REQUIRE(made->expires_at <= link.expires_at);
    // Nothing is passed on that the grantor itself may not do, but for what a rule denies it.
    for (const auto& action : kActionNames) {
      for (const auto& resource : kResources) {
        if (!Plain::Applies(link.rules[0], action, resource) || plain_.Denied(link.from, action, resource)) continue;
        Plain without_denials = plain_;
        for (auto& [owner, rules] : without_denials.rules)
          std::erase_if(rules, [](const PlainRule& rule) { return rule.deny; });
        for (auto& [name, one] : without_denials.links) one.max_depth = 100;
        REQUIRE(without_denials.Allowed(link.from, action, resource, now_));
      }
    }
    link.expires_at = made->expires_at;
    link.max_depth = made->max_depth;
    plain_.links[id] = link;
  }
  void RevokeLink() {
    if (plain_.links.empty()) return;
    auto at = plain_.links.begin();
    std::advance(at, static_cast<std::ptrdiff_t>(random_() % plain_.links.size()));
    // What falls besides must be what could do nothing any more: no decision may change through it.
    const auto impact = authority_.Impact(at->first, now_);
    const auto fallen = authority_.RevokeDelegation(at->first, now_);
    const auto& ids = *std::get_if<std::vector<std::string>>(&fallen);
    REQUIRE(std::get_if<std::vector<ImpactEntry>>(&impact)->size() == ids.size());
    at->second.revoked = true;
    for (const auto& id : ids) plain_.links.at(id).revoked = true;
  }

  std::mt19937_64 random_;
  std::int64_t now_ = 1'780'000'000;
  SystemZones zones_;
  CountingSink sink_;
  Authority authority_{zones_, sink_};
  Plain plain_;
  int links_ = 0;
};

TEST_CASE("no sequence of changes lets a decision differ from a plain evaluation of the live facts") {
  int allowed = 0, by_link = 0, delegated = 0;
  for (std::uint64_t seed = 1; seed <= 250; ++seed) {
    Sequence sequence(seed);
    for (int change = 0; change < 40; ++change) {
      sequence.Change();
      for (int i = 0; i < 10; ++i) sequence.Compare();
    }
    allowed += sequence.allowed;
    by_link += sequence.by_link;
    delegated += sequence.delegated;
  }
  CHECK(allowed > 5'000);
  CHECK(by_link > 500);
  CHECK(delegated > 500);
}

}  // namespace
}  // namespace assay::authz
