// SPDX-License-Identifier: Apache-2.0
// A process that appends under load is killed at a random moment, again and again, on one trail: everything that it
// acknowledged through a pipe is there after the next start, in order.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <random>
#include <thread>

#include "sdk/core/handle.h"
#include "tests/support/trail.h"

namespace assay::audit {
namespace {

using test::Record;
using test::Trail;

struct Acknowledged {
  std::uint64_t sequence = 0;
  std::int64_t n = 0;
};
static_assert(sizeof(Acknowledged) == 16);

// Runs in the child and never returns.
[[noreturn]] void AppendForever(const LogOptions& options, const AuditKeys& keys, int pipe, std::int64_t first) {
  auto log = FileAuditLog::Open(options, keys);
  if (!log.ok()) ::_exit(3);
  for (std::int64_t n = first;; ++n) {
    const Status taken = (*log)->Append(Record(static_cast<int>(n), 60), [pipe, n](Result<std::uint64_t> sequence) {
      if (!sequence.ok()) ::_exit(4);
      const Acknowledged note{*sequence, n};
      if (::write(pipe, &note, sizeof note) != static_cast<ssize_t>(sizeof note)) ::_exit(5);
    });
    if (!taken.ok() && taken.error().code != Code::kBusy) ::_exit(6);
    if (!taken.ok()) {
      --n;
      std::this_thread::yield();
    }
  }
}

TEST_CASE("after 50 kills under load everything that was acknowledged is there, in order") {
  Trail trail;
  trail.options.segment_bytes = 256 << 10;
  trail.options.queue_records = 64;
  std::map<std::uint64_t, std::int64_t> acknowledged;
  std::mt19937 random(20260101);
  std::int64_t first = 0;
  int cut_tails = 0;
  for (int kill_number = 0; kill_number < 50; ++kill_number) {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    const Fd reading(ends[0]);
    Fd writing(ends[1]);
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) AppendForever(trail.options, trail.keys, writing.get(), first);
    writing = Fd();
    const auto notes = static_cast<std::uint32_t>(random() % 400);
    const std::chrono::milliseconds lifetime(30 + random() % 40);
    std::thread killer([&] {
      std::this_thread::sleep_for(lifetime);
      ::kill(child, SIGKILL);
    });
    Acknowledged note;
    std::uint32_t seen = 0;
    while (::read(reading.get(), &note, sizeof note) == static_cast<ssize_t>(sizeof note)) {
      CHECK(acknowledged.emplace(note.sequence, note.n).second);
      if (++seen == notes) ::kill(child, SIGKILL);
    }
    killer.join();
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFSIGNALED(status));
    first += 100'000;
    std::map<std::uint64_t, std::string> stored;
    LogOptions options = trail.options;
    options.visit = [&](const RecordView& record) { stored.emplace(record.sequence, record.json); };
    options.acknowledged = acknowledged.empty() ? 0 : acknowledged.rbegin()->first;
    auto log = FileAuditLog::Open(options, trail.keys);
    REQUIRE_MESSAGE(log.ok(), (log.ok() ? std::string() : log.error().ToString()));
    if ((*log)->recovered_bytes() > 0) ++cut_tails;
    for (const auto& [sequence, n] : acknowledged) REQUIRE(stored[sequence] == Record(static_cast<int>(n), 60));
  }
  MESSAGE(acknowledged.size(), " acknowledged records over 50 kills, ", cut_tails, " torn tails");
  CHECK(acknowledged.size() > 500);
  const VerifyReport report = trail.Verify();
  INFO(ReportText(report));
  CHECK(report.ok());
}

}  // namespace
}  // namespace assay::audit
