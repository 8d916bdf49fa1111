// SPDX-License-Identifier: Apache-2.0
// Enrollment over HTTP: begin, complete, renew. The record is durable before the store is written, and the store
// before the reply.
#pragma once

#include <functional>
#include <vector>

#include "verifier/attest/fence.h"
#include "verifier/audit/audit_log.h"
#include "verifier/enrollment/service.h"
#include "verifier/server/attestation.h"
#include "verifier/server/http.h"
#include "verifier/server/work_pool.h"
#include "verifier/store/aik_cache.h"

namespace assay::server {

// All outlive the routes.
struct EnrollDeps {
  enrollment::EnrollmentService& service;
  Attestation& attestation;
  attest::Fence& fence;
  store::AikCache& aiks;
  audit::AuditLog& audit;
  WorkPool& work;
  std::function<std::uint64_t()> now_ms;
};

class EnrollRoutes {
 public:
  explicit EnrollRoutes(EnrollDeps deps) : deps_(std::move(deps)) {}
  std::vector<Route> Routes();  // for the network listener; `this` outlives them
  struct Counts {
    Counter begun, completed, renewed, refused;
  };
  const Counts& counts() const noexcept { return counts_; }

 private:
  void HandleBegin(Request request, Responder respond);
  void HandleComplete(Request request, Responder respond);
  void HandleRenew(Request request, Responder respond);
  void RecordAndCommit(enrollment::Pending pending, std::optional<tpm::ClockInfo> clock, Responder respond);
  void Commit(const enrollment::Pending& pending, const Responder& respond);
  void Refuse(const Responder& respond, const ErrorReply& refusal);

  EnrollDeps deps_;
  Counts counts_;
};

}  // namespace assay::server
