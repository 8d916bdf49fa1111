// SPDX-License-Identifier: Apache-2.0
// Calls of the last hour, per rule: a sliding window that is exact to the second. A rule's calls are shared by its
// holder and by all to whom it was delegated. All the rules of one call are charged, or none.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>

namespace assay::authz {

inline constexpr std::int64_t kHour = 3600;

struct Charge {
  std::string key;
  std::uint32_t limit = 0;
};

// Any thread. At most one entry for each second of the last hour and each rule that counts.
class RateLedger {
 public:
  bool Peek(std::span<const Charge> charges, std::int64_t now) const;  // whether Take would succeed
  bool Take(std::span<const Charge> charges, std::int64_t now);
  void Forget(const std::string& key);  // the rule is gone

 private:
  struct Window {
    struct Second {
      std::int64_t at;
      std::uint32_t calls;
    };
    std::deque<Second> seconds;
    std::uint64_t calls = 0;
  };
  bool Fits(std::span<const Charge> charges, std::int64_t now) const;

  mutable std::mutex mutex_;
  std::unordered_map<std::string, Window> windows_;
};

}  // namespace assay::authz
