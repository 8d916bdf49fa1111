// SPDX-License-Identifier: Apache-2.0
// JWTs signed with HS256: sessions and access tokens. The algorithm is the key's, never the header's. A ring of
// secrets: the first signs, each verifies.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sdk/core/bytes.h"
#include "sdk/core/crypto.h"
#include "sdk/core/result.h"
#include "sdk/core/token.h"

namespace assay::token {

inline constexpr std::size_t kSecretSize = 32;  // at least
inline constexpr std::size_t kRingSecrets = 8;
inline constexpr std::size_t kScopes = 64;

class SecretRing {
 public:
  static Result<SecretRing> Make(const std::vector<Bytes>& secrets);  // 1..kRingSecrets, each of kSecretSize or more
  std::string Sign(std::string_view typ, std::string_view payload_json) const;
  // Header "alg" must be HS256 and "typ" the one asked for, without "crit" or a key of the sender's.
  std::optional<std::string> Verify(std::string_view token, std::string_view typ) const;  // the payload

 private:
  std::vector<HmacKey> keys_;
};

enum class TokenFault : std::uint8_t { kNone, kInvalid, kExpired, kIssuer, kAudience, kScope, kRevoked, kUnavailable };
std::string_view TokenFaultCode(TokenFault fault) noexcept;  // "TOKEN_EXPIRED", ...

struct AccessClaims {
  std::string issuer, subject, audience, id;
  std::vector<std::string> scopes;
  std::optional<std::string> key_thumbprint;  // cnf.jkt (RFC 9449 section 6.1)
  std::int64_t issued_at = 0, expires_at = 0;
};
std::string EncodeAccessClaims(const AccessClaims& claims);

// What a token is held against. `exp`, `iat`, `jti`, `sub` and `aud` are required.
struct ClaimsPolicy {
  std::string_view issuer, audience;
  std::int64_t now = 0;
  std::int64_t skew_s = 30;
  std::int64_t max_age_s = 24 * 3600;  // iat may not be older
};
struct CheckedClaims {
  TokenFault fault = TokenFault::kInvalid;
  AccessClaims claims;
};
CheckedClaims CheckClaims(std::string_view payload_json, const ClaimsPolicy& policy);

}  // namespace assay::token
