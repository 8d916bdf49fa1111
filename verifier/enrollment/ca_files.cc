// SPDX-License-Identifier: Apache-2.0
// The enrollment CA on disk: enroll_ca.pem and enroll_ca.key. Never overwrites either.
#include <optional>
#include <string>

#include "sdk/config/files.h"
#include "verifier/enrollment/ca.h"

namespace assay::enrollment {
namespace {

constexpr std::size_t kMaxPem = 64U << 10;
constexpr std::int64_t kCaLifetime = std::int64_t{10} * 365 * 86400;  // seconds

}  // namespace

Result<EnrollmentCa> EnrollmentCa::LoadOrCreate(const std::string& directory, std::int64_t now) {
  const std::string certificate_path = directory + "/enroll_ca.pem";
  const std::string key_path = directory + "/enroll_ca.key";
  const Result<std::string> certificate = config::ReadTextFile(certificate_path, kMaxPem);
  const Result<Secret> key = config::ReadSecretFile(key_path, kMaxPem);
  if (certificate.ok() && key.ok()) return Load(*certificate, AsText(key->view()));
  if (!certificate.ok() && certificate.error().code != Code::kNotFound) return certificate.error();
  if (!key.ok() && key.error().code != Code::kNotFound) return key.error();
  if (certificate.ok() || key.ok()) {
    return MakeError(Code::kConfig, directory +
                                        ": one of enroll_ca.pem and enroll_ca.key is missing: restore it from the "
                                        "backup, or remove both to begin anew");
  }
  ASSAY_TRY(EnrollmentCa ca, Create("assay enrollment CA", now, kCaLifetime));
  ASSAY_CHECK_OK(config::CreateFile(key_path, ca.KeyPem().view(), 0600));
  ASSAY_CHECK_OK(config::CreateFile(certificate_path, AsBytes(ca.CertificatePem()), 0644));
  return ca;
}

}  // namespace assay::enrollment
