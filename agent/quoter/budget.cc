// SPDX-License-Identifier: Apache-2.0
#include "agent/quoter/budget.h"

#include <algorithm>

namespace assay::agent {
namespace {
constexpr std::uint64_t kQuote = 60'000;  // so that a rate a minute adds `per_minute` each millisecond
}

std::uint64_t Bucket::Level(const config::QuoteBudget& budget, std::uint64_t now_ms) const noexcept {
  const std::uint64_t full = budget.burst * kQuote;
  if (!started_) return full;
  const std::uint64_t elapsed = std::min<std::uint64_t>(now_ms - std::min(now_ms, at_ms_), 86'400'000);
  return std::min(full, level_ + elapsed * budget.per_minute);
}

bool Bucket::Take(const config::QuoteBudget& budget, std::uint64_t now_ms) noexcept {
  const std::uint64_t level = Level(budget, now_ms);
  started_ = true;
  at_ms_ = now_ms;
  level_ = level;
  if (level < kQuote) return false;
  level_ -= kQuote;
  return true;
}

bool Bucket::IsFull(const config::QuoteBudget& budget, std::uint64_t now_ms) const noexcept {
  return Level(budget, now_ms) >= budget.burst * kQuote;
}

bool UserBudgets::Take(uid_t user, std::uint64_t now_ms) {
  if (!buckets_.contains(user) && buckets_.size() >= max_users_) {
    std::erase_if(buckets_, [&](const auto& item) { return item.second.IsFull(budget_, now_ms); });
    if (buckets_.size() >= max_users_) return false;
  }
  return buckets_[user].Take(budget_, now_ms);
}

}  // namespace assay::agent
