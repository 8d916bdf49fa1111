// SPDX-License-Identifier: Apache-2.0
#include "verifier/authz/impact.h"

#include <algorithm>

#include "verifier/authz/delegation.h"

namespace assay::authz {

std::vector<ImpactEntry> ImpactOf(const Directory& directory, const Link& link, std::int64_t now) {
  Revoked fallen;
  std::vector<const Link*> links;
  std::vector<const Link*> todo{&link};
  const std::vector<std::string> ids = CascadeOf(directory, link, now);
  // The ids back to links: all hang below the first.
  for (std::size_t i = 0; i < todo.size(); ++i) {
    if (std::find(ids.begin(), ids.end(), todo[i]->id) != ids.end()) links.push_back(todo[i]);
    for (const Link* next : directory.Outbound(todo[i]->to)) {
      if (std::find(todo.begin(), todo.end(), next) == todo.end()) todo.push_back(next);
    }
  }
  for (const Link* one : links) fallen.links.push_back(one->id);
  const Holdings after(directory, now, fallen);
  std::vector<ImpactEntry> impact;
  for (const Link* one : links) {
    bool keeps = false;
    for (const Rule& rule : one->rules) {
      for (const std::string& action : rule.actions) keeps = keeps || after.Any(one->to, action, rule.resource);
    }
    impact.push_back({one->id, one->to, keeps});
  }
  return impact;
}

std::vector<EffectiveRule> EffectiveRules(const Directory& directory, std::string_view principal, std::int64_t now) {
  std::vector<EffectiveRule> effective;
  if (JudgePrincipal(directory.Find(principal), now) != Reason::kNone) return effective;
  for (const Rule& rule : directory.Rules(principal)) effective.push_back({&rule, {}, true});
  const Revoked none;
  const Holdings holdings(directory, now, none);
  for (const Link* link : directory.Inbound(principal)) {
    if (!holdings.Live(*link)) continue;
    for (const Rule& rule : link->rules) {
      const bool whole = std::all_of(rule.actions.begin(), rule.actions.end(), [&](const std::string& action) {
        return holdings.Any(link->from, action, rule.resource);
      });
      effective.push_back({&rule, link->id, whole});
    }
  }
  return effective;
}

}  // namespace assay::authz
