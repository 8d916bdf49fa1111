// SPDX-License-Identifier: Apache-2.0
// The one decision: deny over allow over default deny, through live chains of delegation. Reads the directory afresh
// on every call and remembers nothing. authorize and simulate are this function with other effects.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "verifier/authz/directory.h"
#include "verifier/authz/rate.h"

namespace assay::authz {

struct Call {
  std::string_view principal, action, resource;
  CallFacts facts;
  std::string_view approval_id;  // empty: any approval that names this very call
};

struct TraceLine {
  std::string what;  // "own rule", "link", "deny", ...
  std::string id;
  Reason reason = Reason::kNone;
};

struct Decision {
  Reason reason = Reason::kNoPermission;  // kNone: allowed
  std::string rule_id;                    // the deciding rule, when there is one
  std::vector<std::string> link_ids;      // the chain it came through, from the principal upwards
  bool allowed() const noexcept { return reason == Reason::kNone; }
};

// What a decision consumes. Simulation asks, authorization takes.
class Effects {
 public:
  virtual ~Effects() = default;
  virtual Reason UseApproval(const Call& call) = 0;   // kNone, kApprovalRequired or kApprovalHashMismatch
  virtual void ReturnApproval(const Call& call) = 0;  // the call failed after all
  virtual bool TakeCalls(std::span<const Charge> charges, std::int64_t now) = 0;
};

inline constexpr std::size_t kDecisionSteps = 4096;  // links and rules looked at; beyond them nothing more is allowed

Decision Decide(const Directory& directory, const Call& call, Effects& effects,
                std::vector<TraceLine>* trace = nullptr);

}  // namespace assay::authz
