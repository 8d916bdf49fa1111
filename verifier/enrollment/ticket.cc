// SPDX-License-Identifier: Apache-2.0
// Sealing and opening of enrollment tickets.
#include "verifier/enrollment/ticket.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "sdk/core/cbor.h"
#include "sdk/core/limits.h"

namespace assay::enrollment {
namespace {

constexpr std::string_view kMagic = "AET";
constexpr std::uint8_t kVersion = 1;
constexpr std::size_t kKeySize = 32;
constexpr std::size_t kKeyIdSize = 8;
constexpr std::size_t kNonceSize = 12;  // NIST SP 800-38D section 8.2.2
constexpr std::size_t kTagSize = 16;
constexpr std::size_t kHeadSize = 3 + 1 + kKeyIdSize + kNonceSize;
constexpr std::size_t kNameSize = 2 + kSha256Size;
constexpr std::uint8_t kLastEkKind = static_cast<std::uint8_t>(tpm::EkKind::kEccP384High);
constexpr std::uint8_t kLastEkClass = static_cast<std::uint8_t>(store::EkClass::kEkKey);

using CipherCtx = Handle<EVP_CIPHER_CTX, EVP_CIPHER_CTX_free>;

struct Sealed {
  Bytes head, nonce, body, tag;
};

Result<Buffer> Encrypt(Bytes key, Bytes head, Bytes nonce, Bytes plain) {
  const CipherCtx ctx{EVP_CIPHER_CTX_new()};
  Buffer out(plain.size() + kTagSize);
  int size = 0;
  if (!ctx || EVP_EncryptInit_ex2(ctx.get(), EVP_aes_256_gcm(), key.data(), nonce.data(), nullptr) != 1 ||
      EVP_EncryptUpdate(ctx.get(), nullptr, &size, head.data(), static_cast<int>(head.size())) != 1 ||
      EVP_EncryptUpdate(ctx.get(), out.data(), &size, plain.data(), static_cast<int>(plain.size())) != 1 ||
      EVP_EncryptFinal_ex(ctx.get(), out.data() + size, &size) != 1 ||
      EVP_CIPHER_CTX_ctrl(ctx.get(), EVP_CTRL_GCM_GET_TAG, kTagSize, out.data() + plain.size()) != 1) {
    return MakeError(Code::kCrypto, "a ticket cannot be sealed (" + OpenSslErrorText() + ")");
  }
  return out;
}

// Nothing when the tag does not fit.
std::optional<Buffer> Decrypt(Bytes key, const Sealed& sealed) {
  const CipherCtx ctx{EVP_CIPHER_CTX_new()};
  Buffer out(sealed.body.size());
  Buffer tag = ToBuffer(sealed.tag);
  int size = 0;
  if (!ctx || EVP_DecryptInit_ex2(ctx.get(), EVP_aes_256_gcm(), key.data(), sealed.nonce.data(), nullptr) != 1 ||
      EVP_DecryptUpdate(ctx.get(), nullptr, &size, sealed.head.data(), static_cast<int>(sealed.head.size())) != 1 ||
      EVP_DecryptUpdate(ctx.get(), out.data(), &size, sealed.body.data(), static_cast<int>(sealed.body.size())) != 1 ||
      EVP_CIPHER_CTX_ctrl(ctx.get(), EVP_CTRL_GCM_SET_TAG, kTagSize, tag.data()) != 1 ||
      EVP_DecryptFinal_ex(ctx.get(), out.data() + size, &size) != 1) {
    (void)OpenSslErrorText();
    return std::nullopt;
  }
  return out;
}

}  // namespace

Buffer EncodeTicketContent(const TicketContent& content) {
  CborWriter out(768);
  out.Map(12);
  out.Uint(1);
  out.Uint(static_cast<std::uint64_t>(content.expires_ms));
  out.Uint(2);
  out.ByteString(content.aik_public);
  out.Uint(3);
  out.Uint(static_cast<std::uint8_t>(content.ek_kind));
  out.Uint(4);
  out.Uint(static_cast<std::uint8_t>(content.ek_class));
  out.Uint(5);
  out.ByteString(content.ek_spki);
  out.Uint(6);
  out.ByteString(content.host_id);
  out.Uint(7);
  out.ByteString(content.secret);
  out.Uint(8);
  out.ByteString(content.qualifying);
  out.Uint(9);
  out.ByteString(content.canonical_name);
  out.Uint(10);
  out.TextString(content.label);
  out.Uint(11);
  if (content.token) out.ByteString(*content.token);
  else out.Null();
  out.Uint(12);
  out.TextString(content.anchor);
  return std::move(out).Take();
}

Result<TicketContent> DecodeTicketContent(Bytes encoded) {
  CborReader in(encoded);
  TicketContent out;
  in.ExpectMap(12);
  in.ExpectKey(1);
  out.expires_ms = static_cast<std::int64_t>(in.Uint(INT64_MAX));
  in.ExpectKey(2);
  out.aik_public = ToBuffer(in.ByteString(limits::kPublicArea));
  in.ExpectKey(3);
  out.ek_kind = static_cast<tpm::EkKind>(in.Uint(kLastEkKind));
  in.ExpectKey(4);
  out.ek_class = static_cast<store::EkClass>(in.Uint(kLastEkClass));
  in.ExpectKey(5);
  out.ek_spki = in.Digest32();
  in.ExpectKey(6);
  out.host_id = in.Digest32();
  in.ExpectKey(7);
  out.secret = in.Digest32();
  in.ExpectKey(8);
  out.qualifying = in.Digest32();
  in.ExpectKey(9);
  out.canonical_name = ToBuffer(in.ByteString(kNameSize));
  in.ExpectKey(10);
  out.label = in.TextString(limits::kShortText);
  in.ExpectKey(11);
  if (!in.TryNull()) out.token = in.Digest32();
  in.ExpectKey(12);
  out.anchor = in.TextString(limits::kShortText);
  ASSAY_CHECK_OK(in.Finish("an enrollment ticket"));
  return out;
}

TicketSealer::TicketSealer() : key_(kKeySize) {
  RandomBytes(key_.fill());
  const Digest id = HmacSha256(key_.view(), AsBytes("assay/enroll-ticket/key-id/1"));
  std::copy_n(id.begin(), key_id_.size(), key_id_.begin());
}

TicketSealer::TicketSealer(Secret key) : key_(std::move(key)) {
  if (key_.view().size() != kKeySize) std::abort();
  const Digest id = HmacSha256(key_.view(), AsBytes("assay/enroll-ticket/key-id/1"));
  std::copy_n(id.begin(), key_id_.size(), key_id_.begin());
}

Result<Buffer> TicketSealer::Seal(const TicketContent& content) const {
  Writer out(limits::kTicket);
  out.Put(AsBytes(kMagic));
  out.U8(kVersion);
  out.Put(key_id_);
  const auto nonce = RandomArray<kNonceSize>();
  out.Put(nonce);
  ASSAY_TRY(const Buffer body, Encrypt(key_.view(), out.buffer(), nonce, EncodeTicketContent(content)));
  out.Put(body);
  if (out.size() > limits::kTicket)
    return MakeError(Code::kLimit, "an enrollment ticket is over " + std::to_string(limits::kTicket) + " bytes");
  return std::move(out).Take();
}

OpenedTicket TicketSealer::Open(Bytes ticket, std::int64_t now_ms) const {
  Reader in(ticket);
  const Bytes magic = in.Take(kMagic.size());
  const std::uint8_t version = in.U8();
  const Bytes key_id = in.Take(kKeyIdSize);
  const Bytes nonce = in.Take(kNonceSize);
  if (!in.ok() || in.remaining() < kTagSize || ticket.size() > limits::kTicket || !Equal(magic, AsBytes(kMagic)) ||
      version != kVersion) {
    return {TicketOutcome::kMalformed, {}};
  }
  if (!Equal(key_id, key_id_)) return {TicketOutcome::kForeign, {}};
  const Bytes body = in.Take(in.remaining() - kTagSize);
  const Bytes tag = in.Take(kTagSize);
  const std::optional<Buffer> plain = Decrypt(key_.view(), {ticket.first(kHeadSize), nonce, body, tag});
  if (!plain) return {TicketOutcome::kTampered, {}};
  Result<TicketContent> content = DecodeTicketContent(*plain);
  if (!content.ok()) return {TicketOutcome::kTampered, {}};
  if (now_ms >= content->expires_ms) return {TicketOutcome::kExpired, {}};
  return {TicketOutcome::kOpened, std::move(*content)};
}

std::string_view TicketCode(TicketOutcome outcome) noexcept {
  switch (outcome) {
    case TicketOutcome::kOpened: return "ticket_opened";
    case TicketOutcome::kMalformed: return "ticket_malformed";
    case TicketOutcome::kForeign: return "ticket_foreign";
    case TicketOutcome::kTampered: return "ticket_tampered";
    case TicketOutcome::kExpired: return "ticket_expired";
  }
  return "ticket_malformed";
}

}  // namespace assay::enrollment
