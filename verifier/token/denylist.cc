// SPDX-License-Identifier: Apache-2.0
#include "verifier/token/denylist.h"

namespace assay::token {

bool Denylist::Add(std::string_view id, std::int64_t token_expires_at, std::int64_t now) {
  const std::lock_guard lock(mutex_);
  while (!by_expiry_.empty() && by_expiry_.begin()->first <= now) {
    const auto oldest = by_expiry_.begin();
    // An id that was listed again with a later expiry stays until then.
    if (const auto found = entries_.find(oldest->second); found != entries_.end() && found->second <= now)
      entries_.erase(found);
    by_expiry_.erase(oldest);
  }
  const auto found = entries_.find(std::string(id));
  if (found != entries_.end() && found->second >= token_expires_at) return true;
  if (by_expiry_.size() >= kDenylistEntries) return false;
  entries_[std::string(id)] = token_expires_at;
  by_expiry_.emplace(token_expires_at, id);
  return true;
}

bool Denylist::Has(std::string_view id) const {
  const std::lock_guard lock(mutex_);
  return entries_.contains(std::string(id));
}

void Denylist::Refreshed(std::int64_t now) {
  const std::lock_guard lock(mutex_);
  refreshed_at_ = now;
}

std::optional<std::int64_t> Denylist::refreshed_at() const {
  const std::lock_guard lock(mutex_);
  return refreshed_at_;
}

std::size_t Denylist::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

}  // namespace assay::token
