// SPDX-License-Identifier: Apache-2.0
// What anyone may read: liveness, readiness, keys, revocations; and metrics for loopback and operators.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "verifier/server/http.h"
#include "verifier/server/metrics.h"
#include "verifier/server/work_pool.h"
#include "verifier/store/store.h"
#include "verifier/token/result_issuer.h"

namespace assay::server {

// All outlive the routes.
struct PublicDeps {
  const token::ResultIssuer& issuer;
  store::Store& store;
  std::function<Status()> ready;
  const MetricsPage& metrics;
  WorkPool& work;
  std::function<std::uint64_t()> now_ms;
};

class PublicRoutes {
 public:
  explicit PublicRoutes(PublicDeps deps) : deps_(std::move(deps)) {}
  std::vector<Route> Routes();  // `this` outlives them

 private:
  Response Revocations();
  std::optional<std::string> FreshRevocations(std::int64_t now) const;
  PublicDeps deps_;
  // One list a second is read and signed, however many ask: strangers may ask as often as they like.
  mutable std::mutex mutex_;
  std::string list_;          // signed
  std::int64_t list_at_ = 0;  // seconds since the epoch
};

}  // namespace assay::server
