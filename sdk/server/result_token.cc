// SPDX-License-Identifier: Apache-2.0
// assay_verify_result_token: signature first, then every claim against what the server itself knows. Nothing of the
// token reaches the caller before all checks passed, except with ASSAY_E_TIER.
#include <algorithm>
#include <array>

#include "sdk/core/limits.h"
#include "sdk/server/handles.h"

namespace assay::sdk {
namespace {

constexpr std::uint32_t kDefaultNonceAgeMs = 120000;
constexpr std::uint32_t kMaxLeewayMs = 300000;
static_assert(ASSAY_MAX_TOKEN == limits::kResultToken && ASSAY_MAX_AUDIENCE == limits::kAudience &&
              ASSAY_MAX_MATCH == limits::kMatch);
static_assert(ASSAY_MAX_TEXT == kClaimText + 1 && ASSAY_MAX_REASONS == limits::kReasons &&
              ASSAY_REASON_SIZE == kReasonCode + 1);
static_assert(ASSAY_MAX_AIK == kAikSpki);

// The caller's options, checked.
struct Expected {
  std::string_view issuer, audience, match;
  Bytes nonce, session_key_hash;
  std::int64_t issued_ms, now_ms, leeway_ms, max_age_ms;
  Tier worst;
  bool allow_test;
  const assay_revocations* revocations;
};

bool ReadOptions(const assay_result_options& o, Expected& e) noexcept {
  if (o.struct_size != sizeof(o) || o.server_nonce == nullptr || o.session_key_hash == nullptr) return false;
  if (!Text(o.issuer, kClaimText, e.issuer) || !Text(o.audience, limits::kAudience, e.audience) ||
      !Text(o.match, limits::kMatch, e.match))
    return false;
  if (e.issuer.empty() || e.audience.empty() || !IsTime(o.now_ms) || !IsTime(o.nonce_issued_at_ms) ||
      o.leeway_ms > kMaxLeewayMs)
    return false;
  const std::int32_t worst = o.worst_tier == ASSAY_TIER_NONE ? ASSAY_TIER_AFFIRMING : o.worst_tier;
  if (worst != ASSAY_TIER_AFFIRMING && worst != ASSAY_TIER_WARNING && worst != ASSAY_TIER_CONTRAINDICATED) return false;
  e.nonce = {o.server_nonce, ASSAY_NONCE_SIZE};
  e.session_key_hash = {o.session_key_hash, ASSAY_DIGEST_SIZE};
  e.issued_ms = o.nonce_issued_at_ms;
  e.now_ms = o.now_ms;
  e.leeway_ms = o.leeway_ms;
  e.max_age_ms = o.max_nonce_age_ms == 0 ? kDefaultNonceAgeMs : o.max_nonce_age_ms;
  e.worst = static_cast<Tier>(worst);
  e.allow_test = o.allow_test != 0;
  e.revocations = o.revocations;
  return true;
}

bool Holds(const std::vector<std::string>& sorted, std::string_view id) noexcept {
  return std::binary_search(sorted.begin(), sorted.end(), id,
                            [](std::string_view a, std::string_view b) { return a < b; });
}

assay_code CheckRevocations(const ResultView& view, const Expected& e) noexcept {
  if (e.revocations == nullptr) return ASSAY_OK;
  if (e.now_ms >= e.revocations->expires_at * kMillisecondsPerSecond + e.leeway_ms) return ASSAY_E_REVOCATIONS_STALE;
  if (Holds(e.revocations->token_ids, view.token_id) || Holds(e.revocations->device_ids, view.device_id) ||
      (!view.previous_device_id.empty() && Holds(e.revocations->device_ids, view.previous_device_id))) {
    return ASSAY_E_REVOKED;
  }
  return ASSAY_OK;
}

// One claim a line; the tier comes last, since its refusal still hands out what the token says.
assay_code CheckClaims(const ResultView& view, const Expected& e) noexcept {
  if (view.issuer != e.issuer) return ASSAY_E_ISSUER;
  if (view.audience == view.issuer) return ASSAY_E_VERIFIER_AUDIENCE;
  if (view.audience != e.audience) return ASSAY_E_AUDIENCE;
  if (!EqualConstantTime(view.server_nonce, e.nonce)) return ASSAY_E_NONCE;
  if (view.match != e.match) return ASSAY_E_MATCH;
  if (!EqualConstantTime(view.session_key_hash, e.session_key_hash)) return ASSAY_E_SESSION_KEY;
  if (e.now_ms >= view.expires_at * kMillisecondsPerSecond + e.leeway_ms) return ASSAY_E_EXPIRED;
  if (e.now_ms + e.leeway_ms < view.issued_at * kMillisecondsPerSecond) return ASSAY_E_NOT_YET_VALID;
  if (view.test && !e.allow_test) return ASSAY_E_TEST_TOKEN;
  if (const assay_code code = CheckRevocations(view, e); code != ASSAY_OK) return code;
  if (view.tier == Tier::kNone || view.tier > e.worst) return ASSAY_E_TIER;
  return ASSAY_OK;
}

template <std::size_t N>
void CopyText(std::string_view from, char (&to)[N]) noexcept {
  for (std::size_t i = 0; i < std::min(from.size(), N - 1); ++i)
    to[i] = from[i];  // claims are shorter: see the asserts above
}

void FillHost(const ResultView& view, assay_host_block& host) noexcept {
  CopyBytes(view.attester, host.attester);
  CopyBytes(view.host.aik_spki, host.aik);
  host.aik_size = static_cast<std::uint32_t>(view.host.aik_spki_size);
  host.aik_scheme = static_cast<std::int32_t>(view.host.aik_scheme);
  host.reset_count = view.host.reset_count;
  host.restart_count = view.host.restart_count;
  host.clock_ms = view.host.clock_ms;
  CopyBytes(view.host.boot_pcr_digest, host.boot_pcr_digest);
  host.boot_pcr_mask = view.host.boot_pcr_mask;
  host.allowed_entries = view.host.allowed_entries;
  CopyBytes(view.host.pcr14, host.pcr14);
}

void Fill(const ResultView& view, assay_result& out) noexcept {
  const TrustVector& v = view.vector;
  const std::int8_t vector[] = {v.instance_identity, v.configuration,  v.executables,    v.file_system,
                                v.hardware,          v.runtime_opaque, v.storage_opaque, v.sourced_data};
  std::copy(std::begin(vector), std::end(vector), out.trust_vector);
  out.tier = static_cast<std::int32_t>(view.tier);
  out.issued_at_s = view.issued_at;
  out.expires_at_s = view.expires_at;
  out.next_attestation_s = view.next_attestation;
  CopyText(view.token_id, out.token_id);
  CopyText(view.device_id, out.device_id);
  CopyText(view.previous_device_id, out.previous_device_id);
  out.device_key_version = view.device_key_version;
  CopyText(view.appraisal_policy, out.appraisal_policy);
  out.weak_device_id = view.weak_device_id ? 1 : 0;
  out.test = view.test ? 1 : 0;
  out.caller_measured = view.caller.measured ? 1 : 0;
  out.runtime_anchor = static_cast<std::int32_t>(view.anchor);
  out.gate = static_cast<std::int32_t>(view.gate);
  CopyBytes(view.caller.executable, out.caller_digest);
  CopyBytes(view.policy, out.gate_policy);
  out.gate_policy_version = view.policy_version;
  CopyBytes(view.session_key_hash, out.session_key_hash);
  out.reason_count = static_cast<std::uint32_t>(view.reason_count);
  for (std::size_t i = 0; i < view.reason_count; ++i) CopyText(view.reasons[i], out.reasons[i]);
  out.has_host_block = view.has_host_token ? 1 : 0;
  if (view.has_host_token) FillHost(view, out.host);
}

assay_code Verify(const KeySet& keys, std::string_view token, const Expected& e, assay_result& out) noexcept {
  // Refused before any cryptography: these are the server's own figures.
  if (token.size() > limits::kResultToken) return ASSAY_E_MALFORMED;
  if (e.issued_ms > e.now_ms || e.now_ms - e.issued_ms > e.max_age_ms) return ASSAY_E_NONCE_AGE;
  std::array<std::uint8_t, limits::kResultToken> scratch;
  const JwsCheck check = VerifyJws(keys, token, kResultTokenType, scratch);
  if (check.fault != JwsFault::kNone) return CodeOf(check.fault);
  ResultView view;
  if (const char* fault = ReadResultClaims(check.jws.payload, view)) {
    return std::string_view(fault) == "cnf" ? ASSAY_E_NO_CNF : ASSAY_E_CLAIMS;
  }
  const assay_code code = CheckClaims(view, e);
  if (code == ASSAY_OK || code == ASSAY_E_TIER) Fill(view, out);
  return code;
}

}  // namespace
}  // namespace assay::sdk

assay_code assay_verify_result_token(const assay_keyset* keys, const char* token, size_t size,
                                     const assay_result_options* options, assay_result* out) noexcept {
  if (out == nullptr) return ASSAY_E_ARGUMENT;
  *out = {};
  out->code = ASSAY_E_ARGUMENT;
  assay::sdk::Expected expected;
  if (keys == nullptr || token == nullptr || options == nullptr || !assay::sdk::ReadOptions(*options, expected))
    return out->code;
  out->code = assay::sdk::Verify(keys->keys, {token, size}, expected, *out);
  return out->code;
}
