// SPDX-License-Identifier: Apache-2.0
// The policy in force, with the roots it names. A reload swaps it whole; a request keeps the one it started with.
#pragma once

#include <atomic>
#include <memory>

#include "sdk/config/policy.h"
#include "verifier/enrollment/service.h"

namespace assay::server {

struct LoadedPolicy {
  config::Policy policy;
  std::shared_ptr<const enrollment::EnrollmentPolicy> enrollment;
};

class PolicyHolder {
 public:
  // shared_ptr: owned by the holder and by each request under way.
  using Snapshot = std::shared_ptr<const config::Policy>;

  explicit PolicyHolder(LoadedPolicy loaded) { Set(std::move(loaded)); }
  Snapshot Get() const noexcept {
    const auto loaded = std::atomic_load(&current_);
    return Snapshot(loaded, &loaded->policy);
  }
  std::shared_ptr<const enrollment::EnrollmentPolicy> Enrollment() const noexcept {
    return std::atomic_load(&current_)->enrollment;
  }
  void Set(LoadedPolicy loaded) {
    std::atomic_store(&current_, std::make_shared<const LoadedPolicy>(std::move(loaded)));
  }

 private:
  std::shared_ptr<const LoadedPolicy> current_;
};

}  // namespace assay::server
