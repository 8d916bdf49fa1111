// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <thread>

#include "tests/support/trail.h"

namespace assay::audit {
namespace {

using test::Record;
using test::Trail;

std::vector<std::string> Replay(const Trail& trail) {
  std::vector<std::string> out;
  const Status replayed = ReplayRecords(trail.options.directory, trail.keys,
                                        [&](const RecordView& record) { out.emplace_back(record.json); });
  REQUIRE(replayed.ok());
  return out;
}

TEST_CASE("what was acknowledged is replayed in order after the log is opened again") {
  Trail trail;
  trail.options.segment_bytes = 1U << 20;
  std::uint64_t last = 0;
  for (int run = 0; run < 3; ++run) {
    auto log = trail.Open();
    for (int i = 0; i < 5; ++i) {
      const auto sequence = log->AppendAndWait(Record(run * 5 + i));
      REQUIRE(sequence.ok());
      CHECK(*sequence > last);
      last = *sequence;
    }
  }
  const auto records = Replay(trail);
  REQUIRE(records.size() == 15);
  for (int i = 0; i < 15; ++i) CHECK(records[static_cast<std::size_t>(i)] == Record(i));
  const VerifyReport report = trail.Verify(last);
  CHECK(report.ok());
  CHECK(report.records == 15);
  CHECK(report.notes.empty());
  CHECK(ReportJson(report).find("\"ok\":true") != std::string::npos);
}

TEST_CASE("order verified is order appended under many producers and rotation") {
  Trail trail;
  trail.options.segment_bytes = 64 << 10;
  constexpr int kProducers = 32, kEach = 60;
  std::vector<std::vector<std::uint64_t>> sequences(kProducers);
  std::vector<std::uint64_t> completed;  // written by the log's thread alone
  {
    auto log = trail.Open();
    std::vector<std::thread> producers;
    for (int p = 0; p < kProducers; ++p) {
      producers.emplace_back([&, p] {
        for (int i = 0; i < kEach; ++i) {
          // Appended in the producer's order, waited for at the end.
          const Status taken = log->Append(Record(p * 1000 + i, 100), [&, p](Result<std::uint64_t> sequence) {
            if (!sequence.ok()) return;
            completed.push_back(*sequence);
            sequences[static_cast<std::size_t>(p)].push_back(*sequence);
          });
          if (!taken.ok()) std::abort();
        }
      });
    }
    for (auto& producer : producers) producer.join();
    CHECK(log->AppendAndWait(Record(-1)).ok());
    CHECK(log->stats().segment > 3);
    CHECK(log->stats().records == kProducers * kEach + 1);
  }
  REQUIRE(completed.size() == kProducers * kEach);
  CHECK(std::is_sorted(completed.begin(), completed.end()));
  std::map<std::uint64_t, std::string> stored;
  CHECK(ReplayRecords(trail.options.directory, trail.keys, [&](const RecordView& record) {
          stored.emplace(record.sequence, record.json);
        }).ok());
  CHECK(stored.size() == kProducers * kEach + 1);
  for (int p = 0; p < kProducers; ++p) {
    for (int i = 0; i < kEach; ++i)
      CHECK(stored[sequences[static_cast<std::size_t>(p)][static_cast<std::size_t>(i)]] == Record(p * 1000 + i, 100));
  }
}

TEST_CASE("a record that is too long or not one line of JSON is refused before it takes a place") {
  Trail trail;
  auto log = trail.Open();
  const auto never = [](Result<std::uint64_t>) { FAIL("a refused record was completed"); };
  CHECK(log->Append(Record(1, 1024), never).error().code == Code::kLimit);
  CHECK(log->Append("{\"a\":\n1}", never).error().code == Code::kMalformed);
  CHECK(log->Append(std::string("{\"a\":\"\0\"}", 9), never).error().code == Code::kMalformed);
  CHECK(log->Append("[1]", never).error().code == Code::kMalformed);
  CHECK(log->Append("", never).error().code == Code::kMalformed);
  const std::string longest = Record(1, 1024 - Record(1).size());
  REQUIRE(longest.size() == 1024);
  const auto first = log->AppendAndWait(longest);
  REQUIRE(first.ok());
  CHECK(*log->AppendAndWait(Record(2)) == *first + 1);
  log.reset();
  CHECK(Replay(trail).size() == 2);
}

TEST_CASE("a full queue answers busy and takes more once it has drained") {
  Trail trail;
  trail.options.queue_records = 4;
  auto log = trail.Open();
  std::mutex gate;
  gate.lock();
  std::atomic<int> done{0};
  // The first completion holds the writer's thread; the queue fills behind it.
  REQUIRE(log->Append(Record(0), [&](Result<std::uint64_t>) { const std::lock_guard wait(gate); }).ok());
  while (log->stats().batches == 0) std::this_thread::yield();
  int taken = 0;
  while (true) {
    const Status status =
        log->Append(Record(1), [&](Result<std::uint64_t> sequence) { done += sequence.ok() ? 1 : 0; });
    if (!status.ok()) {
      CHECK(status.error().code == Code::kBusy);
      break;
    }
    REQUIRE(++taken <= 4);
  }
  CHECK(taken == 4);
  CHECK(log->stats().refused == 1);
  gate.unlock();
  while (done < 4) std::this_thread::yield();
  CHECK(log->AppendAndWait(Record(2)).ok());
  CHECK(log->Health().ok());
}

TEST_CASE("a queue of many bytes answers busy as well") {
  Trail trail;
  trail.options.queue_bytes = 2048;
  auto log = trail.Open();
  std::mutex gate;
  gate.lock();
  REQUIRE(log->Append(Record(0), [&](Result<std::uint64_t>) { const std::lock_guard wait(gate); }).ok());
  while (log->stats().batches == 0) std::this_thread::yield();
  CHECK(log->Append(Record(1, 900), {}).ok());
  CHECK(log->Append(Record(2, 900), {}).ok());
  CHECK(log->Append(Record(3, 900), {}).error().code == Code::kBusy);
  gate.unlock();
}

TEST_CASE("closing drains what was appended") {
  Trail trail;
  trail.options.segment_bytes = 1U << 20;
  int completed = 0;
  {
    auto log = trail.Open();
    for (int i = 0; i < 500; ++i)
      REQUIRE(log->Append(Record(i), [&](Result<std::uint64_t> sequence) { completed += sequence.ok() ? 1 : 0; }).ok());
  }
  CHECK(completed == 500);
  CHECK(Replay(trail).size() == 500);
}

TEST_CASE("a completion that waits for its own thread is an error, not a hang") {
  Trail trail;
  auto log = trail.Open();
  std::atomic<bool> refused{false};
  REQUIRE(log->Append(Record(0),
                      [&](Result<std::uint64_t>) {
                        refused = log->AppendAndWait(Record(1)).error().code == Code::kInternal;
                      })
              .ok());
  CHECK(log->AppendAndWait(Record(2)).ok());
  CHECK(refused);
}

TEST_CASE("a second writer is refused while the first runs") {
  Trail trail;
  auto log = trail.Open();
  CHECK(FileAuditLog::Open(trail.options, trail.keys).error().code == Code::kBusy);
  log.reset();
  CHECK(FileAuditLog::Open(trail.options, trail.keys).ok());
}

TEST_CASE("wrong owner's modes, symbolic links and things that are no file are refused") {
  Trail trail;
  trail.Fill(2);
  REQUIRE(::chmod(trail.Segment(1).c_str(), 0640) == 0);
  CHECK(FileAuditLog::Open(trail.options, trail.keys).error().code == Code::kDenied);
  REQUIRE(::chmod(trail.Segment(1).c_str(), 0600) == 0);
  REQUIRE(::chmod(trail.options.directory.c_str(), 0755) == 0);
  CHECK(FileAuditLog::Open(trail.options, trail.keys).error().code == Code::kDenied);
  REQUIRE(::chmod(trail.options.directory.c_str(), 0700) == 0);
  std::filesystem::rename(trail.Segment(1), trail.dir / "elsewhere");
  std::filesystem::create_symlink(trail.dir / "elsewhere", trail.Segment(1));
  CHECK_FALSE(FileAuditLog::Open(trail.options, trail.keys).ok());
  std::filesystem::remove(trail.Segment(1));
  std::filesystem::rename(trail.dir / "elsewhere", trail.Segment(1));
  CHECK(FileAuditLog::Open(trail.options, trail.keys).ok());
  std::filesystem::remove(trail.options.directory + "/lock");
  std::filesystem::create_symlink(trail.dir / "elsewhere", trail.options.directory + "/lock");
  CHECK(FileAuditLog::Open(trail.options, trail.keys).error().code == Code::kDenied);
  CHECK(FileAuditLog::Open({.directory = trail.dir / "no/such", .visit = {}}, trail.keys).error().code ==
        Code::kNotFound);
}

TEST_CASE("files of the trail are private whatever the umask says") {
  Trail trail;
  const mode_t old = ::umask(0);
  trail.Fill(30, 200);
  ::umask(old);
  for (const auto& entry : std::filesystem::directory_iterator(trail.options.directory)) {
    struct stat info {};
    REQUIRE(::stat(entry.path().c_str(), &info) == 0);
    CHECK((info.st_mode & 0777) == 0600);
  }
}

TEST_CASE("a segment that is replaced under the running log stops it") {
  Trail trail;
  auto log = trail.Open();
  CHECK(log->AppendAndWait(Record(0)).ok());
  const Buffer content = test::ReadBytes(trail.Segment(1));
  std::filesystem::remove(trail.Segment(1));
  test::WriteBytes(trail.Segment(1), content);
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  const auto refused = log->AppendAndWait(Record(1));
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == Code::kUnavailable);
  CHECK(refused.error().detail.find("replaced") != std::string::npos);
  CHECK(log->Health().error().detail == refused.error().detail);
}

TEST_CASE("a trail that ends below what was acknowledged is refused") {
  Trail trail;
  trail.options.acknowledged = 3;
  CHECK(FileAuditLog::Open(trail.options, trail.keys).error().detail.find("acknowledged_record_lost") !=
        std::string::npos);
  trail.options.acknowledged = 0;
  trail.Fill(2);
  trail.options.acknowledged = 100;
  CHECK(FileAuditLog::Open(trail.options, trail.keys).error().detail.find("acknowledged_record_lost") !=
        std::string::npos);
  CHECK(trail.Verify(100).faults.at(0).kind == FaultClass::kBehind);
  trail.options.acknowledged = trail.Verify().last_sequence;
  CHECK(FileAuditLog::Open(trail.options, trail.keys).ok());
}

TEST_CASE("each opening sees the verified records of all openings before it") {
  Trail trail;
  trail.Fill(40, 300);
  int seen = 0;
  trail.options.visit = [&](const RecordView& record) { CHECK(record.json == Record(seen++, 300)); };
  trail.Open().reset();
  CHECK(seen == 40);
  CHECK(trail.Verify().segments > 2);
}

TEST_CASE("many openings of a full segment rotate instead of failing") {
  Trail trail;
  for (int i = 0; i < 40; ++i) trail.Fill(1, 10);
  const VerifyReport report = trail.Verify();
  CHECK(report.ok());
  CHECK(report.records == 40);
  CHECK(report.segments > 2);
}

TEST_CASE("options that cannot work are refused") {
  Trail trail;
  trail.options.segment_bytes = 4096;
  CHECK(FileAuditLog::Open(trail.options, trail.keys).error().code == Code::kConfig);
  trail.options.segment_bytes = 1U << 20;
  trail.options.max_record = kMaxRecord + 1;
  CHECK(FileAuditLog::Open(trail.options, trail.keys).error().code == Code::kConfig);
}

TEST_CASE("each barrier is observed with the records and bytes that it made durable") {
  Trail trail;
  std::uint64_t records = 0, bytes = 0, batches = 0;
  double slowest = 0;
  trail.options.observe = [&](const BatchSeen& seen) {
    ++batches;
    records += seen.records;
    bytes += seen.bytes;
    slowest = std::max(slowest, seen.barrier_seconds);
  };
  const auto log = trail.Open();
  std::uint64_t seen_before_answer = 0;
  for (int i = 0; i < 5; ++i) {
    REQUIRE(log->AppendAndWait(test::Record(i)).ok());
    seen_before_answer += records == static_cast<std::uint64_t>(i) + 1 ? 1 : 0;
  }
  CHECK(seen_before_answer == 5);
  const FileAuditLog::Stats stats = log->stats();
  CHECK(batches == stats.batches);
  CHECK(bytes == stats.bytes);
  CHECK(slowest > 0);
}

}  // namespace
}  // namespace assay::audit
