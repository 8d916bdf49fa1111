// SPDX-License-Identifier: Apache-2.0
// The verifier's side of operator_api.h. Blocking: each request runs where `run` puts it, never on a network loop,
// since it waits for audit barriers and the store.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sdk/core/result.h"
#include "verifier/audit/audit_log.h"
#include "verifier/server/http.h"
#include "verifier/store/store.h"

namespace assay::server {

// A policy file that was read and checked, and is not in force yet.
struct PreparedPolicy {
  std::string old_digest;  // "sha256:..." of the policy in force
  std::string new_digest;
  std::function<void()> apply;  // puts it in force; cannot fail
};

// All outlive the routes. Callbacks run on the thread of the request.
struct OperatorDeps {
  store::Store& store;
  audit::AuditLog& audit;
  std::function<Result<PreparedPolicy>()> prepare_policy;
  std::function<Status(const Digest& host_id)> accept_reset;  // the fence's part, after the store's
  std::function<void(const Digest& host_id)> host_changed;    // drop what is cached of it: forgotten or replaced
  std::function<void(const Digest& host_id)>
      host_forgotten;  // after host_changed: its enrollment is gone, its clock stays
  std::function<std::vector<std::pair<std::string, std::string>>()> status;  // more lines for `status`
  std::optional<std::uint32_t> operator_gid;       // members may, beside root and the verifier's own user
  std::function<std::uint64_t()> now_ms;           // since the epoch
  std::function<void(std::function<void()>)> run;  // unset: on the caller's thread
};

class OperatorRoutes {
 public:
  explicit OperatorRoutes(OperatorDeps deps);
  ~OperatorRoutes();
  std::vector<Route> Routes();              // for the operator listener; `this` outlives them
  Response Handle(const Request& request);  // the whole of one request, blocking

 private:
  struct Calls;
  std::unique_ptr<Calls> calls_;
};

}  // namespace assay::server
