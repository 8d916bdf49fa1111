// SPDX-License-Identifier: Apache-2.0
// An enrolled machine: a software TPM, a state directory, and the agent as a program that the test starts and ends.
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "agent/events/measured_log.h"
#include "agent/local/client.h"
#include "sdk/config/enrollment.h"
#include "sdk/config/files.h"
#include "sdk/core/crypto.h"
#include "sdk/core/evidence.h"
#include "tests/support/swtpm.h"

namespace assay::agent::test {

using assay::test::Swtpm;
using assay::test::TempDir;

inline constexpr std::uint64_t kWait = 30'000;

struct Ended {
  int code = -1;
  int signal = 0;
};

inline pid_t Spawn(const std::vector<std::string>& args, const std::string& output) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int fd = ::open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  ::dup2(fd, 1);
  ::dup2(fd, 2);
  std::vector<char*> argv;
  for (const std::string& arg : args) argv.push_back(const_cast<char*>(arg.c_str()));
  argv.push_back(nullptr);
  ::execv(argv[0], argv.data());
  ::_exit(127);
}

inline Ended Wait(pid_t child) {
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  if (WIFSIGNALED(status)) return {-1, WTERMSIG(status)};
  return {WEXITSTATUS(status), 0};
}

// An enrolled machine whose agent is started and ended by the test.
class Machine {
 public:
  Machine() : tpm_(Swtpm::Make().value()) {
    auto device = tpm::OpenDevice(tpm_->tcti()).value();
    const auto created = device->CreateAik(tpm::AikKind::kEccP256, RandomArray<32>()).value();
    REQUIRE(device->Persist(created.handle, tpm::kDefaultAikHandle).ok());
    REQUIRE(device->FlushTransient(created.handle).ok());
    aik.emplace(tpm::KeyOf(tpm::DecodePublicArea(created.public_area).value()).value());
    REQUIRE(config::MakeDirectory(dir / "state", 0700).ok());
    config::EnrollmentRecord record;
    record.attester = aik->SpkiDigest();
    record.aik_handle = tpm::kDefaultAikHandle;
    record.aik_kind = tpm::AikKind::kEccP256;
    record.verifier_url = "https://127.0.0.1:1";
    record.certificate_path = dir / "aik.pem";
    REQUIRE(config::SaveEnrollment(config::EnrollmentPath(dir / "state"), record).ok());
    WriteConfig("");
  }
  ~Machine() {
    if (pid_ > 0) (void)End(SIGKILL);
  }

  void WriteConfig(const std::string& more) {
    std::ofstream(dir / "agent.toml") << "[tpm]\ntcti = \"" << tpm_->tcti() << "\"\n[agent]\nsocket = \"" << socket()
                                      << "\"\nstate_dir = \"" << (dir / "state") << "\"\nrelay_user = \"" << ::getuid()
                                      << "\"\n"
                                      << more;
  }
  std::string socket() const { return dir / "agent.sock"; }
  std::string Output() const { return config::ReadTextFile(dir / "out", 1U << 20).value(); }

  void Start() {
    pid_ = Spawn({std::string(ASSAY_BIN_DIR) + "/assay-agent", "--config", dir / "agent.toml"}, dir / "out");
    for (int i = 0; i < 600; ++i) {
      auto client = local::Client::Connect(socket());
      if (client.ok() && client->Call(local::StatusRequest{}, kWait).ok()) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    FAIL("the agent did not start: " << Output());
  }
  Ended End(int signal) {
    ::kill(pid_, signal);
    const Ended ended = Wait(pid_);
    pid_ = -1;
    return ended;
  }
  void Signal(int signal) const { ::kill(pid_, signal); }
  int Command(std::vector<std::string> args) {
    args.insert(args.end(), {"--config", dir / "agent.toml"});
    return Run("assay-agent", std::move(args));
  }
  // A program of this build to its end; its output is CommandOutput().
  int Run(const std::string& program, std::vector<std::string> args) {
    args.insert(args.begin(), std::string(ASSAY_BIN_DIR) + "/" + program);
    ::unlink((dir / "command").c_str());
    return Wait(Spawn(args, dir / "command")).code;
  }
  std::string CommandOutput() const { return config::ReadTextFile(dir / "command", 1U << 20).value(); }

  // Evidence as the relay asks for it, its quote checked against the AIK.
  EvidenceBody Attest() {
    local::EvidenceRequest request;
    request.challenge.nonce = Buffer(limits::kChallenge, 0x33);
    request.challenge.selection = {tpm::Alg::kSha256, 0x40FF};
    request.channel_binding = Buffer(32, 0x44);
    const auto reply = local::Client::Connect(socket()).value().Call(request, kWait).value();
    REQUIRE_MESSAGE(reply.ok, reply.error.detail);
    evidence_ = reply.payload;
    const Evidence evidence = DecodeEvidence(evidence_).value();
    const auto raw = tpm::ToRaw(tpm::DecodeSignature(evidence.signature).value()).value();
    CHECK(aik->VerifyDigest(SignatureScheme::kEcdsaP256Sha256, Sha256(evidence.quote), raw.view()) ==
          SignatureCheck::kValid);
    const auto attest = tpm::DecodeAttest(evidence.quote).value();
    CHECK(Equal(attest.extra_data, ExtraData(QuoteTag::kEvidence, request.challenge.nonce, Sha256(evidence.body),
                                             request.channel_binding)));
    const EvidenceBody body = DecodeEvidenceBody(evidence.body).value();
    Digest value = body.runtime.log_base;
    for (const Bytes entry : body.runtime.log) value = ExtendWithEntry(value, entry);
    CHECK(Equal(evidence.pcrs.Find(14)->value, value));
    return body;
  }
  std::vector<EntryKind> KindsOf(const EvidenceBody& body) const {
    std::vector<EntryKind> kinds;
    for (const Bytes entry : body.runtime.log) kinds.push_back(DecodeRuntimeEntry(entry).value().kind);
    return kinds;
  }

  TempDir dir;
  std::optional<PublicKey> aik;

 private:
  std::unique_ptr<Swtpm> tpm_;
  pid_t pid_ = -1;
  Buffer evidence_;
};

}  // namespace assay::agent::test
