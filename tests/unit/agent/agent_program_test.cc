// SPDX-License-Identifier: Apache-2.0
// The agent as a program over a software TPM: starts, crashes, stops, and what its log and its commands say of it.
#include "tests/unit/agent/machine.h"

namespace assay::agent {
namespace {

using test::kWait;
using test::Machine;

TEST_CASE("evidence of the program verifies, across a crash, a clean stop and another configuration") {
  Machine machine;
  machine.Start();
  EvidenceBody body = machine.Attest();
  CHECK(body.attester == machine.aik->SpkiDigest());
  CHECK(machine.KindsOf(body) == std::vector{EntryKind::kIdentity});

  CHECK(machine.End(SIGKILL).signal == SIGKILL);
  machine.Start();  // the socket it left is taken over
  body = machine.Attest();
  CHECK(machine.KindsOf(body) == std::vector{EntryKind::kIdentity, EntryKind::kIdentity});
  CHECK(DecodeRuntimeEntry(body.runtime.log[1]).value().predecessor == 1);

  CHECK(machine.End(SIGTERM).code == 0);
  CHECK_FALSE(local::Client::Connect(machine.socket()).ok());
  machine.WriteConfig("io_timeout = \"5s\"\n");
  machine.Start();
  body = machine.Attest();
  CHECK(machine.KindsOf(body) ==
        std::vector{EntryKind::kIdentity, EntryKind::kIdentity, EntryKind::kStop, EntryKind::kIdentity});
  CHECK(DecodeRuntimeEntry(body.runtime.log[0]).value().config !=
        DecodeRuntimeEntry(body.runtime.log[3]).value().config);
}

TEST_CASE("SIGHUP takes a good configuration, logs it, and keeps the old one when the file is bad") {
  Machine machine;
  machine.Start();
  machine.WriteConfig("[budget.user]\nburst = 5\n");
  machine.Signal(SIGHUP);
  for (int i = 0; i < 100 && machine.Output().find("read again") == std::string::npos; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK(machine.KindsOf(machine.Attest()).size() == 2);
  machine.WriteConfig("unknown_key = 1\n");
  machine.Signal(SIGHUP);
  for (int i = 0; i < 100 && machine.Output().find("old one stays") == std::string::npos; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK(machine.Output().find("unknown_key") != std::string::npos);
  CHECK(machine.KindsOf(machine.Attest()).size() == 2);
}

TEST_CASE("commands say how things stand, and their exit codes are those of the manual") {
  Machine machine;
  CHECK(machine.Command({"status"}) == 7);
  CHECK(machine.Command({"doctor"}) == 0);
  machine.Start();
  CHECK(machine.Command({"status", "--json"}) == 0);
  CHECK(machine.CommandOutput().find("\"state\":\"enrolled\"") != std::string::npos);
  CHECK(machine.Command({"status"}) == 0);
  if (::getuid() == 0) {
    CHECK(machine.Command({"doctor"}) == 0);
    CHECK(machine.CommandOutput().find("problem") == std::string::npos);
    CHECK(machine.Command({"evidence", "--show"}) == 0);
    CHECK(machine.CommandOutput().find(ToHex(machine.aik->SpkiDigest())) != std::string::npos);
  } else {
    MESSAGE("skipped: doctor and evidence --show of a running agent are root's");
  }
  CHECK(machine.Command({"--check-config"}) == 0);
  for (const char* later : {"run", "explain", "policy", "release"}) CHECK(machine.Command({later}) == 69);
  CHECK(machine.Command({"nonsense"}) == 2);
  CHECK(machine.Command({}) == 1);  // another agent answers there
  CHECK(machine.CommandOutput().find("another agent") != std::string::npos);
  CHECK(machine.Attest().runtime.log.size() == 1);  // and it touched neither log nor register
}

}  // namespace
}  // namespace assay::agent
