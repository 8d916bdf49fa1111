// SPDX-License-Identifier: Apache-2.0
// What an endpoint knows of its own enrollment: written by assay-enroll, read by the agent. Holds no secret; the
// AIK stays in the TPM. Nothing here is proof of anything: the verifier has its own record.
#pragma once

#include <cstdint>
#include <string>

#include "sdk/core/bytes.h"
#include "sdk/core/result.h"
#include "sdk/core/tpm.h"

namespace assay::config {

inline constexpr char kDefaultStateDir[] = "/var/lib/assay";
inline constexpr char kEnrollmentFile[] = "enrollment.toml";  // inside the state directory

struct EnrollmentRecord {
  Digest host_id{};              // as the verifier computed it
  Digest attester{};             // SHA-256 of the AIK's SPKI
  std::uint32_t aik_handle = 0;  // persistent, 0x81000000..0x81FFFFFF
  tpm::AikKind aik_kind = tpm::AikKind::kRsaSsa;
  std::string verifier_url;       // https://host:port
  std::string certificate_path;   // AIK certificate, PEM
  std::uint64_t not_after = 0;    // of the certificate, seconds since the epoch
  std::uint64_t renew_after = 0;  // seconds since the epoch: the last third begins
  std::uint64_t generation = 0;   // of the AIK on this host
  bool weak = false;              // device_id_strength: weak
};

std::string_view AikKindName(tpm::AikKind kind) noexcept;  // "rsassa", "rsapss", "ecdsa-p256"
Result<tpm::AikKind> AikKindFromName(std::string_view name);

std::string EnrollmentPath(const std::string& state_dir);
// kNotFound when this machine is not enrolled; kConfig when the file is not one of ours.
Result<EnrollmentRecord> LoadEnrollment(const std::string& path);
// Replaces the file atomically with mode 0600. kConfig when a field does not fit the file's format.
Status SaveEnrollment(const std::string& path, const EnrollmentRecord& record);

}  // namespace assay::config
