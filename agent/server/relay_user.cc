// SPDX-License-Identifier: Apache-2.0
#include "agent/server/relay_user.h"

#include <pwd.h>

#include <array>
#include <charconv>

#include "agent/server/server.h"

namespace assay::agent {
namespace {
constexpr std::uint64_t kLookAgainMs = 5000;
}

RelayUser::RelayUser(std::string name_or_number) : name_(std::move(name_or_number)) {
  uid_t number = 0;
  const auto [end, error] = std::from_chars(name_.data(), name_.data() + name_.size(), number);
  if (error == std::errc() && end == name_.data() + name_.size()) {
    numeric_ = true;
    uid_ = number;
  }
}

void RelayUser::Look() {
  const std::uint64_t now = MonotonicMs();
  if (looked_ms_ != 0 && now - looked_ms_ < kLookAgainMs) return;
  looked_ms_ = now;
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, 4096> buffer;
  uid_.reset();
  if (::getpwnam_r(name_.c_str(), &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr)
    uid_ = found->pw_uid;
}

bool RelayUser::Is(uid_t uid) {
  // A dynamic user's number changes with each start of its unit, so a name is never kept for long.
  if (!numeric_) Look();
  return uid_ && *uid_ == uid;
}

}  // namespace assay::agent
