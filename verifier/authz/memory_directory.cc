// SPDX-License-Identifier: Apache-2.0
#include "verifier/authz/memory_directory.h"

#include <utility>

namespace assay::authz {

const MemoryDirectory::Entry* MemoryDirectory::Get(std::string_view id) const {
  const auto found = entries_.find(id);
  return found == entries_.end() ? nullptr : &found->second;
}

const Principal* MemoryDirectory::Find(std::string_view id) const {
  const Entry* entry = Get(id);
  return entry == nullptr ? nullptr : &entry->principal;
}

std::span<const Rule> MemoryDirectory::Rules(std::string_view principal) const {
  const Entry* entry = Get(principal);
  return entry == nullptr ? std::span<const Rule>() : std::span<const Rule>(entry->rules);
}

std::span<const Link* const> MemoryDirectory::Inbound(std::string_view principal) const {
  const Entry* entry = Get(principal);
  return entry == nullptr ? std::span<const Link* const>() : std::span<const Link* const>(entry->inbound);
}

std::span<const Link* const> MemoryDirectory::Outbound(std::string_view principal) const {
  const Entry* entry = Get(principal);
  return entry == nullptr ? std::span<const Link* const>() : std::span<const Link* const>(entry->outbound);
}

bool MemoryDirectory::Add(Principal principal) {
  std::string id = principal.id;
  return entries_.emplace(std::move(id), Entry{std::move(principal), {}, {}, {}}).second;
}

Principal* MemoryDirectory::Edit(std::string_view id) {
  const auto found = entries_.find(id);
  return found == entries_.end() ? nullptr : &found->second.principal;
}

bool MemoryDirectory::AddRules(std::string_view principal, std::vector<Rule> rules) {
  const auto found = entries_.find(principal);
  if (found == entries_.end() || found->second.rules.size() + rules.size() > kRulesPerPrincipal) return false;
  for (Rule& rule : rules) {
    rule.id = NextRuleId();
    found->second.rules.push_back(std::move(rule));
  }
  return true;
}

std::vector<std::string> MemoryDirectory::RemoveRules(std::string_view principal, std::string_view resource) {
  std::vector<std::string> removed;
  const auto found = entries_.find(principal);
  if (found == entries_.end()) return removed;
  std::erase_if(found->second.rules, [&](const Rule& rule) {
    if (rule.resource.text() != resource) return false;
    removed.push_back(rule.id);
    return true;
  });
  return removed;
}

const Link* MemoryDirectory::AddLink(Link link) {
  const auto from = entries_.find(link.from);
  const auto to = entries_.find(link.to);
  if (from == entries_.end() || to == entries_.end()) return nullptr;
  std::string id = link.id;
  const auto [place, fresh] = links_.emplace(std::move(id), std::move(link));
  if (!fresh) return nullptr;
  for (Rule& rule : place->second.rules) rule.id = NextRuleId();
  from->second.outbound.push_back(&place->second);
  to->second.inbound.push_back(&place->second);
  return &place->second;
}

Link* MemoryDirectory::EditLink(std::string_view id) {
  const auto found = links_.find(id);
  return found == links_.end() ? nullptr : &found->second;
}

const Link* MemoryDirectory::FindLink(std::string_view id) const {
  const auto found = links_.find(id);
  return found == links_.end() ? nullptr : &found->second;
}

}  // namespace assay::authz
