// SPDX-License-Identifier: Apache-2.0
// Messages between an endpoint and the verifier over HTTPS (docs/protocol.md, docs/evidence.cddl). All are
// deterministic CBOR maps with integer keys, media type application/cbor. Decoders copy what they keep.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sdk/core/bytes.h"
#include "sdk/core/evidence.h"
#include "sdk/core/limits.h"
#include "sdk/core/result.h"

namespace assay {

namespace route {
inline constexpr char kEnrollBegin[] = "/v1/enroll/begin";        // POST EnrollBegin -> EnrollChallenge
inline constexpr char kEnrollComplete[] = "/v1/enroll/complete";  // POST EnrollComplete -> EnrollResult
inline constexpr char kEnrollRenew[] =
    "/v1/enroll/renew";                                    // POST Evidence -> EnrollResult (a fresh quote is the proof)
inline constexpr char kChallenge[] = "/v1/challenge";      // POST ChallengeRequest -> Challenge
inline constexpr char kAttest[] = "/v1/attest";            // POST Evidence -> AttestReply
inline constexpr char kJwks[] = "/.well-known/jwks.json";  // GET, JSON
inline constexpr char kRevocations[] = "/v1/revocations";  // GET, a JWS
}  // namespace route

// ---- errors: every answer of 400 or above carries one (CBOR on the routes above, JSON on operator routes)
struct ErrorReply {
  std::string code;    // stable, e.g. "replay", "binding_mismatch", "pcr_selection_mismatch", "too_large"
  std::string detail;  // what happened, with values
  std::string fix;     // what to do about it; may be empty
};
Buffer EncodeErrorReply(const ErrorReply& reply);
Result<ErrorReply> DecodeErrorReply(Bytes encoded);

// ---- challenges
struct ChallengeRequest {
  Digest attester{};
};
struct Challenge {
  Buffer nonce;                     // limits::kChallenge bytes, opaque to the attester
  tpm::PcrSelection selection;      // one bank; the quote's selection must be exactly this
  std::uint64_t lifetime_ms = 0;    // from its issue
  std::uint64_t runtime_from = 0;   // send the runtime log from this entry on
  std::uint64_t firmware_from = 0;  // the verifier has this many bytes of the firmware log
};
Buffer EncodeChallengeRequest(const ChallengeRequest& request);
Result<ChallengeRequest> DecodeChallengeRequest(Bytes encoded);
Buffer EncodeChallenge(const Challenge& challenge);
Result<Challenge> DecodeChallenge(Bytes encoded);

// ---- attestation
enum class Tier : std::uint8_t { kNone = 0, kAffirming = 2, kWarning = 32, kContraindicated = 96 };  // AR4SI
std::string_view TierName(Tier tier) noexcept;

struct Reason {
  std::string code;  // stable, see sdk/core/reasons.h
  Tier tier = Tier::kNone;
  std::string detail;  // a sentence with the values
  std::string fix;     // a sentence
};

struct AttestReply {
  enum class Outcome : std::uint8_t { kJudged = 0, kFreshChallengeNeeded = 1 };
  Outcome outcome = Outcome::kJudged;
  Tier tier = Tier::kNone;  // kJudged only
  std::vector<Reason> reasons;
  std::string result_token;                 // JWS compact; empty when none was asked for or none was granted
  std::optional<ErrorReply> token_refusal;  // why a token that was asked for was not issued
  Challenge next;                           // for the next evidence
  std::uint64_t next_in_ms = 0;             // when the verifier wants it
  std::uint64_t audit_sequence = 0;         // the record that holds this verdict
};
Buffer EncodeAttestReply(const AttestReply& reply);
Result<AttestReply> DecodeAttestReply(Bytes encoded);

// ---- enrollment
struct EnrollBegin {
  tpm::EkKind ek_kind = tpm::EkKind::kRsa2048Low;
  Buffer ek_certificate;              // DER as read from NV; empty for the ek-key class
  Buffer ek_public;                   // TPMT_PUBLIC of the EK
  std::vector<Buffer> intermediates;  // DER, path material only
  Buffer aik_public;                  // TPMT_PUBLIC
  std::string token;                  // one-time enrollment token, may be empty
  std::string label;                  // not unique, not trusted
};
struct EnrollChallenge {
  Buffer ticket;            // the verifier's sealed state, sent back unchanged
  Buffer credential_blob;   // TPM2B_ID_OBJECT
  Buffer encrypted_secret;  // TPM2B_ENCRYPTED_SECRET
  Buffer qualifying;        // qualifyingData for TPM2_CertifyCreation of the EK, 32 bytes
};
struct EnrollComplete {
  Buffer ticket;
  Buffer secret;              // what TPM2_ActivateCredential returned
  Digest attester{};          // must be the AIK of the ticket
  Buffer creation_attest;     // TPMS_ATTEST of TPM2_CertifyCreation, empty: no canonical proof
  Buffer creation_signature;  // TPMT_SIGNATURE by the AIK
};
struct EnrollResult {
  Digest host_id{};
  Digest attester{};
  Buffer aik_certificate;         // X.509 DER
  std::uint64_t not_after = 0;    // seconds since the epoch
  std::uint64_t renew_after = 0;  // seconds since the epoch: the last third begins
  bool weak_device_id = false;    // device_id_strength: weak
  std::uint64_t generation = 0;   // of the AIK on this host
};
Buffer EncodeEnrollBegin(const EnrollBegin& message);
Result<EnrollBegin> DecodeEnrollBegin(Bytes encoded);
Buffer EncodeEnrollChallenge(const EnrollChallenge& message);
Result<EnrollChallenge> DecodeEnrollChallenge(Bytes encoded);
Buffer EncodeEnrollComplete(const EnrollComplete& message);
Result<EnrollComplete> DecodeEnrollComplete(Bytes encoded);
Buffer EncodeEnrollResult(const EnrollResult& message);
Result<EnrollResult> DecodeEnrollResult(Bytes encoded);

}  // namespace assay
