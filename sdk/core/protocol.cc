// SPDX-License-Identifier: Apache-2.0
// Codec of the messages in protocol.h, except enrollment (protocol_enroll.cc). All keys are required and ascend.
#include "sdk/core/protocol.h"

#include "sdk/core/cbor.h"

namespace assay {
namespace {

Tier GetTier(CborReader& in) noexcept {
  switch (in.Uint(96)) {
    case 0: return Tier::kNone;
    case 2: return Tier::kAffirming;
    case 32: return Tier::kWarning;
    case 96: return Tier::kContraindicated;
    default: in.Fail(); return Tier::kNone;
  }
}

void PutError(CborWriter& out, const ErrorReply& reply) {
  out.Map(3);
  out.Uint(1);
  out.TextString(reply.code);
  out.Uint(2);
  out.TextString(reply.detail);
  out.Uint(3);
  out.TextString(reply.fix);
}

ErrorReply GetError(CborReader& in) {
  ErrorReply reply;
  in.ExpectMap(3);
  in.ExpectKey(1);
  reply.code = in.TextString(limits::kShortText);
  in.ExpectKey(2);
  reply.detail = in.TextString(limits::kReasonText);
  in.ExpectKey(3);
  reply.fix = in.TextString(limits::kReasonText);
  return reply;
}

void PutChallenge(CborWriter& out, const Challenge& challenge) {
  out.Map(6);
  out.Uint(1);
  out.ByteString(challenge.nonce);
  out.Uint(2);
  out.Uint(static_cast<std::uint16_t>(challenge.selection.hash));
  out.Uint(3);
  out.Uint(challenge.selection.mask);
  out.Uint(4);
  out.Uint(challenge.lifetime_ms);
  out.Uint(5);
  out.Uint(challenge.runtime_from);
  out.Uint(6);
  out.Uint(challenge.firmware_from);
}

Challenge GetChallenge(CborReader& in) {
  Challenge challenge;
  in.ExpectMap(6);
  in.ExpectKey(1);
  challenge.nonce = ToBuffer(in.ByteString(limits::kChallenge));
  if (challenge.nonce.size() != limits::kChallenge) in.Fail();
  in.ExpectKey(2);
  challenge.selection.hash = static_cast<tpm::Alg>(in.Uint(0xFFFF));
  in.ExpectKey(3);
  challenge.selection.mask = static_cast<std::uint32_t>(in.Uint((1U << limits::kPcrs) - 1));
  in.ExpectKey(4);
  challenge.lifetime_ms = in.Uint();
  in.ExpectKey(5);
  challenge.runtime_from = in.Uint();
  in.ExpectKey(6);
  challenge.firmware_from = in.Uint(limits::kFirmwareLog);
  return challenge;
}

void PutReason(CborWriter& out, const Reason& reason) {
  out.Array(4);
  out.TextString(reason.code);
  out.Uint(static_cast<std::uint8_t>(reason.tier));
  out.TextString(reason.detail);
  out.TextString(reason.fix);
}

Reason GetReason(CborReader& in) {
  Reason reason;
  if (in.Array(4) != 4) in.Fail();
  reason.code = in.TextString(limits::kShortText);
  reason.tier = GetTier(in);
  reason.detail = in.TextString(limits::kReasonText);
  reason.fix = in.TextString(limits::kReasonText);
  return reason;
}

}  // namespace

std::string_view TierName(Tier tier) noexcept {
  switch (tier) {
    case Tier::kNone: return "none";
    case Tier::kAffirming: return "affirming";
    case Tier::kWarning: return "warning";
    case Tier::kContraindicated: return "contraindicated";
  }
  return "unknown";
}

Buffer EncodeErrorReply(const ErrorReply& reply) {
  CborWriter out(64 + reply.detail.size() + reply.fix.size());
  PutError(out, reply);
  return std::move(out).Take();
}

Result<ErrorReply> DecodeErrorReply(Bytes encoded) {
  CborReader in(encoded);
  ErrorReply reply = GetError(in);
  ASSAY_CHECK_OK(in.Finish("an error reply"));
  return reply;
}

Buffer EncodeChallengeRequest(const ChallengeRequest& request) {
  CborWriter out(40);
  out.Map(1);
  out.Uint(1);
  out.ByteString(request.attester);
  return std::move(out).Take();
}

Result<ChallengeRequest> DecodeChallengeRequest(Bytes encoded) {
  CborReader in(encoded);
  ChallengeRequest request;
  in.ExpectMap(1);
  in.ExpectKey(1);
  request.attester = in.Digest32();
  ASSAY_CHECK_OK(in.Finish("a challenge request"));
  return request;
}

Buffer EncodeChallenge(const Challenge& challenge) {
  CborWriter out(128);
  PutChallenge(out, challenge);
  return std::move(out).Take();
}

Result<Challenge> DecodeChallenge(Bytes encoded) {
  CborReader in(encoded);
  Challenge challenge = GetChallenge(in);
  ASSAY_CHECK_OK(in.Finish("a challenge"));
  return challenge;
}

Buffer EncodeAttestReply(const AttestReply& reply) {
  CborWriter out(512 + reply.result_token.size());
  out.Map(8);
  out.Uint(1);
  out.Uint(static_cast<std::uint8_t>(reply.outcome));
  out.Uint(2);
  out.Uint(static_cast<std::uint8_t>(reply.tier));
  out.Uint(3);
  out.Array(reply.reasons.size());
  for (const auto& reason : reply.reasons) PutReason(out, reason);
  out.Uint(4);
  out.TextString(reply.result_token);
  out.Uint(5);
  if (reply.token_refusal) PutError(out, *reply.token_refusal);
  else out.Null();
  out.Uint(6);
  PutChallenge(out, reply.next);
  out.Uint(7);
  out.Uint(reply.next_in_ms);
  out.Uint(8);
  out.Uint(reply.audit_sequence);
  return std::move(out).Take();
}

Result<AttestReply> DecodeAttestReply(Bytes encoded) {
  CborReader in(encoded);
  AttestReply reply;
  in.ExpectMap(8);
  in.ExpectKey(1);
  reply.outcome = static_cast<AttestReply::Outcome>(in.Uint(1));
  in.ExpectKey(2);
  reply.tier = GetTier(in);
  in.ExpectKey(3);
  for (std::size_t left = in.Array(limits::kReasons); left > 0 && in.ok(); --left)
    reply.reasons.push_back(GetReason(in));
  in.ExpectKey(4);
  reply.result_token = in.TextString(limits::kResultToken);
  in.ExpectKey(5);
  if (!in.TryNull()) reply.token_refusal = GetError(in);
  in.ExpectKey(6);
  reply.next = GetChallenge(in);
  in.ExpectKey(7);
  reply.next_in_ms = in.Uint();
  in.ExpectKey(8);
  reply.audit_sequence = in.Uint();
  ASSAY_CHECK_OK(in.Finish("an attestation reply"));
  return reply;
}

}  // namespace assay
