// SPDX-License-Identifier: Apache-2.0
// Token ids that are good no more, until the tokens would expire anyway. Any thread.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace assay::token {

inline constexpr std::size_t kDenylistEntries = 1'000'000;

class Denylist {
 public:
  // False when the list is full: the caller must not acknowledge the revocation.
  bool Add(std::string_view id, std::int64_t token_expires_at, std::int64_t now);
  bool Has(std::string_view id) const;
  // A copy of the store's list was taken at `now`; nothing before the first time.
  void Refreshed(std::int64_t now);
  std::optional<std::int64_t> refreshed_at() const;
  std::size_t size() const;

 private:
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::int64_t> entries_;
  std::multimap<std::int64_t, std::string> by_expiry_;
  std::optional<std::int64_t> refreshed_at_;
};

}  // namespace assay::token
