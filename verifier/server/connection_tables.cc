// SPDX-License-Identifier: Apache-2.0
// The tables that all connections share.
#include <arpa/inet.h>

#include <array>
#include <vector>

#include "verifier/server/connection.h"

namespace assay::server {

bool SourceTable::Enter(const std::string& source, std::size_t limit) {
  const std::lock_guard lock(mutex_);
  std::size_t& count = counts_[source];
  if (count >= limit) return false;
  ++count;
  return true;
}

void SourceTable::Leave(const std::string& source) {
  const std::lock_guard lock(mutex_);
  const auto found = counts_.find(source);
  if (found != counts_.end() && --found->second == 0) counts_.erase(found);
}

std::string LimitKey(const std::string& address) {
  std::array<std::uint8_t, 16> bytes{};
  if (::inet_pton(AF_INET6, address.c_str(), bytes.data()) != 1) return address;
  constexpr std::array<std::uint8_t, 12> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
  if (Equal(Bytes(bytes).first(12), kMapped)) return "v4:" + ToHex(Bytes(bytes).subspan(12));
  return "v6:" + ToHex(Bytes(bytes).first(8));
}

std::uint64_t OpenConnections::Enter(Quit quit) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t id = next_++;
  quits_.emplace(id, std::move(quit));
  return id;
}

void OpenConnections::Leave(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  quits_.erase(id);
  if (quits_.empty()) empty_.notify_all();
}

bool OpenConnections::draining() const {
  const std::lock_guard lock(mutex_);
  return draining_;
}

void OpenConnections::Drain(std::chrono::milliseconds patience) {
  constexpr auto kLastGrace = std::chrono::seconds(2);
  std::unique_lock lock(mutex_);
  draining_ = true;
  for (const auto& [id, quit] : quits_) quit(false);
  if (empty_.wait_for(lock, patience, [this] { return quits_.empty(); })) return;
  for (const auto& [id, quit] : quits_) quit(true);
  empty_.wait_for(lock, kLastGrace, [this] { return quits_.empty(); });
}

}  // namespace assay::server
