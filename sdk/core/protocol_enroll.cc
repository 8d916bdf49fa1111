// SPDX-License-Identifier: Apache-2.0
// Codec of the enrollment messages of protocol.h.
#include "sdk/core/cbor.h"
#include "sdk/core/protocol.h"

namespace assay {
namespace {

constexpr std::uint64_t kLastEkKind = static_cast<std::uint64_t>(tpm::EkKind::kEccP384High);

}  // namespace

Buffer EncodeEnrollBegin(const EnrollBegin& message) {
  CborWriter out(512 + message.ek_certificate.size() + message.ek_public.size() + message.aik_public.size());
  out.Map(7);
  out.Uint(1);
  out.Uint(static_cast<std::uint8_t>(message.ek_kind));
  out.Uint(2);
  out.ByteString(message.ek_certificate);
  out.Uint(3);
  out.ByteString(message.ek_public);
  out.Uint(4);
  out.Array(message.intermediates.size());
  for (const auto& certificate : message.intermediates) out.ByteString(certificate);
  out.Uint(5);
  out.ByteString(message.aik_public);
  out.Uint(6);
  out.TextString(message.token);
  out.Uint(7);
  out.TextString(message.label);
  return std::move(out).Take();
}

Result<EnrollBegin> DecodeEnrollBegin(Bytes encoded) {
  CborReader in(encoded);
  EnrollBegin message;
  in.ExpectMap(7);
  in.ExpectKey(1);
  message.ek_kind = static_cast<tpm::EkKind>(in.Uint(kLastEkKind));
  in.ExpectKey(2);
  message.ek_certificate = ToBuffer(in.ByteString(limits::kCertificate));
  in.ExpectKey(3);
  message.ek_public = ToBuffer(in.ByteString(limits::kPublicArea));
  in.ExpectKey(4);
  for (std::size_t left = in.Array(limits::kIntermediates); left > 0 && in.ok(); --left) {
    message.intermediates.push_back(ToBuffer(in.ByteString(limits::kCertificate)));
  }
  in.ExpectKey(5);
  message.aik_public = ToBuffer(in.ByteString(limits::kPublicArea));
  in.ExpectKey(6);
  message.token = in.TextString(limits::kEnrollmentToken);
  in.ExpectKey(7);
  message.label = in.TextString(limits::kShortText);
  ASSAY_CHECK_OK(in.Finish("an enrollment request"));
  return message;
}

Buffer EncodeEnrollChallenge(const EnrollChallenge& message) {
  CborWriter out(128 + message.ticket.size() + message.credential_blob.size() + message.encrypted_secret.size());
  out.Map(4);
  out.Uint(1);
  out.ByteString(message.ticket);
  out.Uint(2);
  out.ByteString(message.credential_blob);
  out.Uint(3);
  out.ByteString(message.encrypted_secret);
  out.Uint(4);
  out.ByteString(message.qualifying);
  return std::move(out).Take();
}

Result<EnrollChallenge> DecodeEnrollChallenge(Bytes encoded) {
  CborReader in(encoded);
  EnrollChallenge message;
  in.ExpectMap(4);
  in.ExpectKey(1);
  message.ticket = ToBuffer(in.ByteString(limits::kTicket));
  in.ExpectKey(2);
  message.credential_blob = ToBuffer(in.ByteString(limits::kCredentialBlob));
  in.ExpectKey(3);
  message.encrypted_secret = ToBuffer(in.ByteString(limits::kCredentialBlob));
  in.ExpectKey(4);
  message.qualifying = ToBuffer(in.ByteString(kSha256Size));
  ASSAY_CHECK_OK(in.Finish("an enrollment challenge"));
  return message;
}

Buffer EncodeEnrollComplete(const EnrollComplete& message) {
  CborWriter out(128 + message.ticket.size() + message.creation_attest.size() + message.creation_signature.size());
  out.Map(5);
  out.Uint(1);
  out.ByteString(message.ticket);
  out.Uint(2);
  out.ByteString(message.secret);
  out.Uint(3);
  out.ByteString(message.attester);
  out.Uint(4);
  out.ByteString(message.creation_attest);
  out.Uint(5);
  out.ByteString(message.creation_signature);
  return std::move(out).Take();
}

Result<EnrollComplete> DecodeEnrollComplete(Bytes encoded) {
  CborReader in(encoded);
  EnrollComplete message;
  in.ExpectMap(5);
  in.ExpectKey(1);
  message.ticket = ToBuffer(in.ByteString(limits::kTicket));
  in.ExpectKey(2);
  message.secret = ToBuffer(in.ByteString(kSha256Size));
  in.ExpectKey(3);
  message.attester = in.Digest32();
  in.ExpectKey(4);
  message.creation_attest = ToBuffer(in.ByteString(limits::kAttest));
  in.ExpectKey(5);
  message.creation_signature = ToBuffer(in.ByteString(limits::kSignature));
  ASSAY_CHECK_OK(in.Finish("an enrollment completion"));
  return message;
}

Buffer EncodeEnrollResult(const EnrollResult& message) {
  CborWriter out(160 + message.aik_certificate.size());
  out.Map(7);
  out.Uint(1);
  out.ByteString(message.host_id);
  out.Uint(2);
  out.ByteString(message.attester);
  out.Uint(3);
  out.ByteString(message.aik_certificate);
  out.Uint(4);
  out.Uint(message.not_after);
  out.Uint(5);
  out.Uint(message.renew_after);
  out.Uint(6);
  out.Bool(message.weak_device_id);
  out.Uint(7);
  out.Uint(message.generation);
  return std::move(out).Take();
}

Result<EnrollResult> DecodeEnrollResult(Bytes encoded) {
  CborReader in(encoded);
  EnrollResult message;
  in.ExpectMap(7);
  in.ExpectKey(1);
  message.host_id = in.Digest32();
  in.ExpectKey(2);
  message.attester = in.Digest32();
  in.ExpectKey(3);
  message.aik_certificate = ToBuffer(in.ByteString(limits::kCertificate));
  in.ExpectKey(4);
  message.not_after = in.Uint();
  in.ExpectKey(5);
  message.renew_after = in.Uint();
  in.ExpectKey(6);
  message.weak_device_id = in.Bool();
  in.ExpectKey(7);
  message.generation = in.Uint();
  ASSAY_CHECK_OK(in.Finish("an enrollment result"));
  return message;
}

}  // namespace assay
