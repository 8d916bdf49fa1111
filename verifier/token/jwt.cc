// SPDX-License-Identifier: Apache-2.0
#include "verifier/token/jwt.h"

#include <algorithm>

#include "sdk/core/json.h"
#include "verifier/token/compact.h"

namespace assay::token {
namespace {

// The audience is one string, or a list that holds ours: the one asked for is kept.
std::optional<std::string> Audience(JsonValue value, std::string_view wanted) {
  if (const auto text = value.String()) return std::string(*text);
  bool found = false;
  (void)value.EachElement([&](JsonValue element) { return !(found = element.String() == wanted); });
  return found ? std::optional<std::string>(wanted) : std::nullopt;
}

bool ReadScopes(std::string_view text, std::vector<std::string>& scopes) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (end > 0) scopes.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (scopes.size() > kScopes) return false;
  }
  return true;
}

std::optional<std::string> ReadBinding(JsonValue cnf) {
  std::optional<std::string> thumbprint;
  const bool whole = cnf.EachMember([&](std::string_view name, JsonValue value) {
    if (name == "jkt" && value.String()) thumbprint = *value.String();
    return true;
  });
  return whole ? thumbprint : std::nullopt;
}

struct ReadState {
  AccessClaims claims;
  std::optional<std::int64_t> issued_at, expires_at, not_before;
  bool good = true;
};

bool ReadClaim(ReadState& state, std::string_view name, JsonValue value, std::string_view audience) {
  const auto text = [&](std::string& out) {
    const auto found = value.String();
    out = found.value_or("");
    return found.has_value();
  };
  const auto time = [&](std::optional<std::int64_t>& out) { return (out = value.Int()).has_value(); };
  if (name == "iss") return text(state.claims.issuer);
  if (name == "sub") return text(state.claims.subject);
  if (name == "jti") return text(state.claims.id);
  if (name == "iat") return time(state.issued_at);
  if (name == "exp") return time(state.expires_at);
  if (name == "nbf") return time(state.not_before);
  if (name == "aud") {
    state.claims.audience = Audience(value, audience).value_or("");
  } else if (name == "scope") {
    return value.String() && ReadScopes(*value.String(), state.claims.scopes);
  } else if (name == "cnf") {
    // A confirmation that is not understood must not read as none (RFC 7800 section 3.1).
    return (state.claims.key_thumbprint = ReadBinding(value)).has_value();
  }
  return true;
}

TokenFault Judge(const ReadState& state, const ClaimsPolicy& policy) {
  const AccessClaims& claims = state.claims;
  if (!state.good || !state.expires_at || !state.issued_at || claims.id.empty() || claims.subject.empty())
    return TokenFault::kInvalid;
  if (*state.issued_at > policy.now + policy.skew_s ||
      (state.not_before && *state.not_before > policy.now + policy.skew_s))
    return TokenFault::kInvalid;
  if (*state.expires_at <= policy.now - policy.skew_s ||
      *state.issued_at < policy.now - policy.max_age_s - policy.skew_s)
    return TokenFault::kExpired;
  if (claims.issuer != policy.issuer) return TokenFault::kIssuer;
  return claims.audience.empty() || claims.audience != policy.audience ? TokenFault::kAudience : TokenFault::kNone;
}

}  // namespace

Result<SecretRing> SecretRing::Make(const std::vector<Bytes>& secrets) {
  if (secrets.empty() || secrets.size() > kRingSecrets) return MakeError(Code::kConfig, "a ring holds 1 to 8 secrets");
  SecretRing ring;
  for (const Bytes secret : secrets) {
    if (secret.size() < kSecretSize)
      return MakeError(Code::kConfig, "a secret for HS256 has at least 32 bytes (RFC 7518 section 3.2)");
    ring.keys_.emplace_back(secret);
  }
  return ring;
}

std::string SecretRing::Sign(std::string_view typ, std::string_view payload_json) const {
  JsonWriter header;
  header.BeginObject().Name("alg").String("HS256").Name("typ").String(typ).EndObject();
  std::string token = ToBase64Url(AsBytes(header.text())) + '.' + ToBase64Url(AsBytes(payload_json));
  const Digest mac = keys_.front().Mac({AsBytes(token)});
  return (token += '.') += ToBase64Url(mac);
}

std::optional<std::string> SecretRing::Verify(std::string_view token, std::string_view typ) const {
  auto parts = SplitCompact(token);
  if (!parts) return std::nullopt;
  bool valid = false;
  for (const HmacKey& key : keys_) valid |= EqualConstantTime(key.Mac({AsBytes(parts->signed_part)}), parts->signature);
  if (!valid) return std::nullopt;
  JsonParser parser(parts->header.size());
  const auto header = parser.TryParse(parts->header);
  bool algorithm = false, type = false;
  const bool whole = header && header->EachMember([&](std::string_view name, JsonValue value) {
    if (name == "alg") algorithm = value.String() == "HS256";
    else if (name == "typ") type = value.String() == typ;
    return name != "crit" && name != "jwk" && name != "jku" && name != "x5c" && name != "x5u";
  });
  if (!whole || !algorithm || !type) return std::nullopt;
  return std::move(parts->payload);
}

std::string_view TokenFaultCode(TokenFault fault) noexcept {
  switch (fault) {
    case TokenFault::kNone: return "";
    case TokenFault::kInvalid: return "INVALID_TOKEN";
    case TokenFault::kExpired: return "TOKEN_EXPIRED";
    case TokenFault::kIssuer: return "INVALID_ISSUER";
    case TokenFault::kAudience: return "INVALID_AUDIENCE";
    case TokenFault::kScope: return "INSUFFICIENT_SCOPE";
    case TokenFault::kRevoked: return "TOKEN_REVOKED";
    case TokenFault::kUnavailable: return "TOKEN_REVOKED";  // fails closed: what cannot be asked counts as revoked
  }
  return "INVALID_TOKEN";
}

std::string EncodeAccessClaims(const AccessClaims& claims) {
  std::string scopes;
  for (const std::string& scope : claims.scopes) scopes += (scopes.empty() ? "" : " ") + scope;
  JsonWriter out;
  out.BeginObject()
      .Name("iss")
      .String(claims.issuer)
      .Name("sub")
      .String(claims.subject)
      .Name("aud")
      .String(claims.audience);
  out.Name("jti")
      .String(claims.id)
      .Name("iat")
      .Int(claims.issued_at)
      .Name("exp")
      .Int(claims.expires_at)
      .Name("scope")
      .String(scopes);
  if (claims.key_thumbprint) out.Name("cnf").BeginObject().Name("jkt").String(*claims.key_thumbprint).EndObject();
  return std::move(out.EndObject()).Take();
}

CheckedClaims CheckClaims(std::string_view payload_json, const ClaimsPolicy& policy) {
  if (payload_json.size() > kCompactSize) return {};
  JsonParser parser(payload_json.size());
  const auto root = parser.TryParse(payload_json);
  if (!root) return {};
  ReadState state;
  state.good = root->EachMember(
      [&](std::string_view name, JsonValue value) { return ReadClaim(state, name, value, policy.audience); });
  const TokenFault fault = Judge(state, policy);
  state.claims.issued_at = state.issued_at.value_or(0);
  state.claims.expires_at = state.expires_at.value_or(0);
  return {fault, std::move(state.claims)};
}

}  // namespace assay::token
