// SPDX-License-Identifier: Apache-2.0
// The parts of a compact JWS (RFC 7515), decoded but not believed, and keys given as JWK (RFC 7517).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sdk/core/bytes.h"
#include "sdk/core/crypto.h"
#include "sdk/core/json.h"

namespace assay::token {

inline constexpr std::size_t kCompactSize = 16 * 1024;

struct Compact {
  std::string header, payload;  // JSON text, unverified
  Buffer signature;
  std::string_view signed_part;  // a view into the token
};
std::optional<Compact> SplitCompact(std::string_view token);

// RFC 7638, base64url: of EC, OKP, RSA and oct keys; nothing when a required member is missing or mistyped.
std::optional<std::string> JwkThumbprint(JsonValue jwk);

// A P-256 or Ed25519 public key. Nothing for anything else, and for one with a private member.
struct ParsedJwk {
  PublicKey key;
  std::string thumbprint;
};
std::optional<ParsedJwk> ParsePublicJwk(JsonValue jwk);

// ES256 and EdDSA, by the key's own type; `alg` must be its name.
bool VerifyCompact(const PublicKey& key, std::string_view alg, const Compact& token);

}  // namespace assay::token
