// SPDX-License-Identifier: Apache-2.0
#include "verifier/server/metrics.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

namespace assay::server {

void MetricsPage::Add(std::string name, std::string help, const char* type, Line line) {
  const auto found = std::find_if(families_.begin(), families_.end(), [&](const Family& family) { return family.name == name; });
  if (found != families_.end()) found->lines.push_back(std::move(line));
  else families_.push_back({std::move(name), std::move(help), type, {std::move(line)}});
}

void MetricsPage::AddCounter(std::string name, std::string help, std::string labels, Read read) {
  Add(std::move(name), std::move(help), "counter", {std::move(labels), std::move(read)});
}

void MetricsPage::AddGauge(std::string name, std::string help, std::string labels, Read read) {
  Add(std::move(name), std::move(help), "gauge", {std::move(labels), std::move(read)});
}

std::string MetricsPage::Text() const {
  std::string text;
  for (const auto& family : families_) {
    text += "# HELP " + family.name + " " + family.help + "\n# TYPE " + family.name + " " + family.type + "\n";
    for (const auto& line : family.lines) {
      std::array<char, 40> number{};
      std::snprintf(number.data(), number.size(), " %.17g\n", line.read());
      text += family.name + line.labels + number.data();
    }
  }
  return text;
}

}  // namespace assay::server
