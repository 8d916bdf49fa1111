// SPDX-License-Identifier: Apache-2.0
#include "verifier/enrollment/ca.h"

#include <doctest/doctest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/unit/enrollment/cert_maker.h"

namespace assay::enrollment {
namespace {

using test::kNow;

TEST_CASE("an AIK certificate names host and key, lives as long as asked, and is checked by its own CA only") {
  const EnrollmentCa ca = EnrollmentCa::Create("test CA", kNow, 10'000'000).value();
  const EnrollmentCa other = EnrollmentCa::Create("test CA", kNow, 10'000'000).value();
  const Digest host = Sha256(AsBytes("host"));
  for (const KeyType type : {KeyType::kRsa2048, KeyType::kP256}) {
    const PublicKey aik = PrivateKey::Generate(type).value().Public().value();
    const Buffer der = ca.Issue({&aik, host, kNow, 3600}).value();
    const AikCertificateVerdict verdict = ca.Check(der, kNow);
    REQUIRE_MESSAGE(verdict.outcome == AikCertificateOutcome::kValid, verdict.detail);
    CHECK(verdict.host_id == host);
    CHECK(verdict.attester == aik.SpkiDigest());
    CHECK(verdict.not_after == kNow + 3600);
    CHECK(ca.Check(der, kNow + 3600).outcome == AikCertificateOutcome::kExpired);
    CHECK(ca.Check(der, kNow - 61).outcome == AikCertificateOutcome::kNotYetValid);
    CHECK(other.Check(der, kNow).outcome == AikCertificateOutcome::kForeign);
    CHECK(ca.Issue({&aik, host, kNow, 3600}).value() != der);  // another serial
  }
}

TEST_CASE("an AIK certificate has the fields that the design names") {
  const EnrollmentCa ca = EnrollmentCa::Create("test CA", kNow, 10'000'000).value();
  const PublicKey aik = PrivateKey::Generate(KeyType::kP256).value().Public().value();
  const Buffer der = ca.Issue({&aik, Digest{}, kNow, 3600}).value();
  const X509Handle x = ParseCertificate(der).value();
  CHECK(X509_get_version(x.get()) == 2);
  CHECK(X509_get_key_usage(x.get()) == KU_DIGITAL_SIGNATURE);
  CHECK(X509_get_pathlen(x.get()) == -1);
  CHECK((X509_get_extension_flags(x.get()) & EXFLAG_CA) == 0);
  CHECK(PurposeOf(x.get(), kOidAikCertificate) == KeyPurpose::kAllowed);
  CHECK(PurposeOf(x.get(), kOidEkCertificate) == KeyPurpose::kForbidden);
  for (const int nid : {NID_basic_constraints, NID_key_usage}) {
    const int at = X509_get_ext_by_NID(x.get(), nid, -1);
    REQUIRE(at >= 0);
    CHECK(X509_EXTENSION_get_critical(X509_get_ext(x.get(), at)) == 1);
  }
  const std::string text(AsText(der));
  CHECK(text.find("urn:assay:host:" + ToHex(Digest{})) != std::string::npos);
}

TEST_CASE("no byte of an AIK certificate can change") {
  const EnrollmentCa ca = EnrollmentCa::Create("test CA", kNow, 10'000'000).value();
  const PublicKey aik = PrivateKey::Generate(KeyType::kP256).value().Public().value();
  const Buffer der = ca.Issue({&aik, Sha256(AsBytes("h")), kNow, 3600}).value();
  for (std::size_t i = 0; i < der.size(); ++i) {
    Buffer changed = der;
    changed[i] ^= 1;
    CHECK_MESSAGE(ca.Check(changed, kNow).outcome != AikCertificateOutcome::kValid, "byte " << i);
    CHECK(ca.Check(Bytes(der).first(i), kNow).outcome == AikCertificateOutcome::kMalformed);
  }
  Buffer longer = der;
  longer.push_back(0);
  CHECK(ca.Check(longer, kNow).outcome == AikCertificateOutcome::kMalformed);
}

TEST_CASE("the CA's own certificate and certificates for other purposes are no AIK certificates") {
  const EnrollmentCa ca = EnrollmentCa::Create("test CA", kNow, 10'000'000).value();
  const PrivateKey key = PrivateKey::FromPem(AsText(ca.KeyPem().view())).value();
  const test::Cert self = test::MakeCert(test::CaSpec("test CA"), key.Public().value(), nullptr, key);
  CHECK(ca.Check(self.der, kNow).outcome == AikCertificateOutcome::kNotForAik);
  test::CertSpec spec;
  spec.extensions = {{NID_ext_key_usage, "serverAuth"},
                     {NID_subject_alt_name, "URI:urn:assay:host:" + ToHex(Digest{})}};
  const test::Cert server = test::MakeCert(spec, key.Public().value(), &self, key);
  CHECK(ca.Check(server.der, kNow).outcome == AikCertificateOutcome::kNotForAik);
  spec.extensions = {{NID_ext_key_usage, kOidAikCertificate}, {NID_subject_alt_name, "DNS:host"}};
  CHECK(ca.Check(test::MakeCert(spec, key.Public().value(), &self, key).der, kNow).outcome ==
        AikCertificateOutcome::kNotForAik);
  spec.extensions = {{NID_ext_key_usage, kOidAikCertificate}, {NID_subject_alt_name, "URI:urn:assay:host:abcd"}};
  CHECK(ca.Check(test::MakeCert(spec, key.Public().value(), &self, key).der, kNow).outcome ==
        AikCertificateOutcome::kNotForAik);
}

TEST_CASE("certificates never outlive the CA, and an expired CA issues none") {
  const EnrollmentCa ca = EnrollmentCa::Create("test CA", kNow, 1000).value();
  const PublicKey aik = PrivateKey::Generate(KeyType::kP256).value().Public().value();
  CHECK(ca.Check(ca.Issue({&aik, Digest{}, kNow, 86400}).value(), kNow).not_after == kNow + 1000);
  CHECK_FALSE(ca.Issue({&aik, Digest{}, kNow + 1000, 86400}).ok());
  const PublicKey wrong = PrivateKey::Generate(KeyType::kEd25519).value().Public().value();
  CHECK_FALSE(ca.Issue({&wrong, Digest{}, kNow, 86400}).ok());
}

TEST_CASE("a CA survives PEM, and a key of another CA is refused") {
  const EnrollmentCa ca = EnrollmentCa::Create("test CA", kNow, 1000).value();
  const EnrollmentCa other = EnrollmentCa::Create("test CA", kNow, 1000).value();
  const EnrollmentCa loaded = EnrollmentCa::Load(ca.CertificatePem(), AsText(ca.KeyPem().view())).value();
  const PublicKey aik = PrivateKey::Generate(KeyType::kP256).value().Public().value();
  CHECK(ca.Check(loaded.Issue({&aik, Digest{}, kNow, 10}).value(), kNow).outcome == AikCertificateOutcome::kValid);
  CHECK_FALSE(EnrollmentCa::Load(ca.CertificatePem(), AsText(other.KeyPem().view())).ok());
  const test::Cert leaf = test::MakeCert(test::EkSpec(), aik, nullptr, PrivateKey::Generate(KeyType::kP256).value());
  CHECK_FALSE(EnrollmentCa::Load(leaf.pem, AsText(ca.KeyPem().view())).ok());
}

TEST_CASE("the CA is created once in a directory, with a private key file, and half of it is an error") {
  std::string pattern = (std::filesystem::temp_directory_path() / "assay-ca-XXXXXX").string();
  REQUIRE(mkdtemp(pattern.data()) != nullptr);
  const std::filesystem::path directory = pattern;
  const EnrollmentCa first = EnrollmentCa::LoadOrCreate(directory, kNow).value();
  const EnrollmentCa second = EnrollmentCa::LoadOrCreate(directory, kNow).value();
  CHECK(first.CertificatePem() == second.CertificatePem());
  struct stat info {};
  REQUIRE(stat((directory / "enroll_ca.key").c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
  std::filesystem::remove(directory / "enroll_ca.pem");
  const auto half = EnrollmentCa::LoadOrCreate(directory, kNow);
  REQUIRE_FALSE(half.ok());
  CHECK(half.error().code == Code::kConfig);
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace assay::enrollment
