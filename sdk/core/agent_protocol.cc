// SPDX-License-Identifier: Apache-2.0
// Codec of the local socket's messages. A request is a map {0: kind, 1..: its fields, all required}; a reply is
// {0: 0, 1: payload} or {0: 1, 1: code, 2: detail, 3: fix}. Whether a caller may send it is not decided here.
#include "sdk/core/agent_protocol.h"

#include "sdk/core/cbor.h"

namespace assay::local {
namespace {

constexpr std::size_t kBinding = 32;
constexpr std::uint8_t kGood = 0;
constexpr std::uint8_t kFailed = 1;

void Begin(CborWriter& out, std::size_t fields, Kind kind) {
  out.Map(fields + 1);
  out.Uint(0);
  out.Uint(static_cast<std::uint8_t>(kind));
}

void Put(CborWriter& out, const StatusRequest&) { Begin(out, 0, Kind::kStatus); }

void Put(CborWriter& out, const WaitWorkRequest& request) {
  Begin(out, 1, Kind::kWaitWork);
  out.Uint(1);
  out.Uint(request.wait_ms);
}

void Put(CborWriter& out, const EvidenceRequest& request) {
  Begin(out, 3, Kind::kEvidence);
  out.Uint(1);
  out.ByteString(EncodeChallenge(request.challenge));
  out.Uint(2);
  out.ByteString(request.channel_binding);
  out.Uint(3);
  out.Uint(request.work);
}

void Put(CborWriter& out, const DeliverRequest& request) {
  Begin(out, 4, Kind::kDeliver);
  out.Uint(1);
  out.Uint(request.work);
  out.Uint(2);
  out.TextString(request.relay_state);
  out.Uint(3);
  out.ByteString(request.reply);
  out.Uint(4);
  out.ByteString(request.error);
}

void Put(CborWriter& out, const ResultTokenRequest& request) {
  Begin(out, 5, Kind::kResultToken);
  out.Uint(1);
  out.TextString(request.audience);
  out.Uint(2);
  out.TextString(request.match);
  out.Uint(3);
  out.ByteString(request.server_nonce);
  out.Uint(4);
  out.ByteString(request.session_key_hash);
  out.Uint(5);
  out.Uint(request.deadline_ms);
}

void Put(CborWriter& out, const HostTokenRequest& request) {
  Begin(out, 5, Kind::kHostToken);
  out.Uint(1);
  out.TextString(request.audience);
  out.Uint(2);
  out.Bool(request.heartbeat);
  out.Uint(3);
  out.Uint(request.sequence);
  out.Uint(4);
  out.ByteString(request.server_nonce);
  out.Uint(5);
  out.ByteString(request.session_key_hash);
}

void Put(CborWriter& out, const ShowEvidenceRequest&) { Begin(out, 0, Kind::kShowEvidence); }
void Put(CborWriter& out, const AttesterRequest&) { Begin(out, 0, Kind::kAttester); }
void Put(CborWriter& out, const DoctorRequest&) { Begin(out, 0, Kind::kDoctor); }

Result<Request> Done(const CborReader& in, Request request) {
  ASSAY_CHECK_OK(in.Finish("a request to the agent"));
  return request;
}

Result<Request> GetWaitWork(CborReader& in) {
  WaitWorkRequest request;
  in.ExpectKey(1);
  request.wait_ms = in.Uint();
  return Done(in, request);
}

Result<Request> GetEvidence(CborReader& in) {
  EvidenceRequest request;
  in.ExpectKey(1);
  const Bytes challenge = in.ByteString(limits::kOtherBody);
  in.ExpectKey(2);
  request.channel_binding = ToBuffer(in.ByteString(kBinding));
  if (request.channel_binding.size() != kBinding) in.Fail();
  in.ExpectKey(3);
  request.work = in.Uint();
  ASSAY_CHECK_OK(in.Finish("a request to the agent"));
  ASSAY_TRY(request.challenge, DecodeChallenge(challenge));
  return Request(std::move(request));
}

Result<Request> GetDeliver(CborReader& in) {
  DeliverRequest request;
  in.ExpectKey(1);
  request.work = in.Uint();
  in.ExpectKey(2);
  request.relay_state = in.TextString(limits::kShortText);
  in.ExpectKey(3);
  request.reply = ToBuffer(in.ByteString(limits::kLocalDelivery));
  in.ExpectKey(4);
  request.error = ToBuffer(in.ByteString(limits::kLocalDelivery));
  return Done(in, std::move(request));
}

Result<Request> GetResultToken(CborReader& in) {
  ResultTokenRequest request;
  in.ExpectKey(1);
  request.audience = in.TextString(limits::kAudience);
  in.ExpectKey(2);
  request.match = in.TextString(limits::kMatch);
  in.ExpectKey(3);
  request.server_nonce = in.Digest32();
  in.ExpectKey(4);
  request.session_key_hash = in.Digest32();
  in.ExpectKey(5);
  request.deadline_ms = in.Uint();
  return Done(in, std::move(request));
}

Result<Request> GetHostToken(CborReader& in) {
  HostTokenRequest request;
  in.ExpectKey(1);
  request.audience = in.TextString(limits::kAudience);
  in.ExpectKey(2);
  request.heartbeat = in.Bool();
  in.ExpectKey(3);
  request.sequence = in.Uint();
  in.ExpectKey(4);
  request.server_nonce = in.Digest32();
  in.ExpectKey(5);
  request.session_key_hash = in.Digest32();
  return Done(in, std::move(request));
}

// Pairs of the map that a kind has, its own key included.
std::size_t PairsOf(Kind kind) noexcept {
  switch (kind) {
    case Kind::kStatus:
    case Kind::kShowEvidence:
    case Kind::kAttester:
    case Kind::kDoctor: return 1;
    case Kind::kWaitWork: return 2;
    case Kind::kEvidence: return 4;
    case Kind::kDeliver: return 5;
    case Kind::kResultToken:
    case Kind::kHostToken: return 6;
  }
  return 0;
}

}  // namespace

Kind KindOf(const Request& request) noexcept {
  // The variant lists its alternatives in the order of Kind, which starts at 1.
  static_assert(std::variant_size_v<Request> == static_cast<std::size_t>(Kind::kDoctor));
  return static_cast<Kind>(request.index() + 1);
}

Buffer EncodeRequest(const Request& request) {
  CborWriter out(256);
  std::visit([&out](const auto& one) { Put(out, one); }, request);
  return std::move(out).Take();
}

Result<Request> DecodeRequest(Bytes encoded) {
  if (encoded.size() > limits::kLocalRequest)
    return MakeError(Code::kLimit, "a request to the agent is larger than the limit");
  CborReader in(encoded);
  const std::size_t pairs = in.Map(6);
  in.ExpectKey(0);
  const auto kind = static_cast<Kind>(in.Uint(static_cast<std::uint8_t>(Kind::kDoctor)));
  if (pairs != PairsOf(kind)) in.Fail();
  switch (kind) {
    case Kind::kStatus: return Done(in, StatusRequest{});
    case Kind::kWaitWork: return GetWaitWork(in);
    case Kind::kEvidence: return GetEvidence(in);
    case Kind::kDeliver: return GetDeliver(in);
    case Kind::kResultToken: return GetResultToken(in);
    case Kind::kHostToken: return GetHostToken(in);
    case Kind::kShowEvidence: return Done(in, ShowEvidenceRequest{});
    case Kind::kAttester: return Done(in, AttesterRequest{});
    case Kind::kDoctor: return Done(in, DoctorRequest{});
  }
  return MakeError(Code::kMalformed, "a request to the agent has a kind that does not exist");
}

Buffer EncodeReply(const Reply& reply) {
  CborWriter out(64 + reply.payload.size());
  if (reply.ok) {
    out.Map(2);
    out.Uint(0);
    out.Uint(kGood);
    out.Uint(1);
    out.ByteString(reply.payload);
  } else {
    out.Map(4);
    out.Uint(0);
    out.Uint(kFailed);
    out.Uint(1);
    out.TextString(reply.error.code);
    out.Uint(2);
    out.TextString(reply.error.detail);
    out.Uint(3);
    out.TextString(reply.error.fix);
  }
  return std::move(out).Take();
}

Result<Reply> DecodeReply(Bytes encoded) {
  if (encoded.size() > limits::kLocalReply)
    return MakeError(Code::kLimit, "a reply of the agent is larger than the limit");
  CborReader in(encoded);
  Reply reply;
  const std::size_t pairs = in.Map(4);
  in.ExpectKey(0);
  reply.ok = in.Uint(kFailed) == kGood;
  if (pairs != (reply.ok ? 2U : 4U)) in.Fail();
  if (reply.ok) {
    in.ExpectKey(1);
    reply.payload = ToBuffer(in.ByteString(limits::kLocalReply));
  } else {
    in.ExpectKey(1);
    reply.error.code = in.TextString(limits::kShortText);
    in.ExpectKey(2);
    reply.error.detail = in.TextString(limits::kReasonText);
    in.ExpectKey(3);
    reply.error.fix = in.TextString(limits::kReasonText);
  }
  ASSAY_CHECK_OK(in.Finish("a reply of the agent"));
  return reply;
}

Buffer EncodeAttesterReply(const AttesterReply& reply) {
  CborWriter out(64);
  out.Map(3);
  out.Uint(1);
  out.ByteString(reply.attester);
  out.Uint(2);
  out.Uint(reply.not_after);
  out.Uint(3);
  out.Uint(reply.renew_after);
  return std::move(out).Take();
}

Result<AttesterReply> DecodeAttesterReply(Bytes encoded) {
  CborReader in(encoded);
  AttesterReply reply;
  in.ExpectMap(3);
  in.ExpectKey(1);
  reply.attester = in.Digest32();
  in.ExpectKey(2);
  reply.not_after = in.Uint();
  in.ExpectKey(3);
  reply.renew_after = in.Uint();
  ASSAY_CHECK_OK(in.Finish("an attester reply"));
  return reply;
}

Buffer EncodeWorkReply(std::uint64_t work) {
  CborWriter out(16);
  out.Uint(work);
  return std::move(out).Take();
}

Result<std::uint64_t> DecodeWorkReply(Bytes encoded) {
  CborReader in(encoded);
  const std::uint64_t work = in.Uint();
  ASSAY_CHECK_OK(in.Finish("a work reply"));
  return work;
}

}  // namespace assay::local
