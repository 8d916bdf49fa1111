// SPDX-License-Identifier: Apache-2.0
// Enrollment with swtpm: manufactured EK certificates, real credential activation, commands counted at the TCTI.
#include "tests/support/swtpm.h"

#include <doctest/doctest.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "enroll/enroll_flow.h"
#include "enroll/local.h"
#include "enroll/renew_flow.h"
#include "tests/support/tpm_commands.h"
#include "tests/unit/enroll/in_process_verifier.h"
#include "verifier/enrollment/host_id.h"

namespace assay::enroll {
namespace {

constexpr std::size_t kMostCommands = 14;

class Counter final : public tpm::Tap {
 public:
  std::vector<std::uint32_t> commands;
  std::uint32_t OnCommand(std::uint32_t code) override {
    commands.push_back(code);
    return 0;
  }
};

std::string List(const std::vector<std::uint32_t>& commands) {
  std::string text;
  for (const std::uint32_t code : commands) {
    Writer bytes;
    bytes.U32Be(code);
    text += " " + ToHex(bytes.buffer());
  }
  return text;
}

struct Machine {
  std::unique_ptr<test::Swtpm> tpm = test::Swtpm::Make().value();
  test::InProcessVerifier verifier{tpm->manufacturer().root_pem};
  Counter counter;
  std::unique_ptr<tpm::Device> device;
  std::filesystem::path dir;
  config::EnrollConfig config;

  Machine() {
    REQUIRE(tpm->running());
    Result<std::unique_ptr<tpm::Device>> opened = tpm::OpenDevice(tpm->tcti(), &counter);
    REQUIRE(opened.ok());
    device = std::move(*opened);
    std::string pattern = (std::filesystem::temp_directory_path() / "assay-enroll-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    dir = pattern;
    config.verifier = "https://verifier";
    config.state_dir = dir / "state";
    config.aik = tpm::AikKind::kEccP256;
    verifier.policy.bundle = std::make_shared<const enrollment::TrustBundle>(
        enrollment::TrustBundle::FromPem(tpm->manufacturer().root_pem, tpm->manufacturer().issuer_pem).value());
    verifier.now_ms = std::time(nullptr) * std::int64_t{1000};
  }
  ~Machine() {
    std::error_code ignored;
    std::filesystem::remove_all(dir, ignored);
  }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  Deps With() {
    return {*device, verifier, [](std::string_view) {}};
  }
  Outcome<config::EnrollmentRecord> Run(Mode mode = Mode::kEnroll) { return EnrollFlow(With(), config, "").Run(mode); }
  std::size_t Transient() const { return test::TpmHandles(*tpm, test::kTransientHandles).value().size(); }
};

const config::EnrollmentRecord& Good(const Outcome<config::EnrollmentRecord>& outcome) {
  const auto* failure = std::get_if<Failure>(&outcome);
  const std::string why = failure == nullptr ? "" : failure->code + ": " + failure->detail;
  REQUIRE_MESSAGE(failure == nullptr, why);
  return std::get<config::EnrollmentRecord>(outcome);
}

TEST_CASE("enrolling with the canonical EK and its proof takes at most 14 TPM commands, for each kind of AIK") {
  for (const auto kind : {tpm::AikKind::kRsaSsa, tpm::AikKind::kRsaPss, tpm::AikKind::kEccP256}) {
    Machine machine;
    machine.config.aik = kind;
    machine.counter.commands.clear();
    const config::EnrollmentRecord record = Good(machine.Run());
    CHECK_MESSAGE(machine.counter.commands.size() <= kMostCommands, machine.counter.commands.size()
                                                                        << ":" << List(machine.counter.commands));
    CHECK_FALSE(record.weak);
    CHECK(record.generation == 1);
    CHECK(machine.Transient() == 0);
    CHECK(test::TpmHandles(*machine.tpm, test::kPersistentHandles).value().back() == record.aik_handle);
  }
}

TEST_CASE("with intermediates from a file the verifier needs only the root") {
  Machine machine;
  machine.verifier.policy.bundle = std::make_shared<const enrollment::TrustBundle>(
      enrollment::TrustBundle::FromPem(machine.tpm->manufacturer().root_pem, "").value());
  const Outcome<config::EnrollmentRecord> refused = machine.Run();
  REQUIRE(std::holds_alternative<Failure>(refused));
  CHECK(std::get<Failure>(refused).code == "ek_chain_untrusted");
  CHECK(machine.Transient() == 0);
  const std::string path = machine.dir / "issuer.pem";
  std::ofstream(path) << machine.tpm->manufacturer().issuer_pem;
  machine.config.intermediates = {path};
  (void)Good(machine.Run());
}

TEST_CASE("rotation, renewal, a reboot and removal, on one TPM") {
  Machine machine;
  const config::EnrollmentRecord first = Good(machine.Run());
  const config::EnrollmentRecord second = Good(machine.Run(Mode::kRotate));
  CHECK(second.host_id == first.host_id);
  CHECK(second.attester != first.attester);
  CHECK(second.generation == 2);
  machine.verifier.now_ms += 60'000'000;
  const config::EnrollmentRecord renewed = Good(Renew(machine.With(), machine.config));
  CHECK(renewed.attester == second.attester);
  CHECK(renewed.not_after > second.not_after);
  machine.device.reset();
  REQUIRE(machine.tpm->Restart().ok());
  machine.device = tpm::OpenDevice(machine.tpm->tcti()).value();
  CHECK(Good(Renew(machine.With(), machine.config)).attester == second.attester);
  CHECK_FALSE(Remove(*machine.device, machine.config.state_dir, [](std::string_view) {}).has_value());
  CHECK(machine.device->ReadPublic(second.aik_handle).error().code == Code::kNotFound);
  CHECK(machine.Transient() == 0);
}

TEST_CASE("the P-384 EK that swtpm_setup certifies enrolls by policy, and is weak") {
  Machine machine;
  machine.config.ek = tpm::EkKind::kEccP384High;
  machine.verifier.policy.other_kinds = {tpm::EkKind::kEccP384High};
  const config::EnrollmentRecord record = Good(machine.Run());
  CHECK(record.weak);
  CHECK(machine.Transient() == 0);
}

TEST_CASE("a TPM with another seed is another host") {
  Machine machine;
  const config::EnrollmentRecord first = Good(machine.Run());
  std::unique_ptr<test::Swtpm> fresh = test::Swtpm::Fresh().value();
  REQUIRE(fresh->running());
  machine.verifier.now_ms = std::time(nullptr) * std::int64_t{1000};  // its certificates begin now
  machine.device = tpm::OpenDevice(fresh->tcti()).value();
  machine.config.state_dir = machine.dir / "other";
  const config::EnrollmentRecord other = Good(machine.Run());
  CHECK(other.host_id != first.host_id);
  machine.device.reset();
}

TEST_CASE("a credential does not open in another TPM, and a failed command in the middle leaves nothing loaded") {
  Machine machine;
  for (const std::uint32_t code : {0x147U, 0x14AU}) {  // TPM2_ActivateCredential, TPM2_CertifyCreation
    class Failing final : public tpm::Tap {
     public:
      explicit Failing(std::uint32_t which) : which_(which) {}
      std::uint32_t OnCommand(std::uint32_t command) override {
        return command == which_ ? 0x101U : 0U;
      }  // TPM_RC_FAILURE
     private:
      std::uint32_t which_;
    } failing(code);
    machine.device.reset();
    machine.device = tpm::OpenDevice(machine.tpm->tcti(), &failing).value();
    const Outcome<config::EnrollmentRecord> outcome = machine.Run();
    REQUIRE(std::holds_alternative<Failure>(outcome));
    CHECK(std::get<Failure>(outcome).exit == Exit::kTpm);
    machine.device.reset();
    CHECK(machine.Transient() == 0);
    CHECK(test::TpmHandles(*machine.tpm, test::kLoadedSessions).value().empty());
    CHECK(machine.verifier.store.hosts.empty());
  }
  std::unique_ptr<test::Swtpm> other = test::Swtpm::Fresh().value();
  REQUIRE(other->running());
  machine.device = tpm::OpenDevice(machine.tpm->tcti()).value();
  const std::unique_ptr<tpm::Device> stranger = tpm::OpenDevice(other->tcti()).value();
  const tpm::CreatedKey ek = machine.device->CreateEk(tpm::EkKind::kRsa2048Low).value();
  const tpm::CreatedKey aik = machine.device->CreateAik(tpm::AikKind::kEccP256, RandomArray<32>()).value();
  const EnrollBegin begin{tpm::EkKind::kRsa2048Low,
                          machine.device->ReadNv(tpm::EkCertificateIndex(tpm::EkKind::kRsa2048Low)).value(),
                          ek.public_area,
                          {},
                          aik.public_area,
                          "",
                          ""};
  const enrollment::BeginOutcome outcome = machine.verifier.service.Begin(begin, "192.0.2.1").value();
  const auto& challenge = std::get<EnrollChallenge>(outcome);
  const tpm::CreatedKey other_ek = stranger->CreateEk(tpm::EkKind::kRsa2048Low).value();
  const tpm::CreatedKey other_aik = stranger->CreateAik(tpm::AikKind::kEccP256, RandomArray<32>()).value();
  CHECK_FALSE(
      stranger
          ->ActivateCredential(other_aik.handle, other_ek.handle, challenge.credential_blob, challenge.encrypted_secret)
          .ok());
  CHECK(machine.device->ActivateCredential(aik.handle, ek.handle, challenge.credential_blob, challenge.encrypted_secret)
            .ok());
}

}  // namespace
}  // namespace assay::enroll
