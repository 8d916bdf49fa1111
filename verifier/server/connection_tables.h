// SPDX-License-Identifier: Apache-2.0
// The tables that all connections share: who holds how much, which handshakes are under way, what a drain must reach.
// All of them for any thread.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sdk/core/result.h"
#include "verifier/server/metrics.h"

namespace assay::server {

// An IPv4 address mapped into IPv6 (as a dual-stack listener sees it) as IPv4 text; anything else unchanged.
std::string PlainAddress(const std::string& address);
// The key of limits: an IPv4 address, or the /64 of an IPv6 address.
std::string LimitKey(const std::string& address);

// Addresses and networks of the balancers, compared as numbers and not as text.
class BalancerList {
 public:
  static Result<BalancerList> Parse(const std::vector<std::string>& entries);  // "10.0.0.7", "10.0.0.0/24", "fd00::/64"
  bool Holds(const std::string& address) const noexcept;

 private:
  struct Network {
    std::array<std::uint8_t, 16> bytes{};
    unsigned bits = 0;
  };  // IPv4 as mapped into IPv6
  std::vector<Network> networks_;
};

// Things held by source; its memory is bounded by the number of things there are.
class SourceTable {
 public:
  struct Limits {
    std::size_t total = 0, per_source = 0;
  };
  // False when all sources together or this one hold their limit already.
  bool Enter(const std::string& source, Limits limits);
  void Leave(const std::string& source);

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::size_t> counts_;
  std::size_t total_ = 0;
};

// Handshakes under way, oldest first. A full table drops its oldest: who fills it must do so again within each round
// trip to keep others out, not once within each deadline.
class HandshakeTable {
 public:
  using Abort = std::function<void()>;  // called on any thread: posts to the connection's loop
  std::uint64_t Enter(Abort abort);
  void Leave(std::uint64_t id);
  // Aborts the oldest ones beyond `limit`; how many.
  std::size_t Trim(std::size_t limit);

 private:
  std::mutex mutex_;
  std::map<std::uint64_t, Abort> aborts_;
  std::uint64_t next_ = 1;
};

// Every open connection, so that a drain can reach them. `quit` is called on any thread and posts to the
// connection's loop: close when idle, else finish the request first; `now` closes at once.
class OpenConnections {
 public:
  using Quit = std::function<void(bool now)>;
  std::uint64_t Enter(Quit quit);
  void Leave(std::uint64_t id);
  bool draining() const noexcept { return draining_.load(); }
  // Returns when every connection is gone: idle ones at once, busy ones when done, all of them after `patience`.
  void Drain(std::chrono::milliseconds patience);

 private:
  std::mutex mutex_;
  std::condition_variable empty_;
  std::map<std::uint64_t, Quit> quits_;
  std::uint64_t next_ = 1;
  std::atomic<bool> draining_{false};
};

// One of a gauge, for as long as it lives. Moves with the connection it counts.
class GaugeHold {
 public:
  explicit GaugeHold(Gauge& gauge) noexcept : gauge_(&gauge) { gauge_->Add(1); }
  ~GaugeHold() {
    if (gauge_ != nullptr) gauge_->Add(-1);
  }
  GaugeHold(GaugeHold&& other) noexcept : gauge_(std::exchange(other.gauge_, nullptr)) {}
  GaugeHold& operator=(GaugeHold&&) = delete;

 private:
  Gauge* gauge_;
};

}  // namespace assay::server
