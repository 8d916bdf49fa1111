// SPDX-License-Identifier: Apache-2.0
// Counters, gauges and histograms without locks, and their Prometheus text (exposition format 0.0.4).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
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
  std::int64_t Add(std::int64_t change) noexcept {
    return value_.fetch_add(change, std::memory_order_acq_rel) + change;
  }
  std::int64_t value() const noexcept { return value_.load(std::memory_order_acquire); }

 private:
  std::atomic<std::int64_t> value_{0};
};

// How values spread over fixed upper bounds. `bounds` ascend; what is above the last is counted too.
class Histogram {
 public:
  explicit Histogram(std::vector<double> bounds);
  void Observe(double value) noexcept;
  const std::vector<double>& bounds() const noexcept { return bounds_; }
  std::uint64_t in_bucket(std::size_t index) const noexcept {
    return buckets_[index].load(std::memory_order_relaxed);
  }  // bounds().size(): above
  double sum() const noexcept { return sum_.load(std::memory_order_relaxed); }

 private:
  std::vector<double> bounds_;
  std::unique_ptr<std::atomic<std::uint64_t>[]> buckets_;
  std::atomic<double> sum_{0};
};

// Names and readers of everything measured. Any thread; readers run under the page's lock and must not touch the page.
class MetricsPage {
 public:
  using Read = std::function<double()>;
  // `labels` as in {outcome="judged"}, or empty. Lines of one name stand together in the order they were added.
  void AddCounter(std::string name, std::string help, std::string labels, Read read);
  void AddGauge(std::string name, std::string help, std::string labels, Read read);
  void AddHistogram(std::string name, std::string help, std::string labels,
                    const Histogram& histogram);  // outlives the page
  std::string Text() const;

 private:
  struct Line {
    std::string labels;
    Read read;
    const Histogram* histogram = nullptr;
  };
  struct Family {
    std::string name, help;
    const char* type;
    std::vector<Line> lines;
  };
  void Add(std::string name, std::string help, const char* type, Line line);
  mutable std::mutex mutex_;
  std::vector<Family> families_;
};

}  // namespace assay::server
