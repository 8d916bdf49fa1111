// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "enroll/certificates.h"
#include "enroll/enroll_flow.h"
#include "enroll/local.h"
#include "enroll/renew_flow.h"
#include "tests/support/soft_tpm.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/enroll/in_process_verifier.h"

namespace assay::enroll {
namespace {

using test::InProcessVerifier;
using test::SoftTpm;

const PrivateKey& RootKey() {
  static const PrivateKey key = PrivateKey::Generate(KeyType::kP256).value();
  return key;
}
const test::Cert& Root() {
  static const test::Cert root = test::MakeCert(test::CaSpec("Root"), RootKey().Public().value(), nullptr, RootKey());
  return root;
}
const PrivateKey& MiddleKey() {
  static const PrivateKey key = PrivateKey::Generate(KeyType::kP256).value();
  return key;
}
const test::Cert& Middle() {
  static const test::Cert middle =
      test::MakeCert(test::CaSpec("Middle"), MiddleKey().Public().value(), &Root(), RootKey());
  return middle;
}
Buffer EkCertificate(int machine, tpm::EkKind kind) {
  return test::MakeCert(test::EkSpec(), test::EkKeyOf(machine, kind).Public().value(), &Root(), RootKey()).der;
}

struct Machine {
  test::TempDir dir;
  SoftTpm device;
  config::EnrollConfig config;
  std::vector<std::string> lines;

  explicit Machine(int number) : device(number) {
    for (const auto kind : {tpm::EkKind::kRsa2048Low, tpm::EkKind::kEccP256High})
      device.nv[tpm::EkCertificateIndex(kind)] = EkCertificate(number, kind);
    config.verifier = "https://verifier";
    config.state_dir = dir / "state";
    config.aik = tpm::AikKind::kEccP256;
    config.label = "box";
  }
  Deps With(VerifierClient& verifier) {
    return {device, verifier, [this](std::string_view line) { lines.emplace_back(line); }};
  }
  Outcome<config::EnrollmentRecord> Run(VerifierClient& verifier, Mode mode = Mode::kEnroll, std::string token = "") {
    return EnrollFlow(With(verifier), config, std::move(token)).Run(mode);
  }
  bool HasState() const { return std::filesystem::exists(config::EnrollmentPath(config.state_dir)); }
};

const config::EnrollmentRecord& Good(const Outcome<config::EnrollmentRecord>& outcome) {
  const auto* failure = std::get_if<Failure>(&outcome);
  const std::string why = failure == nullptr ? "" : failure->code + ": " + failure->detail;
  REQUIRE_MESSAGE(failure == nullptr, why);
  return std::get<config::EnrollmentRecord>(outcome);
}
const Failure& Bad(const Outcome<config::EnrollmentRecord>& outcome) {
  REQUIRE(std::holds_alternative<Failure>(outcome));
  return std::get<Failure>(outcome);
}

TEST_CASE("a machine enrolls: the AIK is kept in the TPM, record and certificate on disk, nothing stays transient") {
  InProcessVerifier verifier(Root().pem);
  Machine machine(1);
  const config::EnrollmentRecord record = Good(machine.Run(verifier));
  CHECK(record.generation == 1);
  CHECK_FALSE(record.weak);
  CHECK(machine.device.loaded().empty());
  CHECK(machine.device.persistent_areas.count(record.aik_handle) == 1);
  const auto loaded = config::LoadEnrollment(config::EnrollmentPath(machine.config.state_dir)).value();
  CHECK(loaded.host_id == record.host_id);
  CHECK(loaded.verifier_url == "https://verifier");
  const Buffer der = ReadCertificateFile(record.certificate_path).value().front();
  CHECK(verifier.ca.Check(der, test::kNow).attester == record.attester);
  struct stat info {};
  REQUIRE(stat(config::EnrollmentPath(machine.config.state_dir).c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
  CHECK(verifier.store.hosts.begin()->second.label == "box");
  CHECK(machine.lines.size() >= 6);
  CHECK(machine.lines.back() == "enrolled");
}

TEST_CASE("a second enrollment is refused, rotation draws a new AIK at the same handle, renewal keeps it") {
  InProcessVerifier verifier(Root().pem);
  Machine machine(1);
  const config::EnrollmentRecord first = Good(machine.Run(verifier));
  CHECK(Bad(machine.Run(verifier)).exit == Exit::kAlreadyEnrolled);
  machine.config.aik_handle = 0x81010177;  // a rotation stays where the AIK is
  const config::EnrollmentRecord second = Good(machine.Run(verifier, Mode::kRotate));
  CHECK(second.aik_handle == first.aik_handle);
  CHECK(second.host_id == first.host_id);
  CHECK(second.attester != first.attester);
  CHECK(second.generation == 2);
  CHECK(machine.device.persistent_areas.size() == 1);
  verifier.now_ms += 60'000'000;
  const config::EnrollmentRecord renewed = Good(Renew(machine.With(verifier), machine.config));
  CHECK(renewed.attester == second.attester);
  CHECK(renewed.generation == 2);
  CHECK(renewed.not_after > second.not_after);
  CHECK(config::LoadEnrollment(config::EnrollmentPath(machine.config.state_dir)).value().not_after ==
        renewed.not_after);
}

TEST_CASE("a renewal whose connection was renewed takes a new challenge and quote, once") {
  InProcessVerifier verifier(Root().pem);
  Machine machine(1);
  (void)Good(machine.Run(verifier));
  verifier.renewed_connections = 1;
  verifier.asked.clear();
  (void)Good(Renew(machine.With(verifier), machine.config));
  CHECK(verifier.asked ==
        std::vector<std::string>{route::kChallenge, route::kEnrollRenew, route::kChallenge, route::kEnrollRenew});
  verifier.renewed_connections = 2;
  CHECK(Bad(Renew(machine.With(verifier), machine.config)).exit == Exit::kVerifierUnreachable);
}

TEST_CASE("rotation, renewal and removal need an enrollment") {
  InProcessVerifier verifier(Root().pem);
  Machine machine(1);
  CHECK(Bad(machine.Run(verifier, Mode::kRotate)).exit == Exit::kNotEnrolled);
  CHECK(Bad(Renew(machine.With(verifier), machine.config)).exit == Exit::kNotEnrolled);
  CHECK(Remove(machine.device, machine.config.state_dir, [](std::string_view) {})->exit == Exit::kNotEnrolled);
  CHECK(Bad(LoadRecord(machine.config.state_dir)).exit == Exit::kNotEnrolled);
  CHECK(verifier.asked.empty());
}

TEST_CASE(
    "removal evicts the AIK and deletes the state, also when the key is gone already, and can be repeated after a "
    "failure") {
  InProcessVerifier verifier(Root().pem);
  Machine machine(1);
  const config::EnrollmentRecord record = Good(machine.Run(verifier));
  machine.device.faults.emplace("RemovePersistent", MakeError(Code::kTpm, "lockout"));
  CHECK(Remove(machine.device, machine.config.state_dir, [](std::string_view) {})->exit == Exit::kTpm);
  CHECK(machine.HasState());
  machine.device.faults.clear();
  CHECK_FALSE(Remove(machine.device, machine.config.state_dir, [](std::string_view) {}).has_value());
  CHECK_FALSE(machine.HasState());
  CHECK_FALSE(std::filesystem::exists(record.certificate_path));
  CHECK(machine.device.persistent_areas.empty());
  (void)Good(machine.Run(verifier));
  (void)machine.device.RemovePersistent(record.aik_handle).ok();
  CHECK_FALSE(Remove(machine.device, machine.config.state_dir, [](std::string_view) {}).has_value());
}

TEST_CASE(
    "a failure of each TPM command leaves no record, no persistent key and nothing transient, and says what failed") {
  for (const char* method :
       {"ReadPublic", "ReadNv", "CreateEk", "CreateAik", "ActivateCredential", "CertifyCreation", "Persist"}) {
    InProcessVerifier verifier(Root().pem);
    Machine machine(1);
    machine.device.faults.emplace(method, MakeError(Code::kTpm, "the TPM is in lockout"));
    const Outcome<config::EnrollmentRecord> outcome = machine.Run(verifier);
    CHECK(Bad(outcome).exit == Exit::kTpm);
    CHECK(Bad(outcome).detail.find("lockout") != std::string::npos);
    CHECK_FALSE(Bad(outcome).fix.empty());
    CHECK_FALSE(machine.HasState());
    CHECK(machine.device.persistent_areas.empty());
    CHECK_MESSAGE(machine.device.loaded().empty(), method);
  }
}

TEST_CASE("a failed rotation keeps the old AIK, its record and its certificate") {
  InProcessVerifier verifier(Root().pem);
  Machine machine(1);
  const config::EnrollmentRecord record = Good(machine.Run(verifier));
  const Buffer area = machine.device.persistent_areas.at(record.aik_handle);
  verifier.instead.emplace(
      route::kEnrollComplete,
      VerifierReply{403, EncodeErrorReply({"host_revoked", "an operator revoked this host", "ask"})});
  const Outcome<config::EnrollmentRecord> outcome = machine.Run(verifier, Mode::kRotate);
  CHECK(Bad(outcome).exit == Exit::kRefused);
  CHECK(Bad(outcome).code == "host_revoked");
  CHECK(machine.device.persistent_areas.at(record.aik_handle) == area);
  CHECK(config::LoadEnrollment(config::EnrollmentPath(machine.config.state_dir)).value().attester == record.attester);
}

TEST_CASE("refusals, a silent network and nonsense are told apart") {
  Machine machine(1);
  InProcessVerifier verifier(Middle().pem);  // another root than the EK's
  CHECK(Bad(machine.Run(verifier)).code == "ek_chain_untrusted");
  CHECK(Bad(machine.Run(verifier)).exit == Exit::kRefused);
  verifier.instead.emplace(route::kEnrollBegin, MakeError(Code::kUnavailable, "connection refused"));
  CHECK(Bad(machine.Run(verifier)).exit == Exit::kVerifierUnreachable);
  verifier.instead.clear();
  for (const VerifierReply& reply : {VerifierReply{200, {}}, VerifierReply{200, {1, 2, 3}}, VerifierReply{500, {}},
                                     VerifierReply{302, ToBuffer(AsBytes("<html>"))}}) {
    verifier.instead.insert_or_assign(route::kEnrollBegin, Result<VerifierReply>(reply));
    CHECK(Bad(machine.Run(verifier)).code == "verifier_reply_malformed");
  }
  CHECK_FALSE(machine.HasState());
}

TEST_CASE("a verifier that certifies another AIK is not believed") {
  InProcessVerifier verifier(Root().pem);
  Machine machine(1), other(2);
  (void)Good(other.Run(verifier));
  EnrollResult foreign;
  foreign.aik_certificate = {1};
  verifier.instead.emplace(route::kEnrollComplete, VerifierReply{200, EncodeEnrollResult(foreign)});
  CHECK(Bad(machine.Run(verifier)).code == "verifier_reply_malformed");
  CHECK(machine.device.persistent_areas.empty());
}

TEST_CASE("somebody else's key at the handle is not replaced") {
  InProcessVerifier verifier(Root().pem);
  Machine machine(1);
  machine.device.persistent_areas[machine.config.aik_handle] = Buffer(10, 1);
  CHECK(Bad(machine.Run(verifier)).code == "handle_in_use");
  CHECK(machine.device.persistent_areas.at(machine.config.aik_handle) == Buffer(10, 1));
  CHECK(verifier.asked.empty());
}

TEST_CASE("an EK certificate comes from NV or a file, and its absence is explained") {
  InProcessVerifier verifier(Root().pem);
  Machine machine(1);
  machine.device.nv.clear();
  CHECK(Bad(machine.Run(verifier)).code == "ek_certificate_missing");
  const std::string path = machine.dir / "ek.pem";
  std::ofstream(path) << CertificatePem(EkCertificate(1, tpm::EkKind::kRsa2048Low));
  machine.config.ek_certificate = path;
  CHECK_FALSE(Good(machine.Run(verifier)).weak);
  Machine bare(2);
  bare.config.ek_without_certificate = true;
  CHECK(Bad(bare.Run(verifier)).code == "ek_key_refused");
  verifier.policy.allow_ek_key = true;
  CHECK(Good(bare.Run(verifier)).weak);
}

TEST_CASE("another EK enrolls where the policy allows it, and the record says weak") {
  InProcessVerifier verifier(Root().pem);
  Machine machine(1);
  machine.config.ek = tpm::EkKind::kEccP256High;
  CHECK(Bad(machine.Run(verifier)).code == "ek_kind_not_allowed");
  verifier.policy.other_kinds = {tpm::EkKind::kEccP256High};
  CHECK(Good(machine.Run(verifier)).weak);
  CHECK(std::count(machine.device.calls.begin(), machine.device.calls.end(), "CertifyCreation") == 0);
}

TEST_CASE("intermediates come from NV 0x01C00100 on, across indices and with padding, or from files") {
  InProcessVerifier verifier(Root().pem);
  Machine machine(1);
  const Buffer leaf = test::MakeCert(test::EkSpec(), test::EkKeyOf(1, tpm::EkKind::kRsa2048Low).Public().value(),
                                     &Middle(), MiddleKey())
                          .der;
  machine.device.nv[tpm::EkCertificateIndex(tpm::EkKind::kRsa2048Low)] = leaf;
  CHECK(Bad(machine.Run(verifier)).code == "ek_chain_untrusted");
  const Buffer& der = Middle().der;
  const auto half = static_cast<std::ptrdiff_t>(der.size() / 2);
  machine.device.nv[0x01C00100] = Buffer(der.begin(), der.begin() + half);
  machine.device.nv[0x01C00101] = Buffer(der.begin() + half, der.end());
  machine.device.nv[0x01C00101].resize(600, 0xFF);
  (void)Good(machine.Run(verifier));
  Machine second(1);
  second.device.nv[tpm::EkCertificateIndex(tpm::EkKind::kRsa2048Low)] = leaf;
  const std::string path = second.dir / "chain.pem";
  std::ofstream(path) << Middle().pem;
  second.config.intermediates = {path};
  (void)Good(second.Run(verifier));
  second.config.intermediates = {second.dir / "none.pem"};
  second.config.state_dir = second.dir / "other";
  second.config.aik_handle = 0x81010102;
  CHECK(Bad(second.Run(verifier)).exit == Exit::kUsage);
}

TEST_CASE("chains are split at whole certificates only") {
  const Buffer& a = Root().der;
  const Buffer& b = Middle().der;
  Buffer both = a;
  both.insert(both.end(), b.begin(), b.end());
  CHECK(SplitCertificates(both) == std::vector<Buffer>{a, b});
  both.resize(both.size() + 20, 0);
  CHECK(SplitCertificates(both) == std::vector<Buffer>{a, b});
  both.resize(a.size() + b.size() - 1);
  CHECK(SplitCertificates(both) == std::vector<Buffer>{a});
  CHECK(SplitCertificates({}).empty());
  CHECK(SplitCertificates(Buffer{0x30, 0x82, 0xFF, 0xFF, 0x00}).empty());
  Buffer many;
  for (int i = 0; i < 20; ++i) many.insert(many.end(), a.begin(), a.end());
  CHECK(SplitCertificates(many).size() == limits::kIntermediates);
}

TEST_CASE("certificates survive PEM") {
  const test::TempDir dir;
  const std::string path = dir / "a.pem";
  const auto put = [&](const std::string& text) { std::ofstream(path) << text; };
  put("text before\n" + CertificatePem(Root().der) + "between\n" + Middle().pem);
  CHECK(ReadCertificateFile(path).value() == std::vector<Buffer>{Root().der, Middle().der});
  put(std::string(AsText(Root().der)));
  CHECK(ReadCertificateFile(path).value() == std::vector<Buffer>{Root().der});
  put("nothing");
  CHECK_FALSE(ReadCertificateFile(path).ok());
  put("-----BEGIN CERTIFICATE-----\nAAAA");
  CHECK_FALSE(ReadCertificateFile(path).ok());
  put("-----BEGIN CERTIFICATE-----\nA*AA\n-----END CERTIFICATE-----\n");
  CHECK_FALSE(ReadCertificateFile(path).ok());
}

TEST_CASE("the certificate's state follows its last third and its end") {
  config::EnrollmentRecord record;
  record.renew_after = 100;
  record.not_after = 150;
  CHECK(StateOf(record, 99) == CertificateState::kValid);
  CHECK(StateOf(record, 100) == CertificateState::kRenewalDue);
  CHECK(StateOf(record, 150) == CertificateState::kExpired);
  CHECK(StateOf(record, -5) == CertificateState::kValid);
  CHECK(RecordJson(record, 120).find("\"certificate_state\":\"renewal_due\"") != std::string::npos);
  CHECK(RecordText(record, 200).find("expired") != std::string::npos);
  CHECK(FailureJson({Exit::kRefused, "code", "a \"detail\"", "fix"}) ==
        R"({"ok":false,"code":"code","detail":"a \"detail\"","fix":"fix","exit":7})");
}

TEST_CASE("a verifier's address is read whole") {
  const auto read = [](std::string_view url) {
    const Result<VerifierAddress> address = ParseVerifierUrl(url);
    return address.ok() ? address->host + " " + std::to_string(address->port) : std::string("refused");
  };
  CHECK(read("https://verifier") == "verifier 8443");
  CHECK(read("https://verifier:9000/") == "verifier 9000");
  CHECK(read("https://[2001:db8::1]:9000") == "2001:db8::1 9000");
  CHECK(read("https://[2001:db8::1]") == "2001:db8::1 8443");
  for (const char* url :
       {"", "http://verifier", "https://", "https://:9", "https://v:", "https://v:0", "https://v:65536", "https://v:9x",
        "https://[::1", "https://v/path", "https://u@v", "https://[::1]9"}) {
    CHECK_MESSAGE(read(url) == "refused", url);
  }
}

}  // namespace
}  // namespace assay::enroll
