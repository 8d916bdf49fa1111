// SPDX-License-Identifier: Apache-2.0
// What assay-enroll is told: by a TOML file, whose keys are the names of the command line's options.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sdk/config/enrollment.h"
#include "sdk/core/result.h"
#include "sdk/core/tpm.h"

namespace assay::config {

struct EnrollConfig {
  std::string verifier;  // https://host[:port]
  std::string ca;        // PEM file: who may have signed the verifier's TLS certificate
  std::string tcti = "device:/dev/tpmrm0";
  std::string state_dir = kDefaultStateDir;
  tpm::AikKind aik = tpm::AikKind::kRsaSsa;
  std::uint32_t aik_handle = 0x81010100;  // persistent
  tpm::EkKind ek = tpm::EkKind::kRsa2048Low;
  std::string ek_certificate;              // file instead of NV
  bool ek_without_certificate = false;     // the bare EK; the verifier's policy decides
  std::vector<std::string> intermediates;  // files beside those in NV
  std::string token_file;                  // one-time enrollment token
  std::string label;                       // empty: the host name
  std::uint64_t timeout_ms = 30'000;       // of one request to the verifier
};

std::string_view EkKindName(tpm::EkKind kind) noexcept;  // "rsa2048", "rsa2048-high", "p256", "p256-high", "p384-high"
Result<tpm::EkKind> EkKindFromName(std::string_view name);  // kConfig
Result<std::uint32_t> PersistentHandleFromText(
    std::string_view text);  // "0x81010100"; kConfig outside 0x81000000-0x81FFFFFF

Result<EnrollConfig> LoadEnrollConfig(const std::string& path);
Result<EnrollConfig> ParseEnrollConfig(std::string_view text, const std::string& name);
// What file and options together must fulfil: a verifier by https, a CA file, names in range. kConfig.
Status CheckEnrollConfig(const EnrollConfig& config);

}  // namespace assay::config
