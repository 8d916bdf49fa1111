// SPDX-License-Identifier: Apache-2.0
#include "verifier/authz/decide.h"

#include <algorithm>
#include <tuple>

namespace assay::authz {
namespace {

// One way to the right: rules from the principal's own end up to the origin's, and the links between them.
struct Candidate {
  std::vector<const Rule*> rules;
  std::vector<const Link*> links;
};

// Walks up from the principal. A grantor that is dead, or denied the same call, gives nothing.
class Walk {
 public:
  Walk(const Directory& directory, const Call& call, std::vector<TraceLine>* trace)
      : directory_(directory), call_(call), trace_(trace) {}

  // Whether the principal itself is denied by a rule; else the candidates are collected.
  const Rule* Run() {
    if (const Rule* denial = Denial(call_.principal)) return denial;
    Collect(call_.principal, kMaxDepth);
    return nullptr;
  }
  const std::vector<Candidate>& candidates() const { return candidates_; }
  Reason dead() const { return dead_; }

 private:
  bool Spend() { return ++steps_ <= kDecisionSteps; }
  void Note(const char* what, const std::string& id, Reason reason) {
    if (trace_ != nullptr) trace_->push_back({what, id, reason});
  }
  // The most telling cause of a dead chain, whatever the order of links.
  void Dead(const Link& link, Reason reason) {
    Note("link", link.id, reason);
    if (dead_ == Reason::kNone || reason < dead_) dead_ = reason;
  }

  const Rule* Denial(std::string_view principal) {
    for (const Rule& rule : directory_.Rules(principal)) {
      if (rule.effect != Effect::kDeny || !rule.Applies(call_.action, call_.resource)) continue;
      if (!rule.constraints.MayApply(call_.facts)) continue;
      Note("deny", rule.id, Reason::kExplicitDeny);
      return &rule;
    }
    return nullptr;
  }

  void Collect(std::string_view principal, std::uint32_t limit) {
    for (const Rule& rule : directory_.Rules(principal)) {
      if (rule.effect != Effect::kAllow || !rule.Applies(call_.action, call_.resource)) continue;
      if (chain_.links.size() > limit || !Spend()) return;
      Note(chain_.links.empty() ? "own rule" : "origin rule", rule.id, Reason::kNone);
      candidates_.push_back(chain_);
      candidates_.back().rules.push_back(&rule);
    }
    if (chain_.links.size() >= limit) return;
    for (const Link* link : directory_.Inbound(principal)) {
      for (const Rule& rule : link->rules) {
        if (!Spend()) return;
        if (rule.Applies(call_.action, call_.resource)) Follow(*link, rule, limit);
      }
    }
  }

  void Follow(const Link& link, const Rule& rule, std::uint32_t limit) {
    const std::int64_t now = call_.facts.now;
    if (const Reason fault = JudgeLink(link, now); fault != Reason::kNone) return Dead(link, fault);
    if (JudgePrincipal(directory_.Find(link.from), now) != Reason::kNone) return Dead(link, Reason::kGrantorRevoked);
    if (Denial(link.from) != nullptr) return;
    Note("link", link.id, Reason::kNone);
    chain_.rules.push_back(&rule);
    chain_.links.push_back(&link);
    Collect(link.from, std::min(limit, link.max_depth));
    chain_.rules.pop_back();
    chain_.links.pop_back();
  }

  const Directory& directory_;
  const Call& call_;
  std::vector<TraceLine>* trace_;
  std::vector<Candidate> candidates_;
  Candidate chain_;
  std::size_t steps_ = 0;
  Reason dead_ = Reason::kNone;
};

// The conjunction along the chain, in the fixed order of constraints: the codes are numbered in it.
Reason CheckFacts(const Candidate& candidate, const CallFacts& facts) {
  Reason first = Reason::kNone;
  for (const Rule* rule : candidate.rules) {
    const Reason fault = rule->constraints.Check(facts);
    if (fault != Reason::kNone && (first == Reason::kNone || fault < first)) first = fault;
  }
  return first;
}

struct Claim {
  const Candidate* candidate = nullptr;
  bool approval = false;
  std::vector<Charge> charges;
};

Claim MakeClaim(const Candidate& candidate) {
  Claim claim{&candidate, false, {}};
  for (const Rule* rule : candidate.rules) {
    claim.approval |= rule->constraints.approval_required;
    if (rule->constraints.calls_per_hour) claim.charges.push_back({rule->id, *rule->constraints.calls_per_hour});
  }
  return claim;
}

// What asks for less comes first; ids break ties, so that the order of rules never matters.
bool CheaperThan(const Claim& a, const Claim& b) {
  const auto key = [](const Claim& c) {
    return std::tuple(c.approval, c.charges.size(), c.candidate->links.size(),
                      std::string_view(c.candidate->rules.front()->id),
                      std::string_view(c.candidate->rules.back()->id));
  };
  return key(a) < key(b);
}

Reason Consume(const Claim& claim, const Call& call, Effects& effects) {
  if (claim.approval) {
    const Reason fault = effects.UseApproval(call);
    if (fault != Reason::kNone) return fault;
  }
  if (claim.charges.empty() || effects.TakeCalls(claim.charges, call.facts.now)) return Reason::kNone;
  if (claim.approval) effects.ReturnApproval(call);
  return Reason::kRateLimited;
}

// Of several refusals the one that came furthest is told.
void Keep(Decision& decision, const Candidate& candidate, Reason reason) {
  const auto stage = [](Reason r) {
    if (r == Reason::kApprovalHashMismatch) r = Reason::kApprovalRequired;
    return r == Reason::kNoPermission ? -1 : static_cast<int>(r);
  };
  const std::string& id = candidate.rules.front()->id;
  const bool further = stage(reason) > stage(decision.reason);
  if (!further && !(stage(reason) == stage(decision.reason) && id < decision.rule_id)) return;
  decision = {reason, id, {}};
  for (const Link* link : candidate.links) decision.link_ids.push_back(link->id);
}

}  // namespace

Decision Decide(const Directory& directory, const Call& call, Effects& effects, std::vector<TraceLine>* trace) {
  const Reason state = JudgePrincipal(directory.Find(call.principal), call.facts.now);
  if (state != Reason::kNone) return {state, {}, {}};
  Walk walk(directory, call, trace);
  if (const Rule* denial = walk.Run()) return {Reason::kExplicitDeny, denial->id, {}};
  if (walk.candidates().empty() && walk.dead() != Reason::kNone) return {walk.dead(), {}, {}};

  Decision decision;
  std::vector<Claim> claims;
  for (const Candidate& candidate : walk.candidates()) {
    const Reason fault = CheckFacts(candidate, call.facts);
    if (trace != nullptr) trace->push_back({"constraints", candidate.rules.front()->id, fault});
    if (fault != Reason::kNone) Keep(decision, candidate, fault);
    else claims.push_back(MakeClaim(candidate));
  }
  std::sort(claims.begin(), claims.end(), CheaperThan);
  for (const Claim& claim : claims) {
    const Reason fault = Consume(claim, call, effects);
    if (trace != nullptr) trace->push_back({"decision", claim.candidate->rules.front()->id, fault});
    if (fault == Reason::kNone) {
      decision = {fault, claim.candidate->rules.front()->id, {}};
      for (const Link* link : claim.candidate->links) decision.link_ids.push_back(link->id);
      return decision;
    }
    Keep(decision, *claim.candidate, fault);
  }
  return decision;
}

}  // namespace assay::authz
