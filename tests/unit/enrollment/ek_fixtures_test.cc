// SPDX-License-Identifier: Apache-2.0
// Certificates of real TPMs and manufacturers. They are other projects' data, reached through ASSAY_FIXTURES.
#include <doctest/doctest.h>
#include <openssl/pem.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

#include "tests/unit/enrollment/cert_maker.h"
#include "verifier/enrollment/ek_chain.h"

namespace assay::enrollment {
namespace {

using test::kNow;

std::optional<std::filesystem::path> Fixtures() {
  const char* root = std::getenv("ASSAY_FIXTURES");
  if (root != nullptr && *root != '\0') return std::filesystem::path(root);
  MESSAGE("skipped: ASSAY_FIXTURES is not set, the manufacturers' certificates are not in this tree");
  return std::nullopt;
}

Buffer ReadFile(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  REQUIRE_MESSAGE(in.good(), path.string());
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  return ToBuffer(AsBytes(text));
}

std::string ReadText(const std::filesystem::path& path) { return std::string(AsText(ReadFile(path))); }

EkChainVerdict Judge(Bytes certificate, const std::vector<Buffer>& sent, const TrustBundle& bundle,
                     EkChainRules rules) {
  const X509Handle leaf = ParseEkCertificate(certificate).value();
  const PublicKey ek = CertificateKey(leaf.get()).value();
  return CheckEkChain({certificate, sent, tpm::EkKind::kRsa2048Low, &ek, &bundle, rules, kNow});
}

TEST_CASE("a real STMicroelectronics EK certificate as NV holds it leads to the GlobalSign root") {
  const auto fixtures = Fixtures();
  if (!fixtures) return;
  const auto hirs = *fixtures / "hirs/certificates";
  const Buffer raw = ReadFile(hirs / "nuc-1/ek_cert_untouched.cer");
  CHECK(Equal(TrimEkCertificate(raw).value(), ReadFile(hirs / "nuc-1/ek_cert_7_byte_header_removed.cer")));
  const std::vector<Buffer> sent = {ReadFile(hirs / "stMicroCaCerts/stmtpmekint02.crt"),
                                    ReadFile(hirs / "stMicroCaCerts/stmtpmekroot.crt")};
  const TrustBundle bundle = TrustBundle::FromPem(ReadText(hirs / "gstpmroot.pem"), "").value();
  const EkChainVerdict verdict = Judge(raw, sent, bundle, {.allow_expired_leaf = true, .allow_sha1 = true});
  CHECK_MESSAGE(verdict.outcome == EkChainOutcome::kTrusted, verdict.detail);
  CHECK(verdict.anchor.find("GlobalSign") != std::string::npos);
  CHECK(Judge(raw, {sent[0]}, bundle, {.allow_expired_leaf = true, .allow_sha1 = true}).outcome ==
        EkChainOutcome::kNoPath);
  CHECK(Judge(raw, sent, bundle, {.allow_expired_leaf = false, .allow_sha1 = true}).outcome ==
        EkChainOutcome::kExpired);
  const EkChainVerdict strict = Judge(raw, sent, bundle, {.allow_expired_leaf = true, .allow_sha1 = false});
  CHECK_MESSAGE(strict.outcome == EkChainOutcome::kWeakSignature, strict.detail);
}

TEST_CASE(
    "an intermediate with the manufacturer's name and key, signed by a stranger's root, leads to no manufacturer's "
    "root") {
  const auto fixtures = Fixtures();
  if (!fixtures) return;
  const auto hirs = *fixtures / "hirs/certificates";
  const Buffer leaf = ReadFile(hirs / "nuc-1/ek_cert_untouched.cer");
  const TrustBundle real =
      TrustBundle::FromPem(ReadText(hirs / "gstpmroot.pem"), ReadText(hirs / "fakestmtpmekint02.pem")).value();
  CHECK(Judge(leaf, {}, real, {true, true}).outcome == EkChainOutcome::kNoPath);
  const TrustBundle configured =
      TrustBundle::FromPem(ReadText(hirs / "fakeCA.pem"), ReadText(hirs / "fakestmtpmekint02.pem")).value();
  CHECK(Judge(leaf, {}, configured, {true, true}).outcome == EkChainOutcome::kTrusted);  // the operator's word decides
}

TEST_CASE("padding and headers of real certificates are trimmed, and a certificate about another key is refused") {
  const auto fixtures = Fixtures();
  if (!fixtures) return;
  const auto hirs = *fixtures / "hirs/certificates";
  const TrustBundle bundle = TrustBundle::FromPem(ReadText(hirs / "gstpmroot.pem"), "").value();
  const PublicKey any = PrivateKey::Generate(KeyType::kRsa2048).value().Public().value();
  for (const char* name : {"ek_cert_with_padded_bytes.cer", "ek_cert_with_security_assertions.cer"}) {
    const Buffer raw = ReadFile(hirs / name);
    const Bytes der = TrimEkCertificate(raw).value();
    CHECK(der.size() < raw.size());
    CHECK(CertificateKey(ParseCertificate(der).value().get()).value().type() == KeyType::kRsa2048);
    CHECK(CheckEkChain({raw, {}, tpm::EkKind::kRsa2048Low, &any, &bundle, {}, kNow}).outcome ==
          EkChainOutcome::kKeyMismatch);
    CHECK(Judge(raw, {}, bundle, {true, true}).outcome == EkChainOutcome::kNoPath);
  }
}

TEST_CASE("no byte of a real EK certificate with an RSAES-OAEP key can change without losing trust") {
  const auto fixtures = Fixtures();
  if (!fixtures) return;
  const auto hirs = *fixtures / "hirs/certificates";
  const Buffer der = ReadFile(hirs / "nuc-1/ek_cert_7_byte_header_removed.cer");
  const PublicKey ek = CertificateKey(ParseEkCertificate(der).value().get()).value();
  const std::vector<Buffer> sent = {ReadFile(hirs / "stMicroCaCerts/stmtpmekint02.crt"),
                                    ReadFile(hirs / "stMicroCaCerts/stmtpmekroot.crt")};
  const TrustBundle bundle = TrustBundle::FromPem(ReadText(hirs / "gstpmroot.pem"), "").value();
  const auto judge = [&](Bytes raw) {
    return CheckEkChain({raw, sent, tpm::EkKind::kRsa2048Low, &ek, &bundle, {true, true}, kNow}).outcome;
  };
  REQUIRE(judge(der) == EkChainOutcome::kTrusted);
  for (std::size_t i = 0; i < der.size(); ++i) {
    Buffer changed = der;
    changed[i] ^= 1;
    CHECK_MESSAGE(judge(changed) != EkChainOutcome::kTrusted, "byte " << i);
    CHECK_MESSAGE(judge(Bytes(der).first(i)) != EkChainOutcome::kTrusted, "cut at " << i);
  }
}

TEST_CASE("the published bundles of manufacturers' roots load whole, and judge real certificates") {
  const auto fixtures = Fixtures();
  if (!fixtures) return;
  const auto bundles = *fixtures / "tpm-ca-certificates";
  const TrustBundle bundle = TrustBundle::FromPem(ReadText(bundles / "MIRROR.tpm-ca-certificates.pem"),
                                                  ReadText(bundles / "MIRROR.tpm-intermediate-ca-certificates.pem"))
                                 .value();
  CHECK(bundle.roots() == 26);
  CHECK(bundle.intermediates() == 143);
  std::string all;
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(*fixtures / "keylime/tpm_cert_store")) {
    all += ReadText(entry.path()) + "\n";
    ++files;
  }
  CHECK(TrustBundle::FromPem(all, "").value().roots() >= files);
  const auto hirs = *fixtures / "hirs/certificates";
  const EkChainVerdict verdict = Judge(ReadFile(hirs / "nuc-1/ek_cert_untouched.cer"), {}, bundle,
                                       {.allow_expired_leaf = true, .allow_sha1 = true});
  MESSAGE("published bundles on a real certificate: " << EkChainCode(verdict.outcome) << " " << verdict.detail << " "
                                                      << verdict.anchor);
  CHECK((verdict.outcome == EkChainOutcome::kTrusted || verdict.outcome == EkChainOutcome::kNoPath));
}

TEST_CASE("no CA certificate of a manufacturer passes as an EK certificate") {
  const auto fixtures = Fixtures();
  if (!fixtures) return;
  const auto store = *fixtures / "keylime/tpm_cert_store";
  for (const auto& entry : std::filesystem::directory_iterator(store)) {
    const std::string pem = ReadText(entry.path());
    const TrustBundle bundle = TrustBundle::FromPem(pem, "").value();
    const X509Handle certificate = [&] {
      const BioHandle bio{BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()))};
      return X509Handle{PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)};
    }();
    REQUIRE(certificate);
    const Result<PublicKey> key = CertificateKey(certificate.get());
    if (!key.ok()) continue;
    const tpm::EkKind kind = key->type() == KeyType::kP256   ? tpm::EkKind::kEccP256Low
                             : key->type() == KeyType::kP384 ? tpm::EkKind::kEccP384High
                                                             : tpm::EkKind::kRsa2048Low;
    const EkChainVerdict verdict =
        CheckEkChain({CertificateDer(certificate.get()).value(), {}, kind, &*key, &bundle, {true, true}, kNow});
    CHECK_MESSAGE(verdict.outcome != EkChainOutcome::kTrusted, entry.path().string());
  }
}

}  // namespace
}  // namespace assay::enrollment
