// SPDX-License-Identifier: Apache-2.0
#include "agent/events/measured_log.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "sdk/config/files.h"
#include "sdk/core/crypto.h"
#include "tests/support/fake_device.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/agent/agent_fixture.h"

namespace assay::agent {
namespace {

using assay::test::FakeDevice;
using assay::test::TempDir;
using test::kPcr;
using test::SampleMeasurements;

const Digest kBootA = Sha256(AsBytes("boot a"));
const Digest kBootB = Sha256(AsBytes("boot b"));

struct Machine {
  MeasuredLog Open(const Digest& boot_id = kBootA) {
    return MeasuredLog::Open({RuntimeLogPath(dir.path()), kPcr, boot_id}, device).value();
  }
  // A start of the agent and its clean end.
  void RunOnce(const Digest& boot_id = kBootA) {
    MeasuredLog log = Open(boot_id);
    REQUIRE(log.AppendIdentity(SampleMeasurements()).ok());
  }
  TempDir dir;
  FakeDevice device;
};

Digest Replay(const MeasuredLog& log) {
  Digest value = log.header().base;
  for (const Buffer& entry : log.entries()) value = ExtendWithEntry(value, entry);
  return value;
}

RuntimeEntry EntryAt(const MeasuredLog& log, std::size_t index) {
  return DecodeRuntimeEntry(log.entries().at(index)).value();
}

TEST_CASE("each start appends an identity entry that names its predecessor, and the log explains the register") {
  Machine machine;
  machine.RunOnce();
  MeasuredLog log = machine.Open();
  AgentMeasurements upgraded = SampleMeasurements();
  upgraded.agent = Sha256(AsBytes("the next version"));
  REQUIRE(log.AppendIdentity(upgraded).ok());
  REQUIRE(log.entries().size() == 2);
  CHECK(EntryAt(log, 0).predecessor == 0);
  CHECK(EntryAt(log, 1).predecessor == 1);
  CHECK(EntryAt(log, 1).index == 1);
  CHECK(EntryAt(log, 1).agent == upgraded.agent);
  CHECK(Replay(log) == machine.device.pcrs[kPcr]);
  CHECK(log.Value() == machine.device.pcrs[kPcr]);
  CHECK(log.header().faults == 0);
}

TEST_CASE("entries that were in the register before the first start are the log's base") {
  Machine machine;
  REQUIRE(machine.device.ExtendPcr(kPcr, Sha256(AsBytes("shim"))).ok());
  const Digest base = machine.device.pcrs[kPcr];
  machine.RunOnce();
  const MeasuredLog log = machine.Open();
  CHECK(log.header().base == base);
  CHECK(log.header().faults == 0);
}

// Runs a start of the agent in a child that dies at the extend: before its effect or after it.
void KillAtExtend(const std::string& dir, bool after_effect) {
  const pid_t child = ::fork();
  if (child == 0) {
    FakeDevice device(dir + "/tpm");
    const auto die = [](std::string_view command) -> Status {
      if (command == "ExtendPcr") ::kill(::getpid(), SIGKILL);
      return Ok();
    };
    auto log = MeasuredLog::Open({RuntimeLogPath(dir), kPcr, kBootA}, device);
    if (!log.ok()) ::_exit(1);
    if (after_effect) device.after = die;
    else device.before = die;
    (void)log->AppendIdentity(SampleMeasurements());
    ::_exit(2);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  REQUIRE(WTERMSIG(status) == SIGKILL);
}

TEST_CASE("SIGKILL between write and extend leaves one pending entry that the next start extends") {
  for (const bool first_start : {true, false}) {
    const TempDir dir;
    if (!first_start) {
      FakeDevice device(dir / "tpm");
      MeasuredLog log = MeasuredLog::Open({RuntimeLogPath(dir.path()), kPcr, kBootA}, device).value();
      REQUIRE(log.AppendIdentity(SampleMeasurements()).ok());
    }
    KillAtExtend(dir.path(), false);
    FakeDevice device(dir / "tpm");
    MeasuredLog log = MeasuredLog::Open({RuntimeLogPath(dir.path()), kPcr, kBootA}, device).value();
    CHECK(log.recovered_pending());
    CHECK(log.header().faults == 0);
    CHECK(log.entries().size() == (first_start ? 1 : 2));
    CHECK(log.Value() == device.pcrs[kPcr]);
    REQUIRE(log.AppendIdentity(SampleMeasurements()).ok());
    CHECK(Replay(log) == device.pcrs[kPcr]);
  }
}

TEST_CASE("SIGKILL right after the extend leaves nothing pending") {
  const TempDir dir;
  KillAtExtend(dir.path(), true);
  FakeDevice device(dir / "tpm");
  const MeasuredLog log = MeasuredLog::Open({RuntimeLogPath(dir.path()), kPcr, kBootA}, device).value();
  CHECK_FALSE(log.recovered_pending());
  CHECK(log.header().faults == 0);
  CHECK(log.entries().size() == 1);
  CHECK(log.Value() == device.pcrs[kPcr]);
}

TEST_CASE("a torn last write is dropped, since its entry was never extended") {
  Machine machine;
  machine.RunOnce();
  const std::string path = RuntimeLogPath(machine.dir.path());
  Buffer bytes = config::ReadFile(path, 1U << 20).value();
  bytes.insert(bytes.end(), {40, 0, 0, 0, 1, 2, 3});
  REQUIRE(config::WriteFileAtomic(path, bytes, 0600).ok());
  MeasuredLog log = machine.Open();
  CHECK(log.header().faults == 0);
  REQUIRE(log.AppendIdentity(SampleMeasurements()).ok());
  CHECK(LogFile::Load(path).value().damaged == 0);
  CHECK(machine.Open().entries().size() == 2);
}

TEST_CASE("a stranger's extend is told at the next start and stays told until reboot") {
  Machine machine;
  machine.RunOnce();
  REQUIRE(machine.device.ExtendPcr(kPcr, Sha256(AsBytes("stranger"))).ok());
  for (int start = 0; start < 2; ++start) {
    MeasuredLog log = machine.Open();
    CHECK(log.HasFault(LogFault::kForeignExtend));
    REQUIRE(log.AppendIdentity(SampleMeasurements()).ok());
    CHECK(log.Value() != machine.device.pcrs[kPcr]);
  }
  machine.device.Reboot();
  CHECK(machine.Open(kBootB).header().faults == 0);
}

TEST_CASE("a stranger's extend under a running agent is seen in the next quote") {
  Machine machine;
  MeasuredLog log = machine.Open();
  REQUIRE(log.AppendIdentity(SampleMeasurements()).ok());
  CHECK(log.Observe(machine.device.pcrs[kPcr], machine.device.clock).value() == MeasuredLog::Observation::kMatches);
  REQUIRE(machine.device.ExtendPcr(kPcr, Sha256(AsBytes("stranger"))).ok());
  CHECK(log.Observe(machine.device.pcrs[kPcr], machine.device.clock).value() == MeasuredLog::Observation::kForeign);
  CHECK(log.HasFault(LogFault::kForeignExtend));
  CHECK(machine.Open().HasFault(LogFault::kForeignExtend));
}

TEST_CASE("two entries missing from the register are no crash of ours") {
  Machine machine;
  machine.RunOnce();
  const Digest after_one = machine.device.pcrs[kPcr];
  machine.RunOnce();
  machine.RunOnce();
  machine.device.pcrs[kPcr] = after_one;
  CHECK(machine.Open().HasFault(LogFault::kForeignExtend));
}

TEST_CASE("a log that was removed or cut in this boot is told as lost") {
  SUBCASE("removed") {
    Machine machine;
    machine.RunOnce();
    std::filesystem::remove(RuntimeLogPath(machine.dir.path()));
    const Digest before = machine.device.pcrs[kPcr];
    MeasuredLog log = machine.Open();
    CHECK(log.HasFault(LogFault::kLost));
    CHECK(log.header().base == before);
    REQUIRE(log.AppendIdentity(SampleMeasurements()).ok());
    CHECK(machine.Open().HasFault(LogFault::kLost));
  }
  SUBCASE("its header overwritten") {
    Machine machine;
    machine.RunOnce();
    REQUIRE(config::WriteFileAtomic(RuntimeLogPath(machine.dir.path()), Buffer(500, 0), 0600).ok());
    CHECK(machine.Open().HasFault(LogFault::kLost));
  }
  SUBCASE("cut in the middle") {
    Machine machine;
    for (int i = 0; i < 3; ++i) machine.RunOnce();
    const std::string path = RuntimeLogPath(machine.dir.path());
    Buffer bytes = config::ReadFile(path, 1U << 20).value();
    bytes[200] ^= 1;
    REQUIRE(config::WriteFileAtomic(path, bytes, 0600).ok());
    CHECK(machine.Open().HasFault(LogFault::kLost));
  }
}

TEST_CASE("a reboot begins a new log without a fault") {
  Machine machine;
  machine.RunOnce();
  machine.device.Reboot();
  MeasuredLog log = machine.Open(kBootB);
  CHECK(log.entries().empty());
  CHECK(log.header().faults == 0);
  CHECK(log.header().predecessor == 0);
}

TEST_CASE("suspend and resume keep the log") {
  Machine machine;
  machine.RunOnce();
  machine.device.Resume();
  const MeasuredLog log = machine.Open();
  CHECK(log.entries().size() == 1);
  CHECK(log.header().faults == 0);
}

TEST_CASE("hibernation is told: under a running agent and at its next start") {
  Machine machine;
  MeasuredLog log = machine.Open();
  REQUIRE(log.AppendIdentity(SampleMeasurements()).ok());
  machine.device.Hibernate();
  SUBCASE("under a running agent") {
    CHECK(log.Observe(machine.device.pcrs[kPcr], machine.device.clock).value() == MeasuredLog::Observation::kReset);
    CHECK(log.HasFault(LogFault::kHibernated));
    CHECK(log.entries().empty());
    REQUIRE(log.AppendIdentity(SampleMeasurements()).ok());
    CHECK(EntryAt(log, 0).predecessor == 1);
    CHECK(log.Value() == machine.device.pcrs[kPcr]);
  }
  SUBCASE("at the next start under the same kernel") {
    const MeasuredLog next = machine.Open(kBootA);
    CHECK(next.HasFault(LogFault::kHibernated));
    CHECK(next.header().predecessor == 1);
  }
}

TEST_CASE("a kernel started by kexec is told, and the log goes on") {
  Machine machine;
  machine.RunOnce();
  const MeasuredLog log = machine.Open(kBootB);
  CHECK(log.HasFault(LogFault::kKexec));
  CHECK(log.entries().size() == 1);
  CHECK(machine.Open(kBootB).HasFault(LogFault::kKexec));
}

TEST_CASE("where the boot id is not known, a reset TPM means a boot") {
  Machine machine;
  machine.RunOnce(Digest{});
  machine.device.Reboot();
  CHECK(machine.Open(Digest{}).header().faults == 0);
}

TEST_CASE("an extend that failed is made up for before the next entry, and never twice") {
  for (const bool reached_the_tpm : {false, true}) {
    Machine machine;
    MeasuredLog log = machine.Open();
    auto& seam = reached_the_tpm ? machine.device.after : machine.device.before;
    seam = [](std::string_view command) -> Status {
      if (command == "ExtendPcr") return MakeError(Code::kTpm, "no answer");
      return Ok();
    };
    CHECK_FALSE(log.AppendIdentity(SampleMeasurements()).ok());
    seam = nullptr;
    REQUIRE(log.AppendIdentity(SampleMeasurements()).ok());
    CHECK(log.entries().size() == 2);
    CHECK(log.Value() == machine.device.pcrs[kPcr]);
    CHECK(Replay(log) == machine.device.pcrs[kPcr]);
  }
}

TEST_CASE("a TPM that does not answer stops the start, and the log is untouched") {
  Machine machine;
  machine.RunOnce();
  const Buffer before = config::ReadFile(RuntimeLogPath(machine.dir.path()), 1U << 20).value();
  machine.device.before = [](std::string_view) -> Status { return MakeError(Code::kTpm, "no answer"); };
  CHECK_FALSE(MeasuredLog::Open({RuntimeLogPath(machine.dir.path()), kPcr, kBootA}, machine.device).ok());
  CHECK(config::ReadFile(RuntimeLogPath(machine.dir.path()), 1U << 20).value() == before);
}

}  // namespace
}  // namespace assay::agent
