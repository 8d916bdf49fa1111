// SPDX-License-Identifier: Apache-2.0
// Certificates for tests: small chains with one property wrong at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sdk/core/crypto.h"
#include "verifier/enrollment/x509.h"

namespace assay::test {

inline constexpr std::int64_t kNow = 1'790'000'000;  // 2026-09-21

struct CertSpec {
  std::string subject = "test";  // empty: an empty name, as EK certificates have
  std::int64_t from = kNow - 86400;
  std::int64_t to = kNow + 86400;
  std::vector<std::pair<int, std::string>> extensions;  // NID and OpenSSL's text for it
  std::vector<std::string> raw_critical;                // OIDs of unknown critical extensions
  const EVP_MD* hash = nullptr;                         // SHA-256 when null
  bool oaep = false;                                    // the subject's RSA key is written as RSAES-OAEP
};

struct Cert {
  enrollment::X509Handle x509;
  Buffer der;
  std::string pem;
};

// `issuer` null: self-signed.
Cert MakeCert(const CertSpec& spec, const PublicKey& subject_key, const Cert* issuer, const PrivateKey& issuer_key);

CertSpec CaSpec(std::string subject, int path_length = -1);
CertSpec EkSpec();  // what a manufacturer writes: empty subject, critical TCG names, EKU, keyEncipherment

}  // namespace assay::test
