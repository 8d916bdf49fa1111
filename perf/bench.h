// SPDX-License-Identifier: Apache-2.0
// The measuring harness: process CPU clock, several runs in alternating order, medians with lowest and highest, and
// aims as ratios against a bare primitive of the same run. Prints a table, or one JSON array with --json.
// One owner, one thread. Never asserts a time: a missed aim is printed as missed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace assay::perf {

template <typename T>
inline void Keep(const T& value) {  // the optimiser must believe that `value` is used
  asm volatile("" : : "g"(&value) : "memory");
}

// A benchmark of something that does not work measures nothing: ends the program.
inline void Expect(bool held, const char* what) {
  if (held) return;
  std::fprintf(stderr, "perf: %s\n", what);
  std::exit(1);
}

inline double Nanoseconds(clockid_t clock) {
  timespec now{};
  Expect(clock_gettime(clock, &now) == 0, "a clock cannot be read");
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}
inline double CpuNanoseconds() { return Nanoseconds(CLOCK_PROCESS_CPUTIME_ID); }

struct Sample {
  double median = 0, low = 0, high = 0;
};

inline Sample Summarise(std::vector<double> values) {
  Expect(!values.empty(), "a row without a measurement");
  std::sort(values.begin(), values.end());
  return {values[values.size() / 2], values.front(), values.back()};
}

enum class Better : std::uint8_t { kLower, kHigher };

struct Row {
  std::string name;
  std::string unit;
  Sample value;
  double aim = -1;  // negative: reported only
  Better better = Better::kLower;

  bool has_aim() const { return aim >= 0; }
  bool met() const { return better == Better::kLower ? value.median <= aim : value.median >= aim; }
};

// A set of operations measured together: each run times all of them, forward and backward in turn, so that drift of
// the machine hits all alike. Ratios are taken within a run; the row is the median of the ratios.
class Group {
 public:
  Group(std::string name, int argc, char** argv) : name_(std::move(name)) {
    for (int i = 1; i < argc; ++i) {
      if (std::strcmp(argv[i], "--json") == 0) {
        json_ = true;
      } else if (std::strcmp(argv[i], "--quick") == 0) {
        quick_ = true;
      } else if (std::strncmp(argv[i], "--", 2) == 0) {
        std::fprintf(stderr, "usage: %s [--json] [--quick]\n", argv[0]);
        std::exit(2);
      }
    }
  }

  bool quick() const { return quick_; }
  int runs() const { return quick_ ? 3 : 15; }

  using Operation = std::function<void()>;
  std::size_t Add(std::string name, Operation operation) {
    operations_.push_back({std::move(name), std::move(operation), 0, {}});
    return operations_.size() - 1;
  }

  void Run() {
    for (auto& op : operations_) Calibrate(op);
    for (int run = 0; run < runs(); ++run) {
      for (std::size_t i = 0; i < operations_.size(); ++i) {
        Entry& op = operations_[run % 2 == 0 ? i : operations_.size() - 1 - i];
        op.times.push_back(Measure(op));
      }
    }
  }

  Sample Time(std::size_t index) const { return Summarise(operations_[index].times); }
  Sample Ratio(std::size_t index, std::size_t base) const {
    std::vector<double> ratios;
    for (std::size_t run = 0; run < operations_[index].times.size(); ++run) {
      ratios.push_back(operations_[index].times[run] / operations_[base].times[run]);
    }
    return Summarise(std::move(ratios));
  }

  void ReportTime(std::size_t index, double aim_ns = -1) {
    rows_.push_back({operations_[index].name, "ns", Time(index), aim_ns, Better::kLower});
  }
  // `unit`: the name of the base, such as "V".
  void ReportRatio(std::size_t index, std::size_t base, const std::string& unit, double aim = -1) {
    rows_.push_back({operations_[index].name, unit, Ratio(index, base), aim, Better::kLower});
  }
  void Report(Row row) { rows_.push_back(std::move(row)); }

  int Print() const {
    if (json_) PrintJson();
    else PrintTable();
    return std::fflush(stdout) == 0 ? 0 : 1;
  }

 private:
  struct Entry {
    std::string name;
    Operation operation;
    std::uint64_t repeats;
    std::vector<double> times;
  };

  static double Spend(Entry& op) {
    const double start = CpuNanoseconds();
    for (std::uint64_t n = 0; n < op.repeats; ++n) op.operation();
    return CpuNanoseconds() - start;
  }
  static double Measure(Entry& op) { return Spend(op) / static_cast<double>(op.repeats); }
  void Calibrate(Entry& op) const {
    const double budget_ns = quick_ ? 1e6 : 2e7;
    op.repeats = 1;
    while (Spend(op) < budget_ns / 2) op.repeats *= 2;
  }

  static std::string Number(double value) {  // never in scientific notation
    char text[64];
    const int decimals = value >= 1000 ? 0 : value >= 100 ? 1 : value >= 10 ? 2 : 3;
    std::snprintf(text, sizeof(text), "%.*f", decimals, value);
    return text;
  }
  void PrintJson() const {
    std::printf("[");
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const Row& row = rows_[i];
      std::printf("%s\n{\"group\":\"%s\",\"name\":\"%s\",\"unit\":\"%s\",\"median\":%s,\"low\":%s,\"high\":%s,",
                  i == 0 ? "" : ",", name_.c_str(), row.name.c_str(), row.unit.c_str(),
                  Number(row.value.median).c_str(), Number(row.value.low).c_str(), Number(row.value.high).c_str());
      if (row.has_aim()) std::printf("\"aim\":%s,\"met\":%s}", Number(row.aim).c_str(), row.met() ? "true" : "false");
      else std::printf("\"aim\":null,\"met\":null}");
    }
    std::printf("\n]\n");
  }
  void PrintTable() const {
    std::printf("%-58s %10s %10s %10s  %-12s %s\n", name_.c_str(), "median", "low", "high", "unit", "aim");
    for (const auto& row : rows_) {
      std::printf("%-58s %10s %10s %10s  %-12s ", row.name.c_str(), Number(row.value.median).c_str(),
                  Number(row.value.low).c_str(), Number(row.value.high).c_str(), row.unit.c_str());
      if (row.has_aim()) {
        std::printf("%s %s  %s", row.better == Better::kLower ? "<=" : ">=", Number(row.aim).c_str(),
                    row.met() ? "met" : "MISSED");
      }
      std::printf("\n");
    }
  }

  std::string name_;
  std::vector<Entry> operations_;
  std::vector<Row> rows_;
  bool json_ = false;
  bool quick_ = false;
};

}  // namespace assay::perf
