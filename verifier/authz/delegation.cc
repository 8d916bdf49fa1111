// SPDX-License-Identifier: Apache-2.0
#include "verifier/authz/delegation.h"

#include <algorithm>
#include <set>

namespace assay::authz {
namespace {

constexpr std::size_t kHoldingSteps = 20'000;

bool HasAction(const Rule& rule, std::string_view action) {
  // "*" is covered by "*" alone: it stands for actions that no list names.
  return std::any_of(rule.actions.begin(), rule.actions.end(),
                     [&](const std::string& one) { return one == "*" || one == action; });
}

bool Reaches(const Directory& directory, std::string_view from, std::string_view target, std::int64_t now) {
  std::set<std::string_view> seen;
  std::vector<std::string_view> todo{from};
  while (!todo.empty()) {
    const std::string_view at = todo.back();
    todo.pop_back();
    if (at == target) return true;
    if (!seen.insert(at).second) continue;
    for (const Link* link : directory.Outbound(at))
      if (JudgeLink(*link, now) == Reason::kNone) todo.push_back(link->to);
  }
  return false;
}

// Denied as a whole: nothing of the rule is left to pass on.
bool DeniedWhole(const Directory& directory, std::string_view principal, std::string_view action,
                 const Pattern& pattern) {
  for (const Rule& rule : directory.Rules(principal)) {
    if (rule.effect == Effect::kDeny && HasAction(rule, action) && rule.resource.Covers(pattern)) return true;
  }
  return false;
}

Reason CheckParties(const Directory& directory, const DelegationRequest& request, std::int64_t now) {
  if (request.from == request.to) return Reason::kSelfDelegation;
  const Principal* from = directory.Find(request.from);
  const Principal* to = directory.Find(request.to);
  // A principal of another tenant is as good as none; those without a tenant are the operator's own.
  if (to == nullptr || (from != nullptr && !from->tenant.empty() && from->tenant != to->tenant))
    return Reason::kTargetNotFound;
  if (JudgePrincipal(to, now) != Reason::kNone) return Reason::kTargetNotActive;
  if (JudgePrincipal(from, now) != Reason::kNone) return Reason::kGrantorNotActive;
  if (request.expires_at <= now) return Reason::kExpiryInPast;
  if (Reaches(directory, request.to, request.from, now)) return Reason::kDelegationCycle;
  const auto inbound = directory.Inbound(request.to);
  const auto live = std::count_if(inbound.begin(), inbound.end(),
                                  [&](const Link* link) { return JudgeLink(*link, now) == Reason::kNone; });
  return static_cast<std::size_t>(live) >= kInboundLinks ? Reason::kLimitExceeded : Reason::kNone;
}

}  // namespace

bool Revoked::Has(std::string_view id) const noexcept {
  return std::find(links.begin(), links.end(), id) != links.end();
}

bool Holdings::Live(const Link& link) const {
  return !without_.Has(link.id) && JudgeLink(link, now_) == Reason::kNone &&
         JudgePrincipal(directory_.Find(link.from), now_) == Reason::kNone;
}

bool Holdings::Own(std::string_view principal, std::string_view action, const Pattern& pattern) const {
  std::vector<const Pattern*> held;
  for (const Rule& rule : directory_.Rules(principal)) {
    if (rule.effect == Effect::kAllow && HasAction(rule, action)) held.push_back(&rule.resource);
  }
  return Pattern::Covers(held, pattern) && !DeniedWhole(directory_, principal, action, pattern);
}

bool Holdings::Any(std::string_view principal, std::string_view action, const Pattern& pattern) const {
  steps_ = 0;
  return Holds(principal, action, pattern, 0);
}

bool Holdings::Holds(std::string_view principal, std::string_view action, const Pattern& pattern,
                     std::uint32_t depth) const {
  if (depth > kMaxDepth || ++steps_ > kHoldingSteps || DeniedWhole(directory_, principal, action, pattern))
    return false;
  if (Own(principal, action, pattern)) return true;
  std::vector<const Pattern*> held;
  for (const Rule& rule : directory_.Rules(principal)) {
    if (rule.effect == Effect::kAllow && HasAction(rule, action)) held.push_back(&rule.resource);
  }
  for (const Link* link : directory_.Inbound(principal)) {
    if (!Live(*link)) continue;
    for (const Rule& rule : link->rules) {
      // A wider rule is narrowed to what is asked: its grantor need hold no more than that.
      const Pattern& part = rule.resource.Covers(pattern) ? pattern : rule.resource;
      if (HasAction(rule, action) && Holds(link->from, action, part, depth + 1)) held.push_back(&rule.resource);
    }
  }
  return Pattern::Covers(held, pattern);
}

void Holdings::Basis(std::string_view principal, std::string_view action, const Pattern& pattern,
                     std::vector<const Link*>& out) const {
  for (const Link* link : directory_.Inbound(principal)) {
    if (!Live(*link) || std::find(out.begin(), out.end(), link) != out.end()) continue;
    const bool bears = std::any_of(link->rules.begin(), link->rules.end(), [&](const Rule& rule) {
      return HasAction(rule, action) && (rule.resource.Covers(pattern) || pattern.Covers(rule.resource));
    });
    if (bears) out.push_back(link);
  }
}

bool Holdings::Rests(const Link& link) const {
  for (const Rule& rule : link.rules) {
    for (const std::string& action : rule.actions)
      if (Any(link.from, action, rule.resource)) return true;
  }
  return false;
}

CheckedDelegation CheckDelegation(const Directory& directory, DelegationRequest request, std::int64_t now) {
  if (request.rules.empty()) return Reason::kEmptyPermissions;
  if (!IsName(request.id, kIdSize)) return Reason::kInvalidPermission;
  if (const Reason fault = CheckParties(directory, request, now); fault != Reason::kNone) return fault;
  const Revoked none;
  const Holdings holdings(directory, now, none);
  std::vector<const Link*> basis;
  for (const Rule& rule : request.rules) {
    if (rule.effect != Effect::kAllow) return Reason::kInvalidPermission;  // a link passes rights on, nothing else
    for (const std::string& action : rule.actions) {
      if (holdings.Own(request.from, action, rule.resource)) continue;
      if (!holdings.Any(request.from, action, rule.resource)) return Reason::kNotASubset;
      holdings.Basis(request.from, action, rule.resource, basis);
    }
  }
  Link link{std::move(request.id),
            std::move(request.from),
            std::move(request.to),
            std::move(request.rules),
            1,
            std::min(request.max_depth, kMaxDepth),
            request.expires_at,
            false};
  for (const Link* above : basis) {
    link.depth = std::max(link.depth, above->depth + 1);
    link.max_depth = std::min(link.max_depth, above->max_depth);
    link.expires_at = std::min(link.expires_at, above->expires_at);
  }
  if (link.depth > link.max_depth) return Reason::kDepthExceeded;
  return link;
}

std::vector<std::string> CascadeOf(const Directory& directory, const Link& link, std::int64_t now) {
  const Revoked none;
  Revoked fallen{{link.id}};
  const Holdings before(directory, now, none);
  const Holdings after(directory, now, fallen);  // sees each link that falls on the way
  std::vector<const Link*> below{&link};         // every link that could rest on this one
  for (std::size_t i = 0; i < below.size(); ++i) {
    for (const Link* next : directory.Outbound(below[i]->to)) {
      if (!next->revoked && std::find(below.begin(), below.end(), next) == below.end()) below.push_back(next);
    }
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (const Link* next : below) {
      if (fallen.Has(next->id) || !before.Rests(*next) || after.Rests(*next)) continue;
      fallen.links.push_back(next->id);
      changed = true;
    }
  }
  return {fallen.links.begin(), fallen.links.end()};
}

}  // namespace assay::authz
