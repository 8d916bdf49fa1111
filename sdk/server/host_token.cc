// SPDX-License-Identifier: Apache-2.0
// C shims of host tokens and heartbeats: arguments in, one check (host_check.cc), state of heartbeats.
#include <memory>

#include "sdk/server/host_check.h"

namespace assay::sdk {
namespace {

constexpr std::uint32_t kDefaultHostAgeMs = 10000;

Digest DigestFrom(const std::uint8_t* bytes) noexcept {
  Digest out;
  CopyBytes({bytes, out.size()}, out);
  return out;
}

assay_code Prepare(const assay_result& result, assay_attester** out) {
  const assay_host_block& host = result.host;
  if (host.aik_size > sizeof(host.aik) || host.boot_pcr_mask >> limits::kPcrs != 0 ||
      (host.boot_pcr_mask >> 14 & 1U) != 0)
    return ASSAY_E_AIK;
  const Bytes spki(host.aik, host.aik_size);
  if (!Equal(Sha256(spki), host.attester)) return ASSAY_E_AIK;
  auto key = PublicKey::FromSpki(spki);
  if (!key.ok()) return ASSAY_E_AIK;
  const bool rsa = host.aik_scheme == ASSAY_SCHEME_RSASSA || host.aik_scheme == ASSAY_SCHEME_RSAPSS;
  if (rsa ? key->type() != KeyType::kRsa2048
          : host.aik_scheme != ASSAY_SCHEME_ECDSA_P256 || key->type() != KeyType::kP256)
    return ASSAY_E_AIK;
  *out = new assay_attester{.aik = std::move(*key),
                            .scheme = static_cast<SignatureScheme>(host.aik_scheme),
                            .host = host,
                            .session_key_hash = DigestFrom(result.session_key_hash),
                            .gate = static_cast<GateState>(result.gate),
                            .gate_policy = DigestFrom(result.gate_policy),
                            .gate_policy_version = result.gate_policy_version,
                            .expires_at_s = result.expires_at_s};
  return ASSAY_OK;
}
static_assert(ASSAY_SCHEME_RSASSA == static_cast<int>(SignatureScheme::kRsaSsaSha256) &&
              ASSAY_SCHEME_RSAPSS == static_cast<int>(SignatureScheme::kRsaPssSha256) &&
              ASSAY_SCHEME_ECDSA_P256 == static_cast<int>(SignatureScheme::kEcdsaP256Sha256));

}  // namespace
}  // namespace assay::sdk

using namespace assay;

assay_code assay_result_prepare_host_tokens(const assay_result* result, assay_attester** out) noexcept {
  if (out == nullptr) return ASSAY_E_ARGUMENT;
  *out = nullptr;
  if (result == nullptr) return ASSAY_E_ARGUMENT;
  if (result->code != ASSAY_OK || result->tier == ASSAY_TIER_NONE || result->has_host_block == 0)
    return ASSAY_E_NO_HOST_TOKENS;
  try {
    return sdk::Prepare(*result, out);
  } catch (...) { return ASSAY_E_MEMORY; }
}

void assay_attester_free(assay_attester* attester) noexcept { delete attester; }

assay_code assay_verify_host_token(const assay_attester* attester, const uint8_t* token, size_t size,
                                   const assay_host_token_options* options, assay_host_result* out) noexcept {
  assay_host_result scratch{};
  assay_host_result& result = out == nullptr ? scratch : *out;
  result = {};
  if (attester == nullptr || token == nullptr || options == nullptr || options->struct_size != sizeof(*options) ||
      options->server_nonce == nullptr || options->session_key_hash == nullptr || !sdk::IsTime(options->now_ms) ||
      !sdk::IsTime(options->nonce_issued_at_ms)) {
    return ASSAY_E_ARGUMENT;
  }
  const sdk::HostExpected expected{
      .tag = QuoteTag::kHostToken,
      .sequence = 0,
      .nonce = {options->server_nonce, ASSAY_NONCE_SIZE},
      .session_key_hash = {options->session_key_hash, ASSAY_DIGEST_SIZE},
      .issued_ms = options->nonce_issued_at_ms,
      .now_ms = options->now_ms,
      .max_age_ms = options->max_age_ms == 0 ? sdk::kDefaultHostAgeMs : options->max_age_ms,
      .clock_floor_ms = attester->host.clock_ms,
      .restart_floor = attester->host.restart_count};
  return sdk::CheckHostToken(*attester, {token, size}, expected, result);
}

assay_code assay_heartbeat_start(assay_heartbeat* state, const assay_attester* attester,
                                 const assay_host_result* accepted) noexcept {
  if (state == nullptr || attester == nullptr) return ASSAY_E_ARGUMENT;
  *state = {};
  state->clock_ms = accepted == nullptr ? attester->host.clock_ms : accepted->clock_ms;
  state->restart_count = accepted == nullptr ? attester->host.restart_count : accepted->restart_count;
  // A result is the least that any later state can be.
  return state->clock_ms >= attester->host.clock_ms && state->restart_count >= attester->host.restart_count
             ? ASSAY_OK
             : ASSAY_E_ARGUMENT;
}

assay_code assay_heartbeat_challenge(assay_heartbeat* state, int64_t now_ms) noexcept {
  if (state == nullptr || !sdk::IsTime(now_ms)) return ASSAY_E_ARGUMENT;
  ++state->sequence;
  state->open = 1;
  state->issued_at_ms = now_ms;
  RandomBytes(state->nonce);
  return ASSAY_OK;
}

assay_code assay_heartbeat_verify(assay_heartbeat* state, const assay_attester* attester, const uint8_t* token,
                                  size_t size, const uint8_t session_key_hash[ASSAY_DIGEST_SIZE], int64_t now_ms,
                                  uint32_t max_age_ms, assay_host_result* out) noexcept {
  assay_host_result scratch{};
  assay_host_result& result = out == nullptr ? scratch : *out;
  result = {};
  if (state == nullptr || attester == nullptr || token == nullptr || session_key_hash == nullptr ||
      !sdk::IsTime(now_ms))
    return ASSAY_E_ARGUMENT;
  if (state->open != 1) return ASSAY_E_SEQUENCE;
  const sdk::HostExpected expected{.tag = QuoteTag::kHeartbeat,
                                   .sequence = state->sequence,
                                   .nonce = state->nonce,
                                   .session_key_hash = {session_key_hash, ASSAY_DIGEST_SIZE},
                                   .issued_ms = state->issued_at_ms,
                                   .now_ms = now_ms,
                                   .max_age_ms = max_age_ms == 0 ? sdk::kDefaultHostAgeMs : max_age_ms,
                                   .clock_floor_ms = state->clock_ms,
                                   .restart_floor = state->restart_count};
  const assay_code code = sdk::CheckHostToken(*attester, {token, size}, expected, result);
  if (code != ASSAY_OK) return code;
  state->clock_ms = result.clock_ms;
  state->restart_count = result.restart_count;
  state->open = 0;
  return ASSAY_OK;
}
