// SPDX-License-Identifier: Apache-2.0
// The one door to the core: changes and decisions over a directory in memory. A change is visible to the very next
// decision: both take one lock. Every decision writes exactly one record before it is answered; simulation none.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sdk/core/result.h"
#include "verifier/authz/approvals.h"
#include "verifier/authz/decide.h"
#include "verifier/authz/delegation.h"
#include "verifier/authz/impact.h"
#include "verifier/authz/memory_directory.h"
#include "verifier/authz/rate.h"

namespace assay::authz {

inline constexpr std::size_t kPrincipalsPerOwner = 100'000;
inline constexpr std::size_t kMatrixCells = 2'000;

// A call as it arrives. Exactly one of principal and token names the caller.
struct Query {
  std::string principal;
  std::optional<std::string> token;
  std::string action, resource;
  std::optional<std::string> arguments;  // JSON
  std::string ip;                        // empty: unknown
  std::string approval_id;
};

class DecisionSink {
 public:
  virtual ~DecisionSink() = default;
  virtual Status Record(const Query& query, std::string_view principal, const Decision& decision,
                        std::int64_t now) = 0;  // durable on return
};

class Authority {
 public:
  Authority(ZoneSource& zones, DecisionSink& sink) : zones_(zones), sink_(sink) {}

  using Created = std::variant<std::string, Reason>;  // the token, shown this once
  Created Create(Principal principal, std::int64_t now);
  Created Rotate(std::string_view id, std::int64_t now,
                 std::int64_t overlap_s = 0);                     // 0: the old token is dead at once
  Reason SetStatus(std::string_view id, PrincipalStatus status);  // revoked is final
  Reason Permit(std::string_view id, std::string_view rules_json);
  std::size_t Unpermit(std::string_view id, std::string_view resource);  // rules removed

  struct Delegation {
    std::string id, from, to;
    std::int64_t expires_at = 0;
    std::uint32_t max_depth = kDefaultDepth;
  };
  CheckedDelegation Delegate(const Delegation& wanted, std::string_view rules_json, std::int64_t now);
  std::variant<std::vector<std::string>, Reason> RevokeDelegation(std::string_view id,
                                                                  std::int64_t now);  // the links that fell
  std::variant<std::vector<ImpactEntry>, Reason> Impact(std::string_view id, std::int64_t now) const;
  // What the principal can do now, copied: `link` is empty for its own rules.
  struct Effective {
    std::string resource, link;
    std::vector<std::string> actions;
    Effect effect = Effect::kAllow;
    bool whole = true;
  };
  std::vector<Effective> EffectivePermissions(std::string_view id, std::int64_t now) const;

  Decision Authorize(const Query& query, std::int64_t now);
  Decision Simulate(const Query& query, std::int64_t now, std::vector<TraceLine>* trace = nullptr) const;
  // Every action on every resource; nothing when there are more than kMatrixCells.
  std::optional<std::vector<Decision>> Matrix(const Query& base, const std::vector<std::string>& actions,
                                              const std::vector<std::string>& resources, std::int64_t now) const;

  // Approvers must be live principals when they decide.
  Reason RequestApproval(ApprovalRequest request, std::int64_t now);
  Approvals::Outcome Approve(std::string_view id, std::string_view by, std::int64_t now);
  Approvals::Outcome Deny(std::string_view id, std::string_view by, std::int64_t now);
  const Approvals& approvals() const noexcept { return approvals_; }

 private:
  struct TokenEntry {
    std::string principal;
    std::optional<std::int64_t> dies_at;
  };
  Decision Judge(const Query& query, std::int64_t now, bool commit, std::vector<TraceLine>* trace) const;
  std::string_view Caller(const Query& query, std::int64_t now) const;  // empty: the token is no good
  std::string AddToken(std::string_view principal);
  bool MayDecide(std::string_view by, std::int64_t now) const;

  ZoneSource& zones_;
  DecisionSink& sink_;
  mutable std::shared_mutex mutex_;
  MemoryDirectory directory_;
  std::map<Digest, TokenEntry> tokens_;
  std::map<std::string, std::size_t, std::less<>> owned_;
  mutable RateLedger rates_;  // own locks: charged under the shared lock
  mutable Approvals approvals_;
};

}  // namespace assay::authz
