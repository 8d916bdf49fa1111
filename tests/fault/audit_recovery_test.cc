// SPDX-License-Identifier: Apache-2.0
// What a crash leaves is repaired and recorded; what a crash can't explain refuses to start.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/support/trail.h"

namespace assay::audit {
namespace {

using test::ReadBytes;
using test::Record;
using test::Trail;
using test::WriteBytes;

// Two lines of one batch that was never acknowledged, as the writer would have written them.
Buffer PendingBatch(const Trail& trail, ChainState state, int records) {
  Buffer out;
  const std::uint64_t durable = state.next - 1;
  for (int i = 0; i < records; ++i) AppendChained(out, trail.keys, state, {1, Kind::kRecord, durable}, Record(100 + i));
  return out;
}

struct Crashed {
  Trail trail;
  Buffer good;
  std::size_t end = 0;
  ChainState state;
  explicit Crashed(int records) {
    trail.Fill(records);
    good = ReadBytes(trail.Segment(1));
    end = Trail::Lines(good).back();
    FaultList faults;
    state = ChainState{};
    (void)CheckSegment({trail.keys, 1, good, true}, state, faults, {});
    REQUIRE(faults.empty());
  }
  void Put(Bytes tail) {
    Buffer bad = good;
    CopyBytes(tail, MutableBytes(bad).subspan(end, tail.size()));
    WriteBytes(trail.Segment(1), bad);
  }
};

TEST_CASE("a batch torn at any byte is cut into quarantine and the chain says so") {
  Crashed crashed(2);
  const Buffer batch = PendingBatch(crashed.trail, crashed.state, 2);
  const std::size_t first = Trail::Lines(batch)[1];
  for (std::size_t size = 1; size < batch.size(); size += 3) {
    if (size == first) continue;
    INFO("torn at ", size);
    for (const auto& entry : std::filesystem::directory_iterator(crashed.trail.options.directory)) {
      if (entry.path().filename().string().starts_with("quarantine-")) std::filesystem::remove(entry.path());
    }
    crashed.Put(Bytes(batch).first(size));
    {
      auto log = FileAuditLog::Open(crashed.trail.options, crashed.trail.keys);
      REQUIRE_MESSAGE(log.ok(), (log.ok() ? std::string() : log.error().ToString()));
      const std::size_t kept = size > first ? first : 0;
      REQUIRE((*log)->recovered_bytes() == size - kept);
      const Buffer quarantined = ReadBytes(crashed.trail.options.directory + "/" + (*log)->quarantine());
      REQUIRE(Equal(quarantined, Bytes(batch).subspan(kept, size - kept)));
      REQUIRE((*log)->AppendAndWait(Record(7)).ok());
    }
    const VerifyReport report = crashed.trail.Verify();
    INFO(ReportText(report));
    REQUIRE(report.ok());
    REQUIRE(report.notes.size() == 1);
    REQUIRE(report.records == (size > first ? 4U : 3U));
    const Buffer content = ReadBytes(crashed.trail.Segment(1));
    REQUIRE(AsText(content).find("{\"audit\":\"recovered\",\"segment\":1,") != std::string_view::npos);
  }
}

TEST_CASE("a batch whose first blocks were lost while later ones reached the disk is cut as well") {
  Crashed crashed(2);
  Buffer batch = PendingBatch(crashed.trail, crashed.state, 4);
  const auto lines = Trail::Lines(batch);
  std::fill(batch.begin(), batch.begin() + static_cast<std::ptrdiff_t>(lines[2] + 20), std::uint8_t{0});
  crashed.Put(batch);
  auto log = FileAuditLog::Open(crashed.trail.options, crashed.trail.keys);
  REQUIRE(log.ok());
  CHECK((*log)->recovered_bytes() == batch.size());
  log->reset();
  CHECK(crashed.trail.Verify().ok());
  CHECK(crashed.trail.Verify().records == 2);
}

TEST_CASE("damage to any line that a later one calls acknowledged refuses to start and names the place") {
  Crashed crashed(3);
  const auto lines = Trail::Lines(crashed.good);
  for (std::size_t i = 0; i + 2 < lines.size(); ++i) {  // all but the closing line
    for (const std::size_t at : {lines[i], lines[i] + 9, lines[i] + 60, lines[i + 1] - 8, lines[i + 1] - 1}) {
      Buffer bad = crashed.good;
      bad[at] ^= 2;
      WriteBytes(crashed.trail.Segment(1), bad);
      const auto refused = FileAuditLog::Open(crashed.trail.options, crashed.trail.keys);
      INFO("byte ", at);
      REQUIRE_FALSE(refused.ok());
      CHECK(refused.error().code == Code::kMalformed);
      CHECK(refused.error().detail.find("segment 1, record " + std::to_string(i + 1) + ", byte " +
                                        std::to_string(lines[i]) + ":") != std::string::npos);
      CHECK(ReadBytes(crashed.trail.Segment(1)) == bad);  // nothing was touched
    }
  }
}

TEST_CASE("a torn tail that the store knows as acknowledged refuses to start") {
  Crashed crashed(2);
  const Buffer batch = PendingBatch(crashed.trail, crashed.state, 1);
  crashed.Put(Bytes(batch).first(batch.size() - 4));
  crashed.trail.options.acknowledged = crashed.state.next;
  const auto refused = FileAuditLog::Open(crashed.trail.options, crashed.trail.keys);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().detail.find("acknowledged_record_lost") != std::string::npos);
  crashed.trail.options.acknowledged = crashed.state.next - 1;
  CHECK(FileAuditLog::Open(crashed.trail.options, crashed.trail.keys).ok());
}

TEST_CASE("a truncated last segment is no crash of ours and refuses to start") {
  Crashed crashed(2);
  WriteBytes(crashed.trail.Segment(1), Bytes(crashed.good).first(crashed.end));
  CHECK(FileAuditLog::Open(crashed.trail.options, crashed.trail.keys).error().detail.find("truncated") !=
        std::string::npos);
}

TEST_CASE("a rotation cut short before, within and after its seal is finished at the next start") {
  Trail trail;
  trail.Fill(40, 300);
  const std::uint64_t last = trail.Verify().segments;
  REQUIRE(last > 2);
  // Back to the moment in which segment 2 had just become full: 3 holds its header, 2 lacks its seal.
  for (std::uint64_t n = 4; n <= last; ++n) std::filesystem::remove(trail.Segment(n));
  const Buffer third = ReadBytes(trail.Segment(3));
  Buffer header(third.begin(), third.begin() + static_cast<std::ptrdiff_t>(Trail::Lines(third)[1]));
  header.resize(trail.options.segment_bytes, 0);
  const Buffer second = ReadBytes(trail.Segment(2));
  const auto lines = Trail::Lines(second);
  const std::size_t seal_at = lines[lines.size() - 2];
  for (std::size_t written = 0; written <= second.size() - seal_at; written += 11) {
    INFO("bytes of the seal ", written);
    WriteBytes(trail.Segment(3), header);
    Buffer unsealed(second.begin(), second.begin() + static_cast<std::ptrdiff_t>(seal_at + written));
    unsealed.resize(trail.options.segment_bytes, 0);
    WriteBytes(trail.Segment(2), unsealed);
    if (written == 0) {
      const VerifyReport before = trail.Verify();
      CHECK(before.ok());
      CHECK(before.notes.size() == 1);
    }
    auto log = FileAuditLog::Open(trail.options, trail.keys);
    REQUIRE_MESSAGE(log.ok(), (log.ok() ? std::string() : log.error().ToString()));
    REQUIRE((*log)->AppendAndWait(Record(5)).ok());
    log->reset();
    REQUIRE(ReadBytes(trail.Segment(2)) == second);
    const VerifyReport report = trail.Verify();
    INFO(ReportText(report));
    REQUIRE(report.ok());
    REQUIRE(report.notes.empty());
  }
}

TEST_CASE("records cut out before an unfinished rotation are not excused by it") {
  Trail trail;
  trail.Fill(40, 300);
  const std::uint64_t last = trail.Verify().segments;
  for (std::uint64_t n = 4; n <= last; ++n) std::filesystem::remove(trail.Segment(n));
  const Buffer third = ReadBytes(trail.Segment(3));
  Buffer header(third.begin(), third.begin() + static_cast<std::ptrdiff_t>(Trail::Lines(third)[1]));
  header.resize(trail.options.segment_bytes, 0);
  WriteBytes(trail.Segment(3), header);
  const Buffer second = ReadBytes(trail.Segment(2));
  const auto lines = Trail::Lines(second);
  Buffer cut(second.begin(), second.begin() + static_cast<std::ptrdiff_t>(lines[lines.size() - 3]));
  cut.resize(trail.options.segment_bytes, 0);
  WriteBytes(trail.Segment(2), cut);
  const VerifyReport report = trail.Verify();
  REQUIRE_FALSE(report.faults.empty());
  CHECK(FaultName(report.faults[0].kind) == "truncated");
  CHECK_FALSE(FileAuditLog::Open(trail.options, trail.keys).ok());
}

TEST_CASE("a prepared segment that a crash left behind is no obstacle") {
  Trail trail;
  trail.Fill(3);
  WriteBytes(trail.options.directory + "/" + kPreparedName, AsBytes("left over"));
  trail.Fill(40, 300);
  CHECK(trail.Verify().ok());
}

}  // namespace
}  // namespace assay::audit
