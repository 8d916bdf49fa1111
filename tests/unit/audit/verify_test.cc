// SPDX-License-Identifier: Apache-2.0
// Trails that were tampered with: every change is reported with its class and its place.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <thread>

#include "tests/support/trail.h"

namespace assay::audit {
namespace {

using test::ReadBytes;
using test::Record;
using test::Trail;
using test::WriteBytes;

Buffer Without(const Buffer& content, std::size_t from, std::size_t to, bool refill) {
  Buffer out(content.begin(), content.begin() + static_cast<std::ptrdiff_t>(from));
  out.insert(out.end(), content.begin() + static_cast<std::ptrdiff_t>(to), content.end());
  if (refill) out.resize(content.size(), 0);
  return out;
}

Buffer Joined(std::initializer_list<Bytes> parts, std::size_t size) {
  Buffer out;
  for (const Bytes part : parts) out.insert(out.end(), part.begin(), part.end());
  out.resize(size, 0);
  return out;
}

void ExpectOne(const VerifyReport& report, FaultClass kind, std::uint64_t segment, std::size_t offset) {
  INFO(ReportText(report));
  REQUIRE(report.faults.size() == 1);
  CHECK(FaultName(report.faults[0].kind) == FaultName(kind));
  CHECK(report.faults[0].segment == segment);
  CHECK(report.faults[0].offset == offset);
  CHECK_FALSE(report.ok());
}

TEST_CASE("every single flipped bit of a small trail is one fault at its line, and none is silent") {
  Trail trail;
  trail.Fill(2);
  const Buffer good = ReadBytes(trail.Segment(1));
  const auto lines = Trail::Lines(good);
  REQUIRE(lines.size() == 6);  // header, opened, two records, stopped, and the end
  for (std::size_t at = 0; at < good.size(); at += at < lines.back() + 16 ? 1 : 257) {
    const std::size_t line = *(std::upper_bound(lines.begin(), lines.end(), at) - 1);
    for (int bit = 0; bit < 8; ++bit) {
      Buffer bad = good;
      bad[at] = static_cast<std::uint8_t>(bad[at] ^ (1U << bit));
      FaultList faults;
      ChainState chain;
      const SegmentResult result = CheckSegment({trail.keys, 1, bad, true}, chain, faults, {});
      INFO("byte ", at, " bit ", bit);
      if (faults.faults.size() > 1) MESSAGE(faults.faults[0].ToString(), " and ", faults.faults[1].ToString());
      REQUIRE(faults.faults.size() == 1);
      const Fault& fault = faults.faults[0];
      INFO(fault.ToString());
      // Malformed bytes are placed at their line, bytes in the zeros at themselves.
      REQUIRE(fault.offset == (at >= lines.back() ? at : line));
      REQUIRE(result.end == line);
      const FaultClass kind = fault.kind;
      if (at >= lines.back()) REQUIRE(kind == FaultClass::kTornTail);
      else REQUIRE((kind == FaultClass::kMalformed || kind == FaultClass::kAltered || kind == FaultClass::kTornTail));
      if (kind == FaultClass::kTornTail) REQUIRE(at >= lines[lines.size() - 2]);
    }
  }
}

TEST_CASE("no record at or behind a fault is visited as verified") {
  Trail trail;
  trail.Fill(4);
  const Buffer good = ReadBytes(trail.Segment(1));
  const auto lines = Trail::Lines(good);
  Buffer bad = good;
  bad[lines[4] - 10] ^= 1;  // in the second record
  WriteBytes(trail.Segment(1), bad);
  int seen = 0;
  const Status replayed = ReplayRecords(trail.options.directory, trail.keys,
                                        [&](const RecordView& record) { CHECK(record.json == Record(seen++)); });
  REQUIRE_FALSE(replayed.ok());
  CHECK(seen == 1);
  CHECK(replayed.error().detail.find("altered in segment 1, record 4, byte " + std::to_string(lines[3])) !=
        std::string::npos);
}

TEST_CASE("deleted, repeated, swapped and inserted records are told apart") {
  Trail trail;
  trail.Fill(5);
  const Buffer good = ReadBytes(trail.Segment(1));
  const auto at = Trail::Lines(good);
  const Bytes all(good);
  const auto part = [&](std::size_t from, std::size_t to) { return all.subspan(at[from], at[to] - at[from]); };
  const std::size_t end = at.size() - 1;

  SUBCASE("one record deleted") {
    WriteBytes(trail.Segment(1), Without(good, at[3], at[4], true));
    ExpectOne(trail.Verify(), FaultClass::kMissing, 1, at[3]);
    CHECK(trail.Verify().faults[0].detail.find("records 4 to 4") != std::string::npos);
  }
  SUBCASE("two records deleted") {
    WriteBytes(trail.Segment(1), Without(good, at[3], at[5], true));
    ExpectOne(trail.Verify(), FaultClass::kMissing, 1, at[3]);
  }
  SUBCASE("a record repeated") {
    WriteBytes(trail.Segment(1), Joined({part(0, 4), part(3, end)}, good.size()));
    ExpectOne(trail.Verify(), FaultClass::kRepeated, 1, at[4]);
  }
  SUBCASE("two records swapped") {
    WriteBytes(trail.Segment(1), Joined({part(0, 3), part(4, 5), part(3, 4), part(5, end)}, good.size()));
    const VerifyReport report = trail.Verify();
    REQUIRE(report.faults.size() == 2);
    for (const Fault& fault : report.faults) CHECK(FaultName(fault.kind) == "repeated");
    CHECK(report.faults[0].offset == at[3]);
  }
  SUBCASE("a forged record put in place of another") {
    Buffer forged;
    AppendLine(forged, {1, 4, 3, Kind::kRecord}, Record(99));
    WriteBytes(trail.Segment(1), Joined({part(0, 3), forged, part(4, end)}, good.size()));
    const VerifyReport report = trail.Verify();
    REQUIRE_FALSE(report.faults.empty());
    CHECK(FaultName(report.faults[0].kind) == "altered");
    CHECK(report.faults[0].offset == at[3]);
  }
  SUBCASE("text put between two records") {
    WriteBytes(trail.Segment(1), Joined({part(0, 3), AsBytes("hello\n"), part(3, end)}, good.size()));
    ExpectOne(trail.Verify(), FaultClass::kMalformed, 1, at[3]);
  }
  SUBCASE("a hole of zeros in place of a record") {
    Buffer bad = good;
    std::fill(bad.begin() + static_cast<std::ptrdiff_t>(at[3]), bad.begin() + static_cast<std::ptrdiff_t>(at[4]),
              std::uint8_t{0});
    WriteBytes(trail.Segment(1), bad);
    const VerifyReport report = trail.Verify();
    REQUIRE_FALSE(report.faults.empty());
    CHECK(FaultName(report.faults[0].kind) == "malformed");
    CHECK(report.faults[0].record == 4);
  }
  SUBCASE("a file that was made longer") {
    Buffer bad = good;
    bad.resize(good.size() + 100, 0);
    WriteBytes(trail.Segment(1), bad);
    ExpectOne(trail.Verify(), FaultClass::kTruncated, 1, bad.size());
  }
}

TEST_CASE("a segment cut at any byte is reported, at a record's boundary too") {
  Trail trail;
  trail.Fill(3);
  const Buffer good = ReadBytes(trail.Segment(1));
  const auto lines = Trail::Lines(good);
  for (std::size_t size = 0; size < good.size(); size += size < lines.back() + 8 ? 1 : 131) {
    FaultList faults;
    ChainState chain;
    (void)CheckSegment({trail.keys, 1, Bytes(good).first(size), true}, chain, faults, {});
    INFO("cut at ", size);
    REQUIRE_FALSE(faults.empty());
  }
  WriteBytes(trail.Segment(1), Bytes(good).first(lines[4]));
  ExpectOne(trail.Verify(), FaultClass::kTruncated, 1, lines[4]);
}

TEST_CASE("a tail cut off and filled with zeros shows only against a sequence that is known from elsewhere") {
  Trail trail;
  trail.Fill(3);
  const std::uint64_t last = trail.Verify().last_sequence;
  const Buffer good = ReadBytes(trail.Segment(1));
  Buffer cut(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(Trail::Lines(good)[4]));
  cut.resize(good.size(), 0);
  WriteBytes(trail.Segment(1), cut);
  CHECK(trail.Verify().ok());
  CHECK(FaultName(trail.Verify(last).faults.at(0).kind) == "acknowledged_record_lost");
}

TEST_CASE("faults of whole segments have names of their own") {
  Trail trail;
  trail.Fill(40, 300);
  const std::uint64_t segments = trail.Verify().segments;
  REQUIRE(segments > 3);
  const Buffer second = ReadBytes(trail.Segment(2));

  SUBCASE("untouched") { CHECK(trail.Verify().ok()); }
  SUBCASE("one in the middle is gone") {
    std::filesystem::remove(trail.Segment(3));
    ExpectOne(trail.Verify(), FaultClass::kMissingSegment, 3, 0);
  }
  SUBCASE("the first is gone") {
    std::filesystem::remove(trail.Segment(1));
    ExpectOne(trail.Verify(), FaultClass::kMissingSegment, 1, 0);
  }
  SUBCASE("the last is gone") {
    std::filesystem::remove(trail.Segment(segments));
    ExpectOne(trail.Verify(), FaultClass::kMissingSegment, segments, 0);
  }
  SUBCASE("two are swapped") {
    WriteBytes(trail.Segment(2), ReadBytes(trail.Segment(3)));
    WriteBytes(trail.Segment(3), second);
    const VerifyReport report = trail.Verify();
    REQUIRE(report.faults.size() >= 2);
    CHECK(FaultName(report.faults[0].kind) == "misplaced_segment");
    CHECK(report.faults[0].segment == 2);
    CHECK(report.faults[0].detail == "this file is segment 3");
    CHECK(report.faults[1].segment == 3);
  }
  SUBCASE("one of another log lies in its place") {
    Trail other;
    other.keys = test::TestKeys(2);
    other.Fill(40, 300);
    WriteBytes(trail.Segment(2), ReadBytes(other.Segment(2)));
    ExpectOne(trail.Verify(), FaultClass::kForeign, 2, 0);
  }
  SUBCASE("a sealed one is cut at each of its records") {
    const auto lines = Trail::Lines(second);
    for (std::size_t i = 1; i + 1 < lines.size(); ++i) {
      WriteBytes(trail.Segment(2), Bytes(second).first(lines[i]));
      const VerifyReport report = trail.Verify();
      ExpectOne(report, FaultClass::kTruncated, 2, lines[i]);
    }
  }
  SUBCASE("one is empty") {
    WriteBytes(trail.Segment(2), {});
    ExpectOne(trail.Verify(), FaultClass::kTruncated, 2, 0);
  }
  SUBCASE("bytes stand behind a seal") {
    Buffer longer = second;
    longer.push_back('x');
    WriteBytes(trail.Segment(2), longer);
    ExpectOne(trail.Verify(), FaultClass::kMalformed, 2, second.size());
  }
  SUBCASE("one cannot be read") {
    std::filesystem::remove(trail.Segment(2));
    std::filesystem::create_directory(trail.Segment(2));
    ExpectOne(trail.Verify(), FaultClass::kUnreadable, 2, 0);
  }
}

TEST_CASE("another key is one fault a segment, by its name") {
  Trail trail;
  trail.Fill(3);
  const AuditKeys other(trail.keys.log_id(), Buffer(32, 0x77));
  const auto report = VerifyTrail({trail.options.directory, 0}, other);
  REQUIRE(report.ok());
  ExpectOne(*report, FaultClass::kWrongKey, 1, 0);
  CHECK(FileAuditLog::Open(trail.options, other).error().detail.find("wrong_key") != std::string::npos);
  CHECK(FileAuditLog::Open(trail.options, test::TestKeys(9)).error().detail.find("foreign_segment") !=
        std::string::npos);
}

TEST_CASE("an empty or missing directory is an error, not a verified trail") {
  const test::TempDir dir;
  CHECK(VerifyTrail({dir.path(), 0}, test::TestKeys()).error().code == Code::kNotFound);
  CHECK(VerifyTrail({dir / "none", 0}, test::TestKeys()).error().code == Code::kNotFound);
}

TEST_CASE("files that are no part of the trail are named, whatever bytes their names hold") {
  Trail trail;
  trail.Fill(1);
  WriteBytes(trail.options.directory + "/segment-1.log", AsBytes("x"));
  WriteBytes(trail.options.directory + "/odd\xFF\n", AsBytes("x"));
  const VerifyReport report = trail.Verify();
  CHECK(report.ok());
  REQUIRE(report.notes.size() == 2);
  CHECK(ReportJson(report).find("odd??") != std::string::npos);
}

TEST_CASE("a trail verifies beside a log that is writing to it") {
  Trail trail;
  trail.options.segment_bytes = 32 << 10;
  auto log = trail.Open();
  std::atomic<bool> stop{false};
  std::thread producer([&] {
    for (int i = 0; !stop; ++i) {
      if (!log->AppendAndWait(Record(i, 200)).ok()) std::abort();
    }
  });
  for (int i = 0; i < 25; ++i) {
    const VerifyReport report = trail.Verify();
    INFO(ReportText(report));
    CHECK(report.ok());
  }
  stop = true;
  producer.join();
}

struct Said {
  int status = -1;
  std::string text;
};
Said AskOther(const std::string& directory, const std::string& key) {
  const std::string command =
      "python3 '" ASSAY_TEST_DATA "/../system/audit_reader.py' '" + directory + "' '" + key + "' 2>&1";
  FILE* pipe = ::popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  Said said;
  char part[256];
  while (std::fgets(part, sizeof part, pipe) != nullptr) said.text += part;
  said.status = ::pclose(pipe);
  return said;
}

TEST_CASE("a verifier written from the document alone agrees on a trail with rotations, and on what is wrong with it") {
  Trail trail;
  const std::string key = trail.dir / "audit.key";
  trail.keys = AuditKeys::Create(key).value();
  trail.Fill(40, 300);
  trail.Fill(3);  // a second epoch
  const VerifyReport report = trail.Verify();
  REQUIRE(report.ok());
  REQUIRE(report.segments > 3);
  const Said good = AskOther(trail.options.directory, key);
  CHECK(good.text ==
        "records 43 last " + std::to_string(report.last_sequence) + " mac " + ToHex(report.last_mac) + "\n");
  CHECK(good.status == 0);
  const Buffer content = ReadBytes(trail.Segment(2));
  const auto lines = Trail::Lines(content);
  for (const std::size_t at :
       {std::size_t{20}, lines[1] + 80, lines[1] + 140, lines[2] + 200, lines[lines.size() - 2] + 190}) {
    INFO("byte ", at);
    Buffer bad = content;
    bad[at] ^= 1;
    WriteBytes(trail.Segment(2), bad);
    const VerifyReport ours = trail.Verify();
    REQUIRE_FALSE(ours.ok());
    const Said theirs = AskOther(trail.options.directory, key);
    CHECK(theirs.status != 0);
    CHECK(theirs.text.starts_with("at record " + std::to_string(ours.faults[0].record) + ": "));
  }
}

}  // namespace
}  // namespace assay::audit
