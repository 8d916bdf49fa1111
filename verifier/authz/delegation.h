// SPDX-License-Identifier: Apache-2.0
// Delegation: what a principal holds, whether it may pass on a list of rules, and what a revocation takes away.
// Constraints need no comparison: a decision applies those of the whole chain.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "verifier/authz/directory.h"

namespace assay::authz {

struct DelegationRequest {
  std::string id;
  std::string from, to;
  std::vector<Rule> rules;
  std::int64_t expires_at = 0;
  std::uint32_t max_depth = kDefaultDepth;
};

// The link to store, its depth and expiry clamped to what it rests on, or the refusal.
using CheckedDelegation = std::variant<Link, Reason>;
CheckedDelegation CheckDelegation(const Directory& directory, DelegationRequest request, std::int64_t now);

// Links as they would be after a revocation, without changing any.
struct Revoked {
  std::vector<std::string_view> links;
  bool Has(std::string_view id) const noexcept;
};

// Whether the principal holds `action` on all that `pattern` matches, by its own rules and live inbound links. A link
// of which its grantor holds only a part counts for nothing here.
class Holdings {
 public:
  Holdings(const Directory& directory, std::int64_t now, const Revoked& without)
      : directory_(directory), now_(now), without_(without) {}
  bool Own(std::string_view principal, std::string_view action, const Pattern& pattern) const;
  bool Any(std::string_view principal, std::string_view action, const Pattern& pattern) const;
  bool Live(const Link& link) const;  // itself and its grantor
  // The live inbound links that bear on the pattern, appended.
  void Basis(std::string_view principal, std::string_view action, const Pattern& pattern,
             std::vector<const Link*>& out) const;
  // Whether the grantor still holds at least one of the link's rights.
  bool Rests(const Link& link) const;

 private:
  bool Holds(std::string_view principal, std::string_view action, const Pattern& pattern, std::uint32_t depth) const;

  const Directory& directory_;
  std::int64_t now_;
  const Revoked& without_;
  mutable std::size_t steps_ = 0;
};

// The links that fall when this one is revoked: itself, then those that rested on it alone, nearest first.
std::vector<std::string> CascadeOf(const Directory& directory, const Link& link, std::int64_t now);

}  // namespace assay::authz
