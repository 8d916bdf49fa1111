// SPDX-License-Identifier: Apache-2.0
#include "verifier/token/access_token.h"

#include <algorithm>

#include "verifier/token/compact.h"

namespace assay::token {
namespace {

TokenFault JudgeRevocation(const AccessClaims& claims, const AccessPolicy& policy) {
  if (policy.mode == Mode::kOffline) return TokenFault::kNone;
  if (policy.mode == Mode::kCached) {
    if (policy.denylist == nullptr) return TokenFault::kUnavailable;
    const auto refreshed = policy.denylist->refreshed_at();
    if (!refreshed || *refreshed > policy.claims.now || policy.claims.now - *refreshed > policy.denylist_age_s)
      return TokenFault::kUnavailable;
    return policy.denylist->Has(claims.id) ? TokenFault::kRevoked : TokenFault::kNone;
  }
  if (policy.store == nullptr) return TokenFault::kUnavailable;
  const auto standing = policy.store->Ask(claims.id);
  if (!standing.ok()) return TokenFault::kUnavailable;
  return *standing == Standing::kGood ? TokenFault::kNone : TokenFault::kRevoked;
}

CheckedClaims Judge(std::string_view payload, const AccessPolicy& policy) {
  CheckedClaims checked = CheckClaims(payload, policy.claims);
  if (checked.fault != TokenFault::kNone) return checked;
  const auto& scopes = checked.claims.scopes;
  if (!policy.scope.empty() && std::find(scopes.begin(), scopes.end(), policy.scope) == scopes.end())
    checked.fault = TokenFault::kScope;
  else checked.fault = JudgeRevocation(checked.claims, policy);
  return checked;
}

}  // namespace

CheckedClaims ValidateAccessToken(const SecretRing& ring, std::string_view token, const AccessPolicy& policy) {
  const auto payload = ring.Verify(token, policy.type);
  return payload ? Judge(*payload, policy) : CheckedClaims{};
}

CheckedClaims ValidateAccessToken(const KeySet& keys, std::string_view token, const AccessPolicy& policy) {
  if (token.size() > kCompactSize) return {};
  Buffer scratch(token.size());
  const JwsCheck verified = VerifyJws(keys, token, policy.type, scratch);
  return verified.fault == JwsFault::kNone ? Judge(verified.jws.payload, policy) : CheckedClaims{};
}

}  // namespace assay::token
