// SPDX-License-Identifier: Apache-2.0
// Small audit trails in fresh directories, and their bytes to break.
#pragma once

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/support/temp_dir.h"
#include "verifier/audit/file_log.h"
#include "verifier/audit/verify.h"

namespace assay::test {

inline Buffer ReadBytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  return ToBuffer(AsBytes(text));
}

inline void WriteBytes(const std::string& path, Bytes bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << AsText(bytes);
  out.close();
  ::chmod(path.c_str(), 0600);
}

inline audit::AuditKeys TestKeys(std::uint8_t seed = 1) {
  audit::LogId log{};
  log.fill(seed);
  return audit::AuditKeys(log, Buffer(32, seed));
}

inline std::string Record(int n, std::size_t padding = 0) {
  return "{\"type\":\"test\",\"n\":" + std::to_string(n) + ",\"pad\":\"" + std::string(padding, 'x') + "\"}";
}

// A trail in a directory of its own; small segments, so that rotation is soon.
struct Trail {
  TempDir dir;
  audit::AuditKeys keys = TestKeys();
  audit::LogOptions options{.directory = dir / "trail", .segment_bytes = 6144, .max_record = 1024, .visit = {}};

  std::unique_ptr<audit::FileAuditLog> Open() {
    auto log = audit::FileAuditLog::Open(options, keys);
    REQUIRE_MESSAGE(log.ok(), (log.ok() ? std::string() : log.error().ToString()));
    return std::move(log).value();
  }
  void Fill(int records, std::size_t padding = 0) {
    auto log = Open();
    for (int i = 0; i < records; ++i) REQUIRE(log->AppendAndWait(Record(i, padding)).ok());
  }
  audit::VerifyReport Verify(std::uint64_t at_least = 0) const {
    auto report = audit::VerifyTrail({dir / "trail", at_least}, keys);
    REQUIRE_MESSAGE(report.ok(), (report.ok() ? std::string() : report.error().ToString()));
    return std::move(report).value();
  }
  std::string Segment(std::uint64_t number) const { return dir / ("trail/" + audit::SegmentName(number)); }
  // Where each line of a segment starts, and behind the last one its end.
  static std::vector<std::size_t> Lines(Bytes content) {
    std::vector<std::size_t> starts{0};
    const char* why = nullptr;
    while (const auto line = audit::ParseLine(content.subspan(starts.back()), audit::kMaxRecord, why))
      starts.push_back(starts.back() + line->length);
    return starts;
  }
};

}  // namespace assay::test
