// SPDX-License-Identifier: Apache-2.0
// Approvals: k of n named approvers agree to one call, bound by the hash of its canonical form, used exactly once.
// One denial ends a request; expiry is judged at every step.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "sdk/core/bytes.h"
#include "verifier/authz/arguments.h"
#include "verifier/authz/reason.h"

namespace assay::authz {

inline constexpr std::size_t kApprovers = 32;
inline constexpr std::size_t kApprovals = 100'000;  // held at once
inline constexpr std::size_t kPageDefault = 50;
inline constexpr std::size_t kPageLimit = 500;

enum class ApprovalStatus : std::uint8_t { kPending, kApproved, kDenied, kUsed };
std::string_view ApprovalStatusName(ApprovalStatus status) noexcept;

struct ApprovalRequest {
  std::string id;
  std::string principal, action, resource, requester;
  Arguments arguments;
  std::uint32_t need = 1;
  std::vector<std::string> approvers;
  std::int64_t expires_at = 0;
};

struct Approval {
  ApprovalRequest request;
  std::string nonce;
  Digest hash{};  // SHA-256 of the canonical {version, principal, action, resource, arguments, requester, nonce}
  std::vector<std::string> agreed;
  ApprovalStatus status = ApprovalStatus::kPending;
};

// Names one call: {principal, action, resource, arguments}.
struct CallName {
  std::string_view principal, action, resource;
  const Arguments& arguments;
};
Digest ApprovalHash(const CallName& call, std::string_view requester, std::string_view nonce);

// Any thread; each method is one step, whole or not at all.
class Approvals {
 public:
  Reason Request(ApprovalRequest request, std::int64_t now);  // kNone, or what is wrong with it

  using Outcome = std::variant<ApprovalStatus, Reason>;
  Outcome Approve(std::string_view id, std::string_view by, std::int64_t now);
  Outcome Deny(std::string_view id, std::string_view by, std::int64_t now);

  // Whether an approved request names this call, by id or any; Use marks it used and tells its id, Restore undoes.
  Reason Peek(const CallName& call, std::string_view id, std::int64_t now) const;
  Reason Use(const CallName& call, std::string_view id, std::int64_t now, std::string& used);
  void Restore(std::string_view used);

  struct Page {
    std::vector<Approval> approvals;
    std::string next;
  };  // next: empty at the end
  std::optional<Page> Pending(std::string_view cursor, std::size_t limit,
                              std::int64_t now) const;  // nothing: bad cursor
  std::optional<Approval> Find(std::string_view id) const;

 private:
  Reason Judge(std::string_view id, std::string_view by, std::int64_t now) const;  // whether `by` may decide now
  const Approval* Usable(const CallName& call, std::string_view id, std::int64_t now, Reason& reason) const;
  void Prune(std::int64_t now);

  mutable std::mutex mutex_;
  std::map<std::string, Approval, std::less<>> approvals_;
  std::unordered_multimap<std::string, std::string> by_call_;  // digest of the call, id
  std::map<std::uint64_t, std::string> order_;                 // as requested
  std::uint64_t last_ = 0;
};

}  // namespace assay::authz
