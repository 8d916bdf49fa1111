// SPDX-License-Identifier: Apache-2.0
// EK certificates as an endpoint sends them: trimming, parsing, the key, the whole judgement, the endpoint's splitting
// of a chain. An input is taken as the certificate, as an intermediate of a good one, and as a chain from NV.
#include <cstdint>
#include <cstdlib>

#include "enroll/certificates.h"
#include "sdk/core/limits.h"
#include "verifier/enrollment/ca.h"
#include "verifier/enrollment/ek_chain.h"

namespace {

// The root that signed the corpus; its key was thrown away.
constexpr char kRoot[] =
    "-----BEGIN CERTIFICATE-----\n"
    "MIIBejCCASCgAwIBAgIUOaAktg17XWT7dfmqr1mEGq1GU1owCgYIKoZIzj0EAwIw\n"
    "GjEYMBYGA1UEAwwPQXNzYXkgZnV6eiByb290MCAXDTI2MTIwMTAzMjg0MFoYDzIx\n"
    "MjYxMTA3MDMyODQwWjAaMRgwFgYDVQQDDA9Bc3NheSBmdXp6IHJvb3QwWTATBgcq\n"
    "hkjOPQIBBggqhkjOPQMBBwNCAAT96JDIwZnsaEU7E8A/Gm++p3n01xhPQ/W5edHx\n"
    "ZBR3niYEMVK1nW72HIHDittNvtm0vZWzbgdXWiNiRaa2bkCEo0IwQDAPBgNVHRMB\n"
    "Af8EBTADAQH/MA4GA1UdDwEB/wQEAwICBDAdBgNVHQ4EFgQUflrs1bbXziwdgewh\n"
    "X39yL9VANGYwCgYIKoZIzj0EAwIDSAAwRQIhAKtIOJlaV2KpntnCWqnamya42aie\n"
    "A+SOCNfXHgH9MU75AiBkmrW+6JdATwu5Ag72JrVZpzQCTvFHhKuW1y0sCcrWMw==\n"
    "-----END CERTIFICATE-----\n";
constexpr std::int64_t kNow = 1'800'000'000;

void Require(bool held) {
  if (!held) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace assay;
  using namespace assay::enrollment;
  static const TrustBundle bundle = TrustBundle::FromPem(kRoot, "").value();
  static const EnrollmentCa ca = EnrollmentCa::Create("fuzz", kNow, 86400).value();
  const Bytes input(data, size);
  const Result<Bytes> der = TrimEkCertificate(input);
  if (der.ok()) {
    // Trimming finds a part of the input and is stable.
    Require(der->size() <= size);
    Require(TrimEkCertificate(*der).ok() && Equal(*TrimEkCertificate(*der), *der));
  }
  const Result<X509Handle> certificate = ParseEkCertificate(input);
  if (certificate.ok()) {
    const Result<PublicKey> key = CertificateKey(certificate->get());
    if (key.ok()) {
      for (const auto kind : {tpm::EkKind::kRsa2048Low, tpm::EkKind::kEccP256Low, tpm::EkKind::kEccP384High}) {
        (void)CheckEkChain({input, {}, kind, &*key, &bundle, {true, true}, kNow});
        (void)CheckEkChain({input, std::vector<Buffer>{ToBuffer(input)}, kind, &*key, &bundle, {false, false}, kNow});
      }
    }
  }
  Require(ca.Check(input, kNow).outcome != AikCertificateOutcome::kValid);  // nobody else has this CA's key
  std::size_t total = 0;
  for (const Buffer& part : enroll::SplitCertificates(input)) {
    Require(part.size() <= limits::kCertificate);
    total += part.size();
  }
  Require(total <= size);
  return 0;
}
