// SPDX-License-Identifier: Apache-2.0
#include "verifier/server/metrics.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

namespace assay::server {
namespace {

std::string Number(double value) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.17g", value);
  return text.data();
}

// {a="b"} and le into {a="b",le="0.5"}.
std::string WithBound(const std::string& labels, const std::string& bound) {
  const std::string le = "le=\"" + bound + "\"}";
  return labels.empty() ? "{" + le : labels.substr(0, labels.size() - 1) + "," + le;
}

void AppendHistogram(std::string& text, const std::string& name, const std::string& labels,
                     const Histogram& histogram) {
  std::uint64_t count = 0;
  for (std::size_t i = 0; i <= histogram.bounds().size(); ++i) {
    count += histogram.in_bucket(i);
    std::array<char, 40> bound{"+Inf"};
    if (i < histogram.bounds().size()) std::snprintf(bound.data(), bound.size(), "%g", histogram.bounds()[i]);
    text += name + "_bucket" + WithBound(labels, bound.data()) + " " + std::to_string(count) + "\n";
  }
  text += name + "_sum" + labels + " " + Number(histogram.sum()) + "\n";
  text += name + "_count" + labels + " " + std::to_string(count) + "\n";
}

}  // namespace

Histogram::Histogram(std::vector<double> bounds)
    : bounds_(std::move(bounds)), buckets_(std::make_unique<std::atomic<std::uint64_t>[]>(bounds_.size() + 1)) {}

void Histogram::Observe(double value) noexcept {
  const auto at = std::lower_bound(bounds_.begin(), bounds_.end(), value);
  buckets_[static_cast<std::size_t>(at - bounds_.begin())].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
}

void MetricsPage::AddHistogram(std::string name, std::string help, std::string labels, const Histogram& histogram) {
  Add(std::move(name), std::move(help), "histogram", {std::move(labels), {}, &histogram});
}

void MetricsPage::Add(std::string name, std::string help, const char* type, Line line) {
  const std::lock_guard lock(mutex_);
  const auto found =
      std::find_if(families_.begin(), families_.end(), [&](const Family& family) { return family.name == name; });
  if (found != families_.end()) found->lines.push_back(std::move(line));
  else families_.push_back({std::move(name), std::move(help), type, {std::move(line)}});
}

void MetricsPage::AddCounter(std::string name, std::string help, std::string labels, Read read) {
  Add(std::move(name), std::move(help), "counter", {std::move(labels), std::move(read), nullptr});
}

void MetricsPage::AddGauge(std::string name, std::string help, std::string labels, Read read) {
  Add(std::move(name), std::move(help), "gauge", {std::move(labels), std::move(read), nullptr});
}

std::string MetricsPage::Text() const {
  const std::lock_guard lock(mutex_);
  std::string text;
  for (const auto& family : families_) {
    text += "# HELP " + family.name + " " + family.help + "\n# TYPE " + family.name + " " + family.type + "\n";
    for (const auto& line : family.lines) {
      if (line.histogram != nullptr) AppendHistogram(text, family.name, line.labels, *line.histogram);
      else text += family.name + line.labels + " " + Number(line.read()) + "\n";
    }
  }
  return text;
}

}  // namespace assay::server
