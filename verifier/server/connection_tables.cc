// SPDX-License-Identifier: Apache-2.0
#include "verifier/server/connection_tables.h"

#include <arpa/inet.h>

#include <charconv>
#include <limits>
#include <optional>

#include "sdk/core/bytes.h"

namespace assay::server {
namespace {

using Address = std::array<std::uint8_t, 16>;
constexpr std::array<std::uint8_t, 12> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
constexpr unsigned kV4Offset = 96;  // bits of an IPv4 address's place within a mapped one
constexpr unsigned kV6Bits = 128;

bool IsV4(const Address& address) noexcept { return Equal(Bytes(address).first(kMapped.size()), kMapped); }

std::optional<Address> ParseAddress(const std::string& text) noexcept {
  Address address{};
  if (::inet_pton(AF_INET6, text.c_str(), address.data()) == 1) return address;
  std::array<std::uint8_t, 4> v4{};
  if (::inet_pton(AF_INET, text.c_str(), v4.data()) != 1) return std::nullopt;
  CopyBytes(kMapped, MutableBytes(address).first(kMapped.size()));
  CopyBytes(v4, MutableBytes(address).subspan(kMapped.size()));
  return address;
}

bool SamePrefix(const Address& a, const Address& b, unsigned bits) noexcept {
  const unsigned whole = bits / 8, rest = bits % 8;
  if (!Equal(Bytes(a).first(whole), Bytes(b).first(whole))) return false;
  return rest == 0 || ((a[whole] ^ b[whole]) >> (8 - rest)) == 0;
}

}  // namespace

std::string PlainAddress(const std::string& address) {
  const auto parsed = ParseAddress(address);
  if (!parsed || !IsV4(*parsed)) return address;
  std::array<char, INET_ADDRSTRLEN> text{};
  return ::inet_ntop(AF_INET, parsed->data() + kMapped.size(), text.data(), text.size()) == nullptr
             ? address
             : std::string(text.data());
}

std::string LimitKey(const std::string& address) {
  const auto parsed = ParseAddress(address);
  if (!parsed) return address;
  if (IsV4(*parsed)) return "v4:" + ToHex(Bytes(*parsed).subspan(kMapped.size()));
  return "v6:" + ToHex(Bytes(*parsed).first(8));
}

Result<BalancerList> BalancerList::Parse(const std::vector<std::string>& entries) {
  BalancerList list;
  for (const std::string& entry : entries) {
    const std::size_t slash = entry.find('/');
    const auto address = ParseAddress(entry.substr(0, slash));
    if (!address) return MakeError(Code::kConfig, "balancers: \"" + entry + "\" is no IP address or network");
    const bool v4 = IsV4(*address);
    const unsigned most = v4 ? kV6Bits - kV4Offset : kV6Bits;
    unsigned bits = most;
    if (slash != std::string::npos) {
      const std::string_view text = std::string_view(entry).substr(slash + 1);
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bits);
      if (error != std::errc() || end != text.data() + text.size() || bits > most || bits == 0) {
        return MakeError(Code::kConfig,
                         "balancers: \"" + entry + "\" needs 1 to " + std::to_string(most) + " bits after the slash");
      }
    }
    list.networks_.push_back({*address, bits + (v4 ? kV4Offset : 0)});
  }
  return list;
}

bool BalancerList::Holds(const std::string& address) const noexcept {
  if (networks_.empty()) return false;
  const auto parsed = ParseAddress(address);
  if (!parsed) return false;
  for (const Network& network : networks_) {
    if (SamePrefix(*parsed, network.bytes, network.bits)) return true;
  }
  return false;
}

bool SourceTable::Enter(const std::string& source, Limits limits) {
  const std::lock_guard lock(mutex_);
  if (total_ >= limits.total) return false;
  std::size_t& count = counts_[source];
  if (count >= limits.per_source) {
    if (count == 0) counts_.erase(source);
    return false;
  }
  ++count;
  ++total_;
  return true;
}

void SourceTable::Leave(const std::string& source) {
  const std::lock_guard lock(mutex_);
  const auto found = counts_.find(source);
  if (found == counts_.end()) return;
  --total_;
  if (--found->second == 0) counts_.erase(found);
}

std::uint64_t HandshakeTable::Enter(Abort abort) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t id = next_++;
  aborts_.emplace(id, std::move(abort));
  return id;
}

void HandshakeTable::Leave(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  aborts_.erase(id);
}

std::size_t HandshakeTable::Trim(std::size_t limit) {
  std::vector<Abort> dropped;
  {
    const std::lock_guard lock(mutex_);
    while (aborts_.size() > limit) {
      dropped.push_back(std::move(aborts_.begin()->second));
      aborts_.erase(aborts_.begin());
    }
  }
  for (const Abort& abort : dropped) abort();
  return dropped.size();
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

void OpenConnections::Drain(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  draining_ = true;
  for (const auto& [id, quit] : quits_) quit(false);
  if (empty_.wait_for(lock, patience, [this] { return quits_.empty(); })) return;
  for (const auto& [id, quit] : quits_) quit(true);
  // A connection told to close holds nothing but operations that end at once, so this wait has an end.
  empty_.wait(lock, [this] { return quits_.empty(); });
}

}  // namespace assay::server
