// SPDX-License-Identifier: Apache-2.0
// Signed tokens: JWS compact (RFC 7515) with ES256 or EdDSA, JWKS (RFC 7517), and the claims of a result token
// (EAR, draft-ietf-rats-ear; EAT, RFC 9711; cnf, RFC 7800). The algorithm is the key's, never the header's.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sdk/core/bytes.h"
#include "sdk/core/crypto.h"
#include "sdk/core/evidence.h"
#include "sdk/core/protocol.h"
#include "sdk/core/result.h"

namespace assay {

// A JWK thumbprint (RFC 7638), base64url: the kid of every key here.
Result<std::string> JwkThumbprint(const PublicKey& key);
Result<std::string> JwkJson(const PublicKey& key, std::string_view kid);  // one JWK object with use "sig" and alg

// Keys by kid, parsed once. Immutable after Parse: replace the whole set to rotate.
class KeySet {
 public:
  static Result<KeySet> ParseJwks(std::string_view json);  // at most 32 keys; others' members ignored
  struct Entry {
    std::string kid;
    PublicKey key;
  };
  const Entry* Find(std::string_view kid) const noexcept;
  const std::vector<Entry>& entries() const noexcept { return entries_; }

 private:
  std::vector<Entry> entries_;
};
Result<std::string> JwksJson(const std::vector<const PublicKey*>& keys);

// Signs header {"alg","kid","typ"} and payload. ES256 for P-256, EdDSA for Ed25519.
Result<std::string> SignJws(const PrivateKey& key, std::string_view kid, std::string_view typ,
                            std::string_view payload_json);

// The parts of a compact JWS whose signature verified: payload is a view into `scratch`, the others into the key set
// and the type asked for.
struct VerifiedJws {
  std::string_view payload;
  std::string_view kid;
  std::string_view typ;
};
enum class JwsFault : std::uint8_t {
  kNone,
  kMalformed,
  kAlgorithm,  // none, or another than the named key's
  kKeyUnknown,
  kType,
  kSignature,
  kCritical,     // crit: extensions we do not know (RFC 7515 section 4.1.11)
  kEmbeddedKey,  // jwk, jku, x5c, x5u, x5t: the sender names its own key
};
std::string_view JwsFaultName(JwsFault fault) noexcept;  // "signature", "key_unknown", ...
struct JwsCheck {
  JwsFault fault = JwsFault::kMalformed;
  VerifiedJws jws;
};
// scratch: at least token.size() bytes, owned by the caller. No allocation of ours after a thread's first call.
JwsCheck VerifyJws(const KeySet& keys, std::string_view token, std::string_view expected_typ,
                   MutableBytes scratch) noexcept;

// AR4SI trustworthiness vector: -128..127, 0 means no claim (draft-ietf-rats-ar4si).
struct TrustVector {
  std::int8_t instance_identity = 0, configuration = 0, executables = 0, file_system = 0, hardware = 0,
              runtime_opaque = 0, storage_opaque = 0, sourced_data = 0;
};

// What a host token is compared with; only for titles that use host tokens.
struct HostTokenClaims {
  Buffer aik_spki;                                              // DER, at most kAikSpki bytes
  SignatureScheme aik_scheme = SignatureScheme::kRsaSsaSha256;  // from the AIK's record
  std::uint32_t reset_count = 0, restart_count = 0;
  std::uint64_t clock_ms = 0;
  Digest boot_pcr_digest{};         // SHA-256 of the values of boot_pcr_mask, ascending
  std::uint32_t boot_pcr_mask = 0;  // without PCR 14
  Digest pcr14{};
  std::uint32_t allowed_entries = 0;  // bit n: EntryKind n may follow
};

inline constexpr std::size_t kAikSpki = 640;    // DER; RSA-4096 has 550
inline constexpr std::size_t kReasonCode = 63;  // characters
inline constexpr std::size_t kClaimText = 127;  // issuer, token id, device id, policy, build

// As JSON (docs/sdk.md): names of RFC 7519, RFC 9711 and draft-ietf-rats-ear-03 (profile kEarProfile); ours start
// with "assay.". Texts are UTF-8 without control characters.
inline constexpr char kEarProfile[] = "tag:ietf.org,2026:rats/ear#03";
struct ResultClaims {
  std::string issuer;
  std::string audience;        // the title
  std::int64_t issued_at = 0;  // seconds since the epoch
  std::int64_t expires_at = 0;
  std::string token_id;          // jti
  std::string verifier_build;    // ear_verifier_id.build; its developer is "assay"
  std::string appraisal_policy;  // ear_appraisal_policy_ids, one; may be empty
  bool test = false;             // made without a TPM: refused unless the caller opts in
  Digest server_nonce{};         // eat_nonce
  std::string match;
  Digest session_key_hash{};  // cnf, member "assay.spki#S256": SHA-256 of the key's DER SubjectPublicKeyInfo
  Tier tier = Tier::kNone;    // ear.status of submod "assay"
  TrustVector vector;
  std::vector<std::string> reasons;  // codes
  std::string device_id;             // base64url, per title
  std::uint64_t device_key_version = 0;
  std::optional<std::string> previous_device_id;  // during a key overlap
  bool weak_device_id = false;
  CallerIdentity caller;
  RuntimeAnchor anchor = RuntimeAnchor::kSelfReported;
  GateState gate = GateState::kAbsent;
  Digest policy{};
  std::uint64_t policy_version = 0;
  std::int64_t next_attestation = 0;  // seconds since the epoch
  Digest attester{};                  // only with host_token
  std::optional<HostTokenClaims> host_token;
};
inline constexpr char kResultTokenType[] = "ear+jwt";
std::string EncodeResultClaims(const ResultClaims& claims);  // JSON text
// Strict: a missing, mistyped or repeated member, or one over its limit, refuses. Members that nobody here knows are
// ignored (RFC 7519 section 4).
Result<ResultClaims> DecodeResultClaims(std::string_view payload);

// The same without allocation: texts are views that die with this thread's next reading of claims.
struct ResultView {
  std::string_view issuer, audience, token_id, verifier_build, appraisal_policy, match, device_id, previous_device_id;
  std::int64_t issued_at = 0, expires_at = 0, next_attestation = 0;
  bool test = false, weak_device_id = false, has_host_token = false;
  Digest server_nonce{}, session_key_hash{}, policy{}, attester{};
  Tier tier = Tier::kNone;
  TrustVector vector;
  std::array<std::string_view, limits::kReasons> reasons;
  std::size_t reason_count = 0;
  std::uint64_t device_key_version = 0, policy_version = 0;
  CallerIdentity caller;
  RuntimeAnchor anchor = RuntimeAnchor::kSelfReported;
  GateState gate = GateState::kAbsent;
  struct Host {  // valid with has_host_token
    std::array<std::uint8_t, kAikSpki> aik_spki{};
    std::size_t aik_spki_size = 0;
    SignatureScheme aik_scheme = SignatureScheme::kRsaSsaSha256;
    std::uint32_t reset_count = 0, restart_count = 0;
    std::uint64_t clock_ms = 0;
    Digest boot_pcr_digest{}, pcr14{};
    std::uint32_t boot_pcr_mask = 0, allowed_entries = 0;
  } host;
};
// Null, or the name of the claim that is missing or wrong ("json" for the text as a whole). Into `view` either way.
const char* ReadResultClaims(std::string_view payload, ResultView& view) noexcept;

// Server nonce that a title's own server makes: random(16) | HMAC-SHA-256(title key, "assay/title-nonce/1" | 0 |
// u16 size | audience | u16 size | match | random | session key hash) truncated to 16. Sizes big-endian.
Digest MakeServerNonce(Bytes title_key, std::string_view audience, std::string_view match, Bytes random16,
                       const Digest& session_key_hash);
enum class NonceCheck : std::uint8_t { kForeign, kGenuine };
NonceCheck CheckServerNonce(Bytes title_key, std::string_view audience, std::string_view match, const Digest& nonce,
                            const Digest& session_key_hash);

// Signed revocation list: a JWS of type "assay-revocations+jwt": hosts' device ids and token ids that are no longer good.
inline constexpr std::size_t kRevocationListSize = 1U << 20;  // bytes of JSON
inline constexpr std::size_t kRevocationEntries = 16384;      // of each kind
struct RevocationList {
  std::int64_t issued_at = 0;
  std::int64_t expires_at = 0;
  std::uint64_t number = 0;
  std::vector<std::string> token_ids;
  std::vector<std::string> device_ids;
};
inline constexpr char kRevocationsType[] = "assay-revocations+jwt";
std::string EncodeRevocationList(const RevocationList& list);
Result<RevocationList> DecodeRevocationList(std::string_view payload);

}  // namespace assay
