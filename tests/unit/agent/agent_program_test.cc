// SPDX-License-Identifier: Apache-2.0
// The agent as a program over a software TPM: starts, crashes, stops, and what its log and its commands say of it.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <thread>

#include "agent/events/measured_log.h"
#include "agent/local/client.h"
#include "sdk/config/enrollment.h"
#include "sdk/config/files.h"
#include "sdk/core/crypto.h"
#include "sdk/core/evidence.h"
#include "tests/support/swtpm.h"

namespace assay::agent {
namespace {

using assay::test::Swtpm;
using assay::test::TempDir;

constexpr std::uint64_t kWait = 30'000;

struct Ended { int code = -1; int signal = 0; };

pid_t Spawn(const std::vector<std::string>& args, const std::string& output) {
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

Ended Wait(pid_t child) {
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
    std::ofstream(dir / "agent.toml") << "[tpm]\ntcti = \"" << tpm_->tcti() << "\"\n[agent]\nsocket = \"" << socket() << "\"\nstate_dir = \"" << (dir / "state")
                                      << "\"\nrelay_user = \"" << ::getuid() << "\"\n" << more;
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
  int Command(const std::vector<std::string>& args) {
    std::vector<std::string> all = {std::string(ASSAY_BIN_DIR) + "/assay-agent"};
    all.insert(all.end(), args.begin(), args.end());
    all.insert(all.end(), {"--config", dir / "agent.toml"});
    ::unlink((dir / "command").c_str());
    return Wait(Spawn(all, dir / "command")).code;
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
    CHECK(aik->VerifyDigest(SignatureScheme::kEcdsaP256Sha256, Sha256(evidence.quote), raw.view()) == SignatureCheck::kValid);
    const auto attest = tpm::DecodeAttest(evidence.quote).value();
    CHECK(Equal(attest.extra_data, ExtraData(QuoteTag::kEvidence, request.challenge.nonce, Sha256(evidence.body), request.channel_binding)));
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
  CHECK(machine.KindsOf(body) == std::vector{EntryKind::kIdentity, EntryKind::kIdentity, EntryKind::kStop, EntryKind::kIdentity});
  CHECK(DecodeRuntimeEntry(body.runtime.log[0]).value().config != DecodeRuntimeEntry(body.runtime.log[3]).value().config);
}

TEST_CASE("SIGHUP takes a good configuration, logs it, and keeps the old one when the file is bad") {
  Machine machine;
  machine.Start();
  machine.WriteConfig("[budget.user]\nburst = 5\n");
  machine.Signal(SIGHUP);
  for (int i = 0; i < 100 && machine.Output().find("read again") == std::string::npos; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK(machine.KindsOf(machine.Attest()).size() == 2);
  machine.WriteConfig("unknown_key = 1\n");
  machine.Signal(SIGHUP);
  for (int i = 0; i < 100 && machine.Output().find("old one stays") == std::string::npos; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(50));
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
