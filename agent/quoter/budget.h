// SPDX-License-Identifier: Apache-2.0
// Budgets of quotes: a discrete TPM takes up to a second for one, so nobody may have them all. One thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <unordered_map>

#include "sdk/config/agent_config.h"
#include "sdk/core/result.h"

namespace assay::agent {

// Fills at a rate up to a burst; a quote takes one. Time in milliseconds of a monotonic clock.
class Bucket {
 public:
  bool Take(const config::QuoteBudget& budget, std::uint64_t now_ms) noexcept;
  bool IsFull(const config::QuoteBudget& budget, std::uint64_t now_ms) const noexcept;

 private:
  std::uint64_t Level(const config::QuoteBudget& budget, std::uint64_t now_ms) const noexcept;  // in 1/60000 quotes
  std::uint64_t level_ = 0;
  std::uint64_t at_ms_ = 0;
  bool started_ = false;
};

// One bucket a user. Memory is bounded: full buckets are forgotten first, and with no room left strangers wait.
class UserBudgets {
 public:
  explicit UserBudgets(config::QuoteBudget budget, std::size_t max_users = 1024)
      : budget_(budget), max_users_(max_users) {}
  bool Take(uid_t user, std::uint64_t now_ms);

 private:
  config::QuoteBudget budget_;
  std::size_t max_users_;
  std::unordered_map<uid_t, Bucket> buckets_;
};

}  // namespace assay::agent
