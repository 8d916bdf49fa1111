// SPDX-License-Identifier: Apache-2.0
// Counters and gauges without locks, and their Prometheus text (exposition format 0.0.4).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace assay::server {

class Counter {
 public:
  void Add(std::uint64_t count = 1) noexcept { value_.fetch_add(count, std::memory_order_relaxed); }
  std::uint64_t value() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

class Gauge {
 public:
  std::int64_t Add(std::int64_t change) noexcept { return value_.fetch_add(change, std::memory_order_acq_rel) + change; }
  std::int64_t value() const noexcept { return value_.load(std::memory_order_acquire); }

 private:
  std::atomic<std::int64_t> value_{0};
};

// Names and readers of everything measured; filled before serving, read by any thread.
class MetricsPage {
 public:
  using Read = std::function<double()>;
  // `labels` as in {outcome="judged"}, or empty. Lines of one name stand together in the order they were added.
  void AddCounter(std::string name, std::string help, std::string labels, Read read);
  void AddGauge(std::string name, std::string help, std::string labels, Read read);
  std::string Text() const;

 private:
  struct Line { std::string labels; Read read; };
  struct Family { std::string name, help; const char* type; std::vector<Line> lines; };
  void Add(std::string name, std::string help, const char* type, Line line);
  std::vector<Family> families_;
};

}  // namespace assay::server
