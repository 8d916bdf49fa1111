// SPDX-License-Identifier: Apache-2.0
// Key sets and revocation lists as handles; the server's nonce and the channel's key hash.
#include <algorithm>
#include <memory>

#include "sdk/server/handles.h"

namespace assay::sdk {

assay_code CodeOf(JwsFault fault) noexcept {
  switch (fault) {
    case JwsFault::kNone: return ASSAY_OK;
    case JwsFault::kMalformed: return ASSAY_E_MALFORMED;
    case JwsFault::kAlgorithm: return ASSAY_E_ALGORITHM;
    case JwsFault::kKeyUnknown: return ASSAY_E_KEY_UNKNOWN;
    case JwsFault::kType: return ASSAY_E_TYPE;
    case JwsFault::kSignature: return ASSAY_E_SIGNATURE;
    case JwsFault::kCritical: return ASSAY_E_CRITICAL;
    case JwsFault::kEmbeddedKey: return ASSAY_E_EMBEDDED_KEY;
  }
  return ASSAY_E_MALFORMED;
}

namespace {

constexpr std::size_t kRevocationsToken = kRevocationListSize * 3 / 2;
constexpr std::size_t kTitleKeyLeast = 16;
constexpr std::size_t kTitleKeyMost = 64;

assay_code ParseRevocations(const assay_keyset& keys, std::string_view jws, assay_revocations** out) {
  Buffer scratch(jws.size());
  const JwsCheck check = VerifyJws(keys.keys, jws, kRevocationsType, scratch);
  if (check.fault != JwsFault::kNone) return CodeOf(check.fault);
  auto list = DecodeRevocationList(check.jws.payload);
  if (!list.ok()) return ASSAY_E_CLAIMS;
  auto handle = std::make_unique<assay_revocations>();
  handle->expires_at = list->expires_at;
  handle->number = list->number;
  handle->token_ids = std::move(list->token_ids);
  handle->device_ids = std::move(list->device_ids);
  std::sort(handle->token_ids.begin(), handle->token_ids.end());
  std::sort(handle->device_ids.begin(), handle->device_ids.end());
  *out = handle.release();
  return ASSAY_OK;
}

}  // namespace
}  // namespace assay::sdk

using namespace assay;

assay_code assay_keyset_parse(const char* jwks, size_t size, assay_keyset** out) noexcept {
  if (out == nullptr) return ASSAY_E_ARGUMENT;
  *out = nullptr;
  if (jwks == nullptr) return ASSAY_E_ARGUMENT;
  try {
    auto keys = KeySet::ParseJwks({jwks, size});
    if (!keys.ok()) return ASSAY_E_MALFORMED;
    *out = new assay_keyset{std::move(*keys)};
    return ASSAY_OK;
  } catch (...) { return ASSAY_E_MEMORY; }
}

size_t assay_keyset_count(const assay_keyset* keys) noexcept {
  return keys == nullptr ? 0 : keys->keys.entries().size();
}
void assay_keyset_free(assay_keyset* keys) noexcept { delete keys; }

assay_code assay_revocations_parse(const assay_keyset* keys, const char* jws, size_t size,
                                   assay_revocations** out) noexcept {
  if (out == nullptr) return ASSAY_E_ARGUMENT;
  *out = nullptr;
  if (keys == nullptr || jws == nullptr) return ASSAY_E_ARGUMENT;
  if (size > sdk::kRevocationsToken) return ASSAY_E_MALFORMED;
  try {
    return sdk::ParseRevocations(*keys, {jws, size}, out);
  } catch (...) { return ASSAY_E_MEMORY; }
}

uint64_t assay_revocations_number(const assay_revocations* list) noexcept { return list == nullptr ? 0 : list->number; }
int64_t assay_revocations_expires_s(const assay_revocations* list) noexcept {
  return list == nullptr ? 0 : list->expires_at;
}
void assay_revocations_free(assay_revocations* list) noexcept { delete list; }

assay_code assay_session_key_hash(const uint8_t* spki, size_t size, uint8_t out[ASSAY_DIGEST_SIZE]) noexcept {
  if (spki == nullptr || size == 0 || out == nullptr) return ASSAY_E_ARGUMENT;
  CopyBytes(Sha256(sdk::View(spki, size)), {out, ASSAY_DIGEST_SIZE});
  return ASSAY_OK;
}

assay_code assay_make_server_nonce(const uint8_t* title_key, size_t title_key_size, const char* audience,
                                   const char* match, const uint8_t session_key_hash[ASSAY_DIGEST_SIZE],
                                   uint8_t out[ASSAY_NONCE_SIZE]) noexcept {
  std::string_view title, match_text;
  if (title_key == nullptr || title_key_size < sdk::kTitleKeyLeast || title_key_size > sdk::kTitleKeyMost ||
      out == nullptr || session_key_hash == nullptr || !sdk::Text(audience, ASSAY_MAX_AUDIENCE, title) ||
      title.empty() || !sdk::Text(match, ASSAY_MAX_MATCH, match_text)) {
    return ASSAY_E_ARGUMENT;
  }
  try {
    Digest channel;
    CopyBytes({session_key_hash, channel.size()}, channel);
    CopyBytes(MakeServerNonce({title_key, title_key_size}, title, match_text, RandomArray<16>(), channel),
              {out, ASSAY_NONCE_SIZE});
    return ASSAY_OK;
  } catch (...) { return ASSAY_E_MEMORY; }
}
