// SPDX-License-Identifier: Apache-2.0
// The enrollment CA: certifies attestation keys that credential activation proved, for a day or so. A certificate names
// the host id and the AIK; it never opens anything by itself, every judgement goes back to the store.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sdk/core/bytes.h"
#include "sdk/core/crypto.h"
#include "sdk/core/result.h"
#include "verifier/enrollment/x509.h"

namespace assay::enrollment {

struct AikCertificateRequest {
  const PublicKey* aik = nullptr;  // RSA-2048 or P-256
  Digest host_id{};
  std::int64_t now = 0;           // seconds since the epoch
  std::int64_t lifetime = 86400;  // seconds
};

enum class AikCertificateOutcome : std::uint8_t { kValid, kMalformed, kForeign, kExpired, kNotYetValid, kNotForAik };
struct AikCertificateVerdict {
  AikCertificateOutcome outcome = AikCertificateOutcome::kMalformed;
  std::string detail;
  Digest host_id{};  // kValid only, as all below
  Digest attester{};
  std::int64_t not_after = 0;
};

// Owns the CA's key. Immutable after construction; any number of threads.
class EnrollmentCa {
 public:
  static Result<EnrollmentCa> Create(std::string_view common_name, std::int64_t now, std::int64_t lifetime);
  // kConfig when the certificate is not this key's, is no CA or is not P-256.
  static Result<EnrollmentCa> Load(std::string_view certificate_pem, std::string_view key_pem);
  // `directory`/enroll_ca.pem and enroll_ca.key (mode 0600): loads them, or creates both when neither exists.
  static Result<EnrollmentCa> LoadOrCreate(const std::string& directory, std::int64_t now);

  // X.509 version 3, DER. kUnsupported for another kind of key, kConfig when the CA itself ends before `now`. The
  // certificate never outlives the CA's own.
  Result<Buffer> Issue(const AikCertificateRequest& request) const;
  // Was the certificate issued by this CA, for an AIK, and is it within its time?
  AikCertificateVerdict Check(Bytes der, std::int64_t now) const;

  std::string CertificatePem() const;
  Secret KeyPem() const { return key_.Pem(); }

 private:
  EnrollmentCa(X509Handle certificate, PrivateKey key) : certificate_(std::move(certificate)), key_(std::move(key)) {}
  X509Handle certificate_;
  PrivateKey key_;
};

// The certificate's notAfter, in seconds since the epoch.
Result<std::int64_t> NotAfter(const X509* certificate);

}  // namespace assay::enrollment
