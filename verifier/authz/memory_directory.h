// SPDX-License-Identifier: Apache-2.0
// A directory in memory. Not locked: its owner (Authority) holds the lock.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "verifier/authz/directory.h"

namespace assay::authz {

class MemoryDirectory final : public Directory {
 public:
  const Principal* Find(std::string_view id) const override;
  std::span<const Rule> Rules(std::string_view principal) const override;
  std::span<const Link* const> Inbound(std::string_view principal) const override;
  std::span<const Link* const> Outbound(std::string_view principal) const override;

  bool Add(Principal principal);  // false when the id is taken
  Principal* Edit(std::string_view id);
  bool AddRules(std::string_view principal, std::vector<Rule> rules);  // gives the rules their ids
  std::vector<std::string> RemoveRules(std::string_view principal, std::string_view resource);  // the ids removed
  const Link* AddLink(Link link);  // null when the id is taken; gives the rules their ids
  Link* EditLink(std::string_view id);
  const Link* FindLink(std::string_view id) const;

 private:
  struct Entry {
    Principal principal;
    std::vector<Rule> rules;
    std::vector<const Link*> inbound, outbound;
  };
  const Entry* Get(std::string_view id) const;
  std::string NextRuleId() { return "r" + std::to_string(++last_rule_); }

  std::map<std::string, Entry, std::less<>> entries_;
  std::map<std::string, Link, std::less<>> links_;  // nodes never move: entries point at them
  std::uint64_t last_rule_ = 0;
};

}  // namespace assay::authz
