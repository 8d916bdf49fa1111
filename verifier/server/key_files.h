// SPDX-License-Identifier: Apache-2.0
// The verifier's own keys in one directory (0700), each in a file of mode 0600, made on first start:
// result.pem (ES256, signs result tokens), result-old-*.pem (public keys still in the JWKS), device.key (master of
// per-title device ids, 32 bytes as hexadecimal).
#pragma once

#include <string>

#include "sdk/core/result.h"
#include "verifier/token/result_issuer.h"

namespace assay::server {

Result<token::IssuerKeys> LoadOrCreateIssuerKeys(const std::string& directory);
// The same keys, where they exist already; makes none.
Status CheckIssuerKeys(const std::string& directory);

// A self-signed P-256 certificate for TLS, for a first start without a PKI: names are DNS names or IP addresses.
struct TlsIdentity {
  std::string certificate_pem;
  Secret key_pem;
};
Result<TlsIdentity> MakeTlsIdentity(const std::vector<std::string>& names, std::int64_t now, std::int64_t lifetime_s);

}  // namespace assay::server
