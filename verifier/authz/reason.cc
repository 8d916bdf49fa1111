// SPDX-License-Identifier: Apache-2.0
#include "verifier/authz/reason.h"

#include <array>
#include <cstddef>

namespace assay::authz {
namespace {

struct Entry {
  Reason reason;
  std::string_view name;
  std::string_view sentence;
};

constexpr std::array kEntries = {
    Entry{Reason::kNone, "NONE", "The call is allowed."},
    Entry{Reason::kNoPermission, "NO_PERMISSION", "No rule allows this action on this resource."},
    Entry{Reason::kExplicitDeny, "EXPLICIT_DENY", "A rule denies this action on this resource."},
    Entry{Reason::kPrincipalNotFound, "PRINCIPAL_NOT_FOUND", "There is no such principal."},
    Entry{Reason::kPrincipalExpired, "PRINCIPAL_EXPIRED", "The principal has expired."},
    Entry{Reason::kPrincipalRevoked, "PRINCIPAL_REVOKED", "The principal was revoked."},
    Entry{Reason::kPrincipalSuspended, "PRINCIPAL_SUSPENDED", "The principal is suspended."},
    Entry{Reason::kInvalidToken, "INVALID_TOKEN", "The token names no principal."},
    Entry{Reason::kGrantorRevoked, "GRANTOR_REVOKED", "A grantor of this right is no longer active."},
    Entry{Reason::kDelegationRevoked, "DELEGATION_REVOKED", "The delegation of this right was revoked."},
    Entry{Reason::kDelegationExpired, "DELEGATION_EXPIRED", "The delegation of this right has expired."},
    Entry{Reason::kOutsideTimeWindow, "OUTSIDE_TIME_WINDOW", "The rule does not apply at this time of day."},
    Entry{Reason::kIpNotAllowed, "IP_NOT_ALLOWED", "The caller's address is not on the rule's list."},
    Entry{Reason::kArgumentNotAllowed, "ARGUMENT_NOT_ALLOWED", "An argument does not match the rule's patterns."},
    Entry{Reason::kApprovalRequired, "APPROVAL_REQUIRED", "The call needs an approval that names it."},
    Entry{Reason::kRateLimited, "RATE_LIMITED", "The rule's calls of this hour are used up."},
    Entry{Reason::kAuditUnavailable, "AUDIT_UNAVAILABLE", "The decision could not be recorded."},
    Entry{Reason::kInvalidPattern, "INVALID_PATTERN", "The resource pattern is malformed."},
    Entry{Reason::kInvalidPermission, "INVALID_PERMISSION", "The rule is malformed."},
    Entry{Reason::kInvalidConstraint, "INVALID_CONSTRAINT", "A constraint is unknown or malformed."},
    Entry{Reason::kNotASubset, "NOT_A_SUBSET", "The grantor does not hold all that it would delegate."},
    Entry{Reason::kDepthExceeded, "DEPTH_EXCEEDED", "The chain of delegations would be too long."},
    Entry{Reason::kSelfDelegation, "SELF_DELEGATION", "A principal cannot delegate to itself."},
    Entry{Reason::kDelegationCycle, "DELEGATION_CYCLE", "The delegation would close a circle."},
    Entry{Reason::kExpiryInPast, "EXPIRY_IN_PAST", "The expiry is not in the future."},
    Entry{Reason::kTargetNotFound, "TARGET_NOT_FOUND", "There is no such target."},
    Entry{Reason::kTargetNotActive, "TARGET_NOT_ACTIVE", "The target is not active."},
    Entry{Reason::kGrantorNotActive, "GRANTOR_NOT_ACTIVE", "The grantor is not active."},
    Entry{Reason::kEmptyPermissions, "EMPTY_PERMISSIONS", "The list of rules is empty."},
    Entry{Reason::kAlreadyExists, "ALREADY_EXISTS", "The id is taken."},
    Entry{Reason::kLimitExceeded, "LIMIT_EXCEEDED", "A limit on the number of entries is reached."},
    Entry{Reason::kDelegationNotFound, "DELEGATION_NOT_FOUND", "There is no such delegation."},
    Entry{Reason::kApprovalNotFound, "APPROVAL_NOT_FOUND", "There is no such approval request."},
    Entry{Reason::kApprovalNotPending, "APPROVAL_NOT_PENDING", "The approval request is decided already."},
    Entry{Reason::kApprovalExpired, "APPROVAL_EXPIRED", "The approval request has expired."},
    Entry{Reason::kApprovalSelf, "APPROVAL_SELF", "A requester cannot decide its own request."},
    Entry{Reason::kNotAnApprover, "NOT_AN_APPROVER", "The request does not name this approver."},
    Entry{Reason::kAlreadyDecided, "ALREADY_DECIDED", "This approver has decided already."},
    Entry{Reason::kApprovalHashMismatch, "APPROVAL_HASH_MISMATCH", "The approval names another call."},
    Entry{Reason::kInvalidApproval, "INVALID_APPROVAL", "The approval request is malformed."},
};

constexpr bool InOrder() {
  for (std::size_t i = 0; i < kEntries.size(); ++i)
    if (kEntries[i].reason != static_cast<Reason>(i)) return false;
  return kEntries.size() == static_cast<std::size_t>(Reason::kInvalidApproval) + 1;
}
static_assert(InOrder());

}  // namespace

std::string_view ReasonName(Reason reason) noexcept { return kEntries[static_cast<std::size_t>(reason)].name; }
std::string_view ReasonSentence(Reason reason) noexcept { return kEntries[static_cast<std::size_t>(reason)].sentence; }

}  // namespace assay::authz
