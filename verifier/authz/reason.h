// SPDX-License-Identifier: Apache-2.0
// The stable machine codes of decisions, refused writes and approvals. A refusal is a value, never an Error.
#pragma once

#include <cstdint>
#include <string_view>

namespace assay::authz {

enum class Reason : std::uint8_t {
  kNone,  // allowed, or done
  // Decisions.
  kNoPermission,
  kExplicitDeny,
  kPrincipalNotFound,
  kPrincipalExpired,
  kPrincipalRevoked,
  kPrincipalSuspended,
  kInvalidToken,
  kGrantorRevoked,
  kDelegationRevoked,
  kDelegationExpired,
  kOutsideTimeWindow,
  kIpNotAllowed,
  kArgumentNotAllowed,
  kApprovalRequired,
  kRateLimited,
  kAuditUnavailable,  // a decision that could not be recorded is a denial
  // Refused writes.
  kInvalidPattern,
  kInvalidPermission,
  kInvalidConstraint,
  kNotASubset,
  kDepthExceeded,
  kSelfDelegation,
  kDelegationCycle,
  kExpiryInPast,
  kTargetNotFound,
  kTargetNotActive,
  kGrantorNotActive,
  kEmptyPermissions,
  kAlreadyExists,
  kLimitExceeded,
  kDelegationNotFound,
  // Approvals.
  kApprovalNotFound,
  kApprovalNotPending,
  kApprovalExpired,
  kApprovalSelf,
  kNotAnApprover,
  kAlreadyDecided,
  kApprovalHashMismatch,
  kInvalidApproval,
};

std::string_view ReasonName(Reason reason) noexcept;      // "NO_PERMISSION"
std::string_view ReasonSentence(Reason reason) noexcept;  // for people

}  // namespace assay::authz
