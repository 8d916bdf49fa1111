// SPDX-License-Identifier: Apache-2.0
#include "verifier/appraisal/runtime_replay.h"

#include <doctest/doctest.h>

#include "sdk/core/runtime_log.h"

namespace assay::appraisal {
namespace {

struct Log {
  std::vector<Buffer> entries;
  Digest value{};
  std::uint64_t gone = 0;  // entries that a reset of the registers took away
  void Add(EntryKind kind, std::string_view agent = "agent") {
    RuntimeEntry entry;
    entry.index = entries.size();
    entry.kind = kind;
    if (kind == EntryKind::kIdentity) entry.agent = Sha256(AsBytes(agent));
    if (kind == EntryKind::kIdentity) entry.predecessor = entry.index + gone;
    if (kind == EntryKind::kBatch) entry.digests = {Sha256(AsBytes("file"))};
    entries.push_back(EncodeRuntimeEntry(entry));
    value = ExtendWithEntry(value, entries.back());
  }
  RuntimeEvidence From(std::size_t first, const Digest& base) const {
    RuntimeEvidence runtime;
    runtime.log_base = base;
    runtime.log_from = first;
    for (std::size_t i = first; i < entries.size(); ++i) runtime.log.push_back(entries[i]);
    return runtime;
  }
};

constexpr tpm::ClockInfo kBoot{.clock = 5, .reset_count = 2, .restart_count = 0, .safe = true};

TEST_CASE("a log replays whole, then from where it was known") {
  Log log;
  log.Add(EntryKind::kIdentity);
  log.Add(EntryKind::kBatch);
  const RuntimeReplay first = ReplayRuntimeLog(log.From(0, {}), log.value, kBoot, {});
  CHECK(first.state == RuntimeLog::kReplays);
  CHECK(first.known.next_index == 2);
  CHECK(first.known.agents.size() == 1);
  const Digest before = log.value;
  log.Add(EntryKind::kIdentity, "other agent");
  log.Add(EntryKind::kRelease);
  const RuntimeReplay next = ReplayRuntimeLog(log.From(2, before), log.value, kBoot, first.known);
  CHECK(next.state == RuntimeLog::kReplays);
  CHECK(next.known.next_index == 4);
  CHECK(next.known.released);
  CHECK(next.known.agents.size() == 2);
  const RuntimeReplay empty = ReplayRuntimeLog(log.From(4, log.value), log.value, kBoot, next.known);
  CHECK(empty.state == RuntimeLog::kReplays);
  CHECK(empty.known.released);
}

TEST_CASE("a log that started over under a running agent says so") {
  Log log;
  log.gone = 3;
  log.Add(EntryKind::kIdentity);
  const RuntimeReplay replay = ReplayRuntimeLog(log.From(0, {}), log.value, kBoot, {});
  CHECK(replay.state == RuntimeLog::kReplays);
  CHECK(replay.known.resumed);
}

TEST_CASE("a continuation of something unknown is asked for again") {
  Log log;
  log.Add(EntryKind::kIdentity);
  log.Add(EntryKind::kBatch);
  const attest::RuntimeKnown known = ReplayRuntimeLog(log.From(0, {}), log.value, kBoot, {}).known;
  CHECK(ReplayRuntimeLog(log.From(1, {}), log.value, kBoot, known).resend_from_start);
  CHECK(ReplayRuntimeLog(log.From(2, Sha256({})), log.value, kBoot, known).resend_from_start);
  tpm::ClockInfo reboot = kBoot;
  reboot.reset_count = 3;
  CHECK(ReplayRuntimeLog(log.From(2, log.value), log.value, reboot, known).resend_from_start);
  CHECK(ReplayRuntimeLog(log.From(2, log.value), log.value, kBoot, {}).resend_from_start);
}

TEST_CASE("dropped, swapped, changed and foreign entries do not replay") {
  Log log;
  log.Add(EntryKind::kIdentity);
  log.Add(EntryKind::kBatch);
  log.Add(EntryKind::kBatch);
  CHECK(ReplayRuntimeLog(log.From(0, {}), Sha256(AsBytes("stranger")), kBoot, {}).state == RuntimeLog::kMismatch);
  CHECK(ReplayRuntimeLog(log.From(0, {}), Sha256(AsBytes("stranger")), kBoot, {}).known.next_index == 0);
  CHECK(ReplayRuntimeLog(log.From(0, Sha256({})), log.value, kBoot, {}).state == RuntimeLog::kMismatch);
  RuntimeEvidence swapped = log.From(0, {});
  std::swap(swapped.log[1], swapped.log[2]);
  CHECK(ReplayRuntimeLog(swapped, log.value, kBoot, {}).state == RuntimeLog::kMalformed);
  RuntimeEvidence dropped = log.From(0, {});
  dropped.log.pop_back();
  CHECK(ReplayRuntimeLog(dropped, log.value, kBoot, {}).state == RuntimeLog::kMismatch);
  const Buffer junk = {0x00};
  RuntimeEvidence broken = log.From(0, {});
  broken.log[0] = junk;
  CHECK(ReplayRuntimeLog(broken, log.value, kBoot, {}).state == RuntimeLog::kMalformed);
}

}  // namespace
}  // namespace assay::appraisal
