// SPDX-License-Identifier: Apache-2.0
#include "verifier/authz/authority.h"

#include <algorithm>
#include <mutex>

#include "verifier/token/opaque.h"

namespace assay::authz {
namespace {

// Effects that ask or take, by `commit`: all the difference between simulate and authorize.
class LedgerEffects final : public Effects {
 public:
  LedgerEffects(RateLedger& rates, Approvals& approvals, bool commit)
      : rates_(rates), approvals_(approvals), commit_(commit) {}
  Reason UseApproval(const Call& call) override {
    const CallName name{call.principal, call.action, call.resource, *call.facts.arguments};
    if (!commit_) return approvals_.Peek(name, call.approval_id, call.facts.now);
    return approvals_.Use(name, call.approval_id, call.facts.now, used_);
  }
  void ReturnApproval(const Call&) override {
    if (commit_) approvals_.Restore(used_);
  }
  bool TakeCalls(std::span<const Charge> charges, std::int64_t now) override {
    return commit_ ? rates_.Take(charges, now) : rates_.Peek(charges, now);
  }

 private:
  RateLedger& rates_;
  Approvals& approvals_;
  bool commit_;
  std::string used_;
};

}  // namespace

std::string Authority::AddToken(std::string_view principal) {
  std::string token = token::NewOpaqueToken();
  tokens_[*token::OpaqueTokenHash(token)] = {std::string(principal), std::nullopt};
  return token;
}

Authority::Created Authority::Create(Principal principal, std::int64_t now) {
  if (!IsName(principal.id, kIdSize) || principal.status != PrincipalStatus::kActive) return Reason::kInvalidPermission;
  if (principal.expires_at && *principal.expires_at <= now) return Reason::kExpiryInPast;
  const std::unique_lock lock(mutex_);
  const auto owned = owned_.find(principal.owner);
  if (owned != owned_.end() && owned->second >= kPrincipalsPerOwner) return Reason::kLimitExceeded;
  const std::string id = principal.id;
  const std::string owner = principal.owner;
  if (!directory_.Add(std::move(principal))) return Reason::kAlreadyExists;
  ++owned_[owner];
  return AddToken(id);
}

Authority::Created Authority::Rotate(std::string_view id, std::int64_t now, std::int64_t overlap_s) {
  const std::unique_lock lock(mutex_);
  if (const Reason state = JudgePrincipal(directory_.Find(id), now); state != Reason::kNone) return state;
  if (overlap_s <= 0) std::erase_if(tokens_, [&](const auto& entry) { return entry.second.principal == id; });
  for (auto& [hash, entry] : tokens_)
    if (entry.principal == id && !entry.dies_at) entry.dies_at = now + overlap_s;
  return AddToken(id);
}

Reason Authority::SetStatus(std::string_view id, PrincipalStatus status) {
  const std::unique_lock lock(mutex_);
  Principal* principal = directory_.Edit(id);
  if (principal == nullptr) return Reason::kPrincipalNotFound;
  if (principal->status == PrincipalStatus::kRevoked && status != PrincipalStatus::kRevoked)
    return Reason::kPrincipalRevoked;
  principal->status = status;
  return Reason::kNone;
}

Reason Authority::Permit(std::string_view id, std::string_view rules_json) {
  auto rules = ParseRules(rules_json, zones_);
  if (const Reason* fault = std::get_if<Reason>(&rules)) return *fault;
  const std::unique_lock lock(mutex_);
  if (directory_.Find(id) == nullptr) return Reason::kPrincipalNotFound;
  return directory_.AddRules(id, std::move(*std::get_if<std::vector<Rule>>(&rules))) ? Reason::kNone
                                                                                     : Reason::kLimitExceeded;
}

std::size_t Authority::Unpermit(std::string_view id, std::string_view resource) {
  const std::unique_lock lock(mutex_);
  const auto removed = directory_.RemoveRules(id, resource);
  for (const std::string& rule : removed) rates_.Forget(rule);
  return removed.size();
}

CheckedDelegation Authority::Delegate(const Delegation& wanted, std::string_view rules_json, std::int64_t now) {
  auto rules = ParseRules(rules_json, zones_);
  if (const Reason* fault = std::get_if<Reason>(&rules)) return *fault;
  DelegationRequest request{wanted.id,         wanted.from,
                            wanted.to,         std::move(*std::get_if<std::vector<Rule>>(&rules)),
                            wanted.expires_at, wanted.max_depth};
  const std::unique_lock lock(mutex_);
  auto checked = CheckDelegation(directory_, std::move(request), now);
  Link* link = std::get_if<Link>(&checked);
  if (link == nullptr) return checked;
  const Link* stored = directory_.AddLink(std::move(*link));
  if (stored == nullptr) return Reason::kAlreadyExists;
  return *stored;
}

std::variant<std::vector<std::string>, Reason> Authority::RevokeDelegation(std::string_view id, std::int64_t now) {
  const std::unique_lock lock(mutex_);
  const Link* link = directory_.FindLink(id);
  if (link == nullptr) return Reason::kDelegationNotFound;
  std::vector<std::string> fallen = CascadeOf(directory_, *link, now);
  for (const std::string& one : fallen) {
    Link* dead = directory_.EditLink(one);
    dead->revoked = true;
    for (const Rule& rule : dead->rules) rates_.Forget(rule.id);  // a revoked link never counts again
  }
  return fallen;
}

std::variant<std::vector<ImpactEntry>, Reason> Authority::Impact(std::string_view id, std::int64_t now) const {
  const std::shared_lock lock(mutex_);
  const Link* link = directory_.FindLink(id);
  if (link == nullptr) return Reason::kDelegationNotFound;
  return ImpactOf(directory_, *link, now);
}

std::vector<Authority::Effective> Authority::EffectivePermissions(std::string_view id, std::int64_t now) const {
  const std::shared_lock lock(mutex_);
  std::vector<Effective> all;
  for (const EffectiveRule& one : EffectiveRules(directory_, id, now)) {
    all.push_back({one.rule->resource.text(), one.link, one.rule->actions, one.rule->effect, one.whole});
  }
  return all;
}

std::string_view Authority::Caller(const Query& query, std::int64_t now) const {
  if (!query.token) return query.principal;
  const auto hash = token::OpaqueTokenHash(*query.token);
  const auto found = hash ? tokens_.find(*hash) : tokens_.end();
  if (found == tokens_.end() || (found->second.dies_at && *found->second.dies_at <= now)) return {};
  return found->second.principal;
}

Decision Authority::Judge(const Query& query, std::int64_t now, bool commit, std::vector<TraceLine>* trace) const {
  const std::string_view principal = Caller(query, now);
  if (query.token && principal.empty()) return {Reason::kInvalidToken, {}, {}};
  std::optional<Arguments> arguments = Arguments();
  if (query.arguments) arguments = Arguments::Parse(*query.arguments);
  if (!arguments) return {Reason::kArgumentNotAllowed, {}, {}};  // nothing can be said about a text that is no JSON
  const CallFacts facts{now, IpAddress::Parse(query.ip), &*arguments};
  LedgerEffects effects(rates_, approvals_, commit);
  return Decide(directory_, {principal, query.action, query.resource, facts, query.approval_id}, effects, trace);
}

Decision Authority::Authorize(const Query& query, std::int64_t now) {
  Decision decision;
  std::string principal;
  {
    const std::shared_lock lock(mutex_);
    principal = Caller(query, now);
    decision = Judge(query, now, true, nullptr);
  }
  if (!sink_.Record(query, principal, decision, now).ok()) return {Reason::kAuditUnavailable, {}, {}};
  return decision;
}

Decision Authority::Simulate(const Query& query, std::int64_t now, std::vector<TraceLine>* trace) const {
  const std::shared_lock lock(mutex_);
  return Judge(query, now, false, trace);
}

std::optional<std::vector<Decision>> Authority::Matrix(const Query& base, const std::vector<std::string>& actions,
                                                       const std::vector<std::string>& resources,
                                                       std::int64_t now) const {
  if (!resources.empty() && actions.size() > kMatrixCells / resources.size()) return std::nullopt;
  const std::shared_lock lock(mutex_);
  std::vector<Decision> cells;
  Query query = base;
  for (const std::string& action : actions) {
    for (const std::string& resource : resources) {
      query.action = action;
      query.resource = resource;
      cells.push_back(Judge(query, now, false, nullptr));
    }
  }
  return cells;
}

bool Authority::MayDecide(std::string_view by, std::int64_t now) const {
  const std::shared_lock lock(mutex_);
  return JudgePrincipal(directory_.Find(by), now) == Reason::kNone;
}

Reason Authority::RequestApproval(ApprovalRequest request, std::int64_t now) {
  {
    const std::shared_lock lock(mutex_);
    if (const Reason state = JudgePrincipal(directory_.Find(request.principal), now); state != Reason::kNone)
      return state;
  }
  return approvals_.Request(std::move(request), now);
}

Approvals::Outcome Authority::Approve(std::string_view id, std::string_view by, std::int64_t now) {
  if (!MayDecide(by, now)) return Reason::kNotAnApprover;
  return approvals_.Approve(id, by, now);
}

Approvals::Outcome Authority::Deny(std::string_view id, std::string_view by, std::int64_t now) {
  if (!MayDecide(by, now)) return Reason::kNotAnApprover;
  return approvals_.Deny(id, by, now);
}

}  // namespace assay::authz
