// SPDX-License-Identifier: Apache-2.0
#include "verifier/token/dpop.h"

#include <algorithm>
#include <utility>

#include "verifier/token/compact.h"

namespace assay::token {
namespace {

char Lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; }

// RFC 9449 section 4.3, steps 2 to 7: what the header says of itself.
struct ProofHeader {
  bool type = false, critical = false;
  std::string_view algorithm;
  std::optional<ParsedJwk> key;
};

ProofFault ReadHeader(JsonValue root, ProofHeader& header) {
  const bool whole = root.EachMember([&](std::string_view name, JsonValue value) {
    if (name == "typ") header.type = value.String() == "dpop+jwt";
    else if (name == "alg") header.algorithm = value.String().value_or("");
    else if (name == "jwk") header.key = ParsePublicJwk(value);
    else if (name == "crit") header.critical = true;
    return true;
  });
  if (!whole || header.critical) return ProofFault::kMalformed;
  if (!header.type) return ProofFault::kType;
  if (header.algorithm != "ES256" && header.algorithm != "EdDSA") return ProofFault::kAlgorithm;
  return header.key ? ProofFault::kNone : ProofFault::kKey;
}

struct ProofClaims {
  std::string_view id, method, url, token_hash;
  std::optional<std::string_view> nonce;
  std::optional<std::int64_t> issued_at, not_before, expires_at;
  bool mistyped = false;
};

ProofClaims ReadClaims(JsonValue root) {
  ProofClaims claims;
  const auto time = [&claims](JsonValue value) {
    claims.mistyped |= !value.Int();
    return value.Int();
  };
  const bool whole = root.EachMember([&](std::string_view name, JsonValue value) {
    if (name == "jti") claims.id = value.String().value_or("");
    else if (name == "htm") claims.method = value.String().value_or("");
    else if (name == "htu") claims.url = value.String().value_or("");
    else if (name == "ath") claims.token_hash = value.String().value_or("");
    else if (name == "nonce") claims.nonce = value.String();
    else if (name == "iat") claims.issued_at = time(value);
    else if (name == "nbf") claims.not_before = time(value);
    else if (name == "exp") claims.expires_at = time(value);
    return true;
  });
  claims.mistyped |= !whole;
  return claims;
}

ProofFault JudgeClaims(const ProofClaims& claims, const ProofRequest& request) {
  if (claims.mistyped) return ProofFault::kMalformed;
  if (claims.id.empty() || claims.id.size() > kProofId) return ProofFault::kId;
  if (claims.method != request.method) return ProofFault::kMethod;
  const auto claimed = NormalUrl(claims.url);
  if (!claimed || claimed != NormalUrl(request.url)) return ProofFault::kUrl;
  if (!claims.issued_at || *claims.issued_at > request.now + kProofAhead ||
      *claims.issued_at < request.now - kProofBehind)
    return ProofFault::kTime;
  if ((claims.expires_at && *claims.expires_at <= request.now) ||
      (claims.not_before && *claims.not_before > request.now))
    return ProofFault::kTime;
  if (!request.access_token.empty() && claims.token_hash != ToBase64Url(Sha256(AsBytes(request.access_token))))
    return ProofFault::kAccessToken;
  if (!request.nonce_required) return ProofFault::kNone;
  const bool known =
      claims.nonce && std::find(request.nonces.begin(), request.nonces.end(), *claims.nonce) != request.nonces.end();
  return known ? ProofFault::kNone : ProofFault::kNonce;
}

}  // namespace

std::string_view ProofFaultCode(ProofFault fault) noexcept {
  if (fault == ProofFault::kNone) return "";
  return fault == ProofFault::kNonce ? "USE_DPOP_NONCE" : "INVALID_DPOP_PROOF";
}

ProofCheck VerifyProof(const ProofRequest& request, ReplayStore& replay) {
  ProofCheck check;
  const auto refuse = [&check](ProofFault fault) {
    check = ProofCheck{fault, {}, {}, 0};
    return check;
  };
  const auto parts = SplitCompact(request.proof);
  if (!parts) return refuse(ProofFault::kMalformed);
  JsonParser header_parser(parts->header.size());
  JsonParser payload_parser(parts->payload.size());
  const auto header_json = header_parser.TryParse(parts->header);
  const auto payload = payload_parser.TryParse(parts->payload);
  if (!header_json || !payload) return refuse(ProofFault::kMalformed);
  ProofHeader header;
  if (const ProofFault fault = ReadHeader(*header_json, header); fault != ProofFault::kNone) return refuse(fault);
  if (!VerifyCompact(header.key->key, header.algorithm, *parts)) return refuse(ProofFault::kSignature);
  const ProofClaims claims = ReadClaims(*payload);
  if (const ProofFault fault = JudgeClaims(claims, request); fault != ProofFault::kNone) return refuse(fault);
  // Last, so that a proof that is refused otherwise is not used up.
  if (!replay.Remember(header.key->thumbprint, claims.id, *claims.issued_at, request.now))
    return refuse(ProofFault::kReplay);
  return {ProofFault::kNone, header.key->thumbprint, std::string(claims.id), *claims.issued_at};
}

bool MemoryReplayStore::Remember(std::string_view thumbprint, std::string_view proof_id, std::int64_t iat,
                                 std::int64_t now) {
  const std::lock_guard lock(mutex_);
  if (now < refuse_until_) return false;
  while (!by_time_.empty() && by_time_.begin()->first < now) {
    seen_.erase(by_time_.begin()->second);
    by_time_.erase(by_time_.begin());
  }
  if (seen_.size() >= kReplayEntries) return false;  // full: better to refuse than to forget
  std::string key = std::string(thumbprint) + '\n' + std::string(proof_id);
  const std::int64_t forget = iat + kProofBehind;
  if (!seen_.emplace(key, forget).second) return false;
  by_time_.emplace(forget, std::move(key));
  return true;
}

std::optional<std::string_view> ProofFromHeader(std::string_view header) noexcept {
  const bool plain = std::all_of(header.begin(), header.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
  });
  if (!plain || header.size() > kCompactSize || std::count(header.begin(), header.end(), '.') != 2) return std::nullopt;
  return header;
}

bool BindingHolds(std::optional<std::string_view> token_jkt, std::optional<std::string_view> proof_jkt) noexcept {
  return token_jkt == proof_jkt && (!token_jkt || !token_jkt->empty());
}

std::optional<std::string> NormalUrl(std::string_view url) {
  url = url.substr(0, std::min(url.find('?'), url.find('#')));
  std::string out;
  const std::size_t scheme_end = url.find("://");
  if (scheme_end == std::string_view::npos) return std::nullopt;
  for (const char c : url.substr(0, scheme_end)) out += Lower(c);
  const bool secure = out == "https";
  if (!secure && out != "http") return std::nullopt;
  const std::string_view rest = url.substr(scheme_end + 3);
  const std::size_t path = std::min(rest.find('/'), rest.size());
  std::string authority;
  for (const char c : rest.substr(0, path)) authority += Lower(c);
  if (authority.empty() || authority.find('@') != std::string::npos) return std::nullopt;
  const std::string_view port = secure ? ":443" : ":80";
  if (authority.ends_with(port)) authority.resize(authority.size() - port.size());
  if (authority.empty()) return std::nullopt;
  (out += "://") += authority;
  out += path == rest.size() ? std::string_view("/") : rest.substr(path);
  return out;
}

}  // namespace assay::token
