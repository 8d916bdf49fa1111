// SPDX-License-Identifier: Apache-2.0
#include "verifier/authz/rate.h"

#include <algorithm>

namespace assay::authz {

bool RateLedger::Fits(std::span<const Charge> charges, std::int64_t now) const {
  return std::all_of(charges.begin(), charges.end(), [&](const Charge& charge) {
    if (charge.limit == 0) return false;
    const auto found = windows_.find(charge.key);
    if (found == windows_.end()) return true;
    std::uint64_t calls = found->second.calls;
    for (const auto& second : found->second.seconds) {
      if (second.at > now - kHour) break;
      calls -= second.calls;
    }
    return calls < charge.limit;
  });
}

bool RateLedger::Peek(std::span<const Charge> charges, std::int64_t now) const {
  const std::lock_guard lock(mutex_);
  return Fits(charges, now);
}

bool RateLedger::Take(std::span<const Charge> charges, std::int64_t now) {
  const std::lock_guard lock(mutex_);
  if (!Fits(charges, now)) return false;
  for (const Charge& charge : charges) {
    Window& window = windows_[charge.key];
    while (!window.seconds.empty() && window.seconds.front().at <= now - kHour) {
      window.calls -= window.seconds.front().calls;
      window.seconds.pop_front();
    }
    // A clock that was set back adds to the newest second: the count then lasts longer, never shorter.
    if (!window.seconds.empty() && window.seconds.back().at >= now) ++window.seconds.back().calls;
    else window.seconds.push_back({now, 1});
    ++window.calls;
  }
  return true;
}

void RateLedger::Forget(const std::string& key) {
  const std::lock_guard lock(mutex_);
  windows_.erase(key);
}

}  // namespace assay::authz
