// SPDX-License-Identifier: Apache-2.0
// EIO and ENOSPC at every operation of a run with rotations: whoever was covered fails with the cause, nobody hangs,
// nothing is synced again, and what was acknowledged is there when the log is opened again.
#include <doctest/doctest.h>

#include <condition_variable>
#include <map>
#include <mutex>

#include "tests/support/faulty_directory.h"
#include "tests/support/trail.h"

namespace assay::audit {
namespace {

using test::FaultPlan;
using test::Op;
using test::Record;
using test::Trail;

struct Outcome {
  bool opened = false;
  std::map<std::uint64_t, int> acknowledged;  // sequence -> record
  int failed = 0;
  int refused = 0;
  bool stopped = false;
  std::string cause;
};

constexpr int kRecords = 60;

Outcome Run(Trail& trail, FaultPlan& plan) {
  Outcome outcome;
  auto directory = OpenOwnDirectory(trail.options.directory, Missing::kMake);
  REQUIRE(directory.ok());
  auto opened = FileAuditLog::Open(trail.options, trail.keys,
                                   std::make_unique<test::FaultyDirectory>(std::move(directory).value(), plan));
  if (!opened.ok()) {
    outcome.cause = opened.error().ToString();
    return outcome;
  }
  outcome.opened = true;
  const auto log = std::move(opened).value();
  std::mutex mutex;
  std::condition_variable changed;
  int settled = 0;
  for (int i = 0; i < kRecords; ++i) {
    const Status taken = log->Append(Record(i, 250), [&, i](Result<std::uint64_t> sequence) {
      const std::lock_guard lock(mutex);
      if (sequence.ok()) {
        outcome.acknowledged.emplace(*sequence, i);
      } else {
        ++outcome.failed;
        outcome.cause = sequence.error().ToString();
      }
      ++settled;
      changed.notify_one();
    });
    if (!taken.ok()) {
      const std::lock_guard lock(mutex);
      ++outcome.refused;
      ++settled;
      outcome.cause = taken.error().ToString();
    }
    std::unique_lock lock(mutex);
    if (i % 7 == 6) REQUIRE(changed.wait_for(lock, std::chrono::seconds(20), [&] { return settled == i + 1; }));
  }
  std::unique_lock lock(mutex);
  REQUIRE(changed.wait_for(lock, std::chrono::seconds(20), [&] { return settled == kRecords; }));
  lock.unlock();
  outcome.stopped = !log->Health().ok();
  return outcome;
}

void CheckReopened(Trail& trail, const Outcome& outcome) {
  std::map<std::uint64_t, std::string> stored;
  trail.options.visit = [&](const RecordView& record) { stored.emplace(record.sequence, record.json); };
  auto again = FileAuditLog::Open(trail.options, trail.keys);
  trail.options.visit = {};
  REQUIRE_MESSAGE(again.ok(), (again.ok() ? std::string() : again.error().ToString()));
  int lost = 0;
  for (const auto& [sequence, n] : outcome.acknowledged) lost += stored[sequence] == Record(n, 250) ? 0 : 1;
  CHECK(lost == 0);
  const auto next = (*again)->AppendAndWait(Record(1000));
  REQUIRE(next.ok());
  if (!outcome.acknowledged.empty()) CHECK(*next > outcome.acknowledged.rbegin()->first);
  again->reset();
  const VerifyReport report = trail.Verify();
  INFO(ReportText(report));
  CHECK(report.ok());
}

int OperationsOfAGoodRun() {
  Trail trail;
  FaultPlan plan;
  const Outcome outcome = Run(trail, plan);
  CHECK(outcome.acknowledged.size() == kRecords);
  CHECK_FALSE(outcome.stopped);
  CHECK(trail.Verify().segments > 2);
  return plan.operations;
}

void FailEach(int os, bool short_write) {
  const int operations = OperationsOfAGoodRun();
  REQUIRE(operations > 40);
  int stopped = 0;
  std::map<Op, int> kinds;
  for (int at = 0; at < operations; ++at) {
    INFO("operation ", at, " of ", operations);
    Trail trail;
    FaultPlan plan;
    plan.os = os;
    plan.short_write = short_write;
    plan.fail_at = at;
    const Outcome outcome = Run(trail, plan);
    if (!plan.failed) continue;  // batches were larger this time: fewer operations
    ++kinds[plan.failed_op];
    CHECK(plan.syncs_after_fault == 0);
    CHECK(outcome.acknowledged.size() + static_cast<std::size_t>(outcome.failed + outcome.refused) ==
          (outcome.opened ? kRecords : 0));
    if (outcome.opened && outcome.acknowledged.size() < kRecords) {
      CHECK(outcome.stopped);
      CHECK(outcome.cause.find(os == ENOSPC ? "No space left" : "Input/output error") != std::string::npos);
      ++stopped;
    }
    CheckReopened(trail, outcome);
  }
  CHECK(stopped > 10);
  for (const Op op : {Op::kWrite, Op::kSync, Op::kRename, Op::kOpen, Op::kDirectorySync, Op::kTruncate})
    CHECK(kinds[op] > 0);
}

TEST_CASE("an I/O error at any operation fails who was covered and loses nothing that was acknowledged") {
  FailEach(EIO, false);
}
TEST_CASE("a full disk at any operation, in the middle of a write, does the same") { FailEach(ENOSPC, true); }

TEST_CASE("short writes are continued, not taken for whole ones") {
  Trail trail;
  FaultPlan plan;
  plan.all_short = true;
  const Outcome outcome = Run(trail, plan);
  CHECK(outcome.acknowledged.size() == kRecords);
  CheckReopened(trail, outcome);
}

TEST_CASE("a log that stopped says why at once, to health and to every append") {
  Trail trail;
  FaultPlan plan;
  auto directory = OpenOwnDirectory(trail.options.directory, Missing::kMake);
  REQUIRE(directory.ok());
  auto log = FileAuditLog::Open(trail.options, trail.keys,
                                std::make_unique<test::FaultyDirectory>(std::move(directory).value(), plan));
  REQUIRE(log.ok());
  CHECK((*log)->AppendAndWait(Record(0)).ok());
  plan.fail_at = plan.operations + 1;  // the barrier behind the next write
  const auto first = (*log)->AppendAndWait(Record(1));
  REQUIRE_FALSE(first.ok());
  CHECK(plan.failed_op == Op::kSync);
  CHECK(first.error().os == EIO);
  const auto second = (*log)->AppendAndWait(Record(2));
  REQUIRE_FALSE(second.ok());
  CHECK(second.error().code == Code::kUnavailable);
  CHECK(second.error().detail == first.error().detail);
  CHECK((*log)->Health().error().detail == first.error().detail);
  const int operations = plan.operations;
  log->reset();
  CHECK(plan.operations == operations);  // nothing more was tried, closing included
}

}  // namespace
}  // namespace assay::audit
