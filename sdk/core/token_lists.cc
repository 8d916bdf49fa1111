// SPDX-License-Identifier: Apache-2.0
// The nonce that a title's own server makes, and the signed list of what is no longer good.
#include "sdk/core/json.h"
#include "sdk/core/token.h"

namespace assay {
namespace {

constexpr std::size_t kNonceRandom = 16;
constexpr std::string_view kNonceTag = "assay/title-nonce/1";

bool GetTexts(JsonValue value, std::vector<std::string>& out) {
  return value.EachElement([&out](JsonValue item) {
    const auto text = item.String();
    if (!text || text->empty() || text->size() > kClaimText || out.size() == kRevocationEntries) return false;
    out.emplace_back(*text);
    return true;
  });
}

constexpr std::int64_t kNumberLimit = std::int64_t{1} << 40;  // seconds or versions: far from any overflow

bool GetNumber(JsonValue value, std::int64_t& out) {
  const auto number = value.Int();
  if (!number || *number < 0 || *number > kNumberLimit) return false;
  out = *number;
  return true;
}

}  // namespace

Digest MakeServerNonce(Bytes title_key, std::string_view audience, std::string_view match, Bytes random16,
                       const Digest& session_key_hash) {
  if (random16.size() != kNonceRandom || audience.size() > limits::kAudience || match.size() > limits::kMatch)
    std::abort();
  Writer sized;  // 0 | u16 size | audience | u16 size | match
  sized.U8(0);
  sized.PutU16Sized(AsBytes(audience));
  sized.PutU16Sized(AsBytes(match));
  const Digest mac = HmacSha256(title_key, {AsBytes(kNonceTag), sized.buffer(), random16, session_key_hash});
  Digest nonce;
  CopyBytes(random16, MutableBytes(nonce).first(kNonceRandom));
  CopyBytes(Bytes(mac).first(nonce.size() - kNonceRandom), MutableBytes(nonce).subspan(kNonceRandom));
  return nonce;
}

NonceCheck CheckServerNonce(Bytes title_key, std::string_view audience, std::string_view match, const Digest& nonce,
                            const Digest& session_key_hash) {
  if (audience.size() > limits::kAudience || match.size() > limits::kMatch) return NonceCheck::kForeign;
  const Digest expected =
      MakeServerNonce(title_key, audience, match, Bytes(nonce).first(kNonceRandom), session_key_hash);
  return EqualConstantTime(expected, nonce) ? NonceCheck::kGenuine : NonceCheck::kForeign;
}

std::string EncodeRevocationList(const RevocationList& list) {
  JsonWriter out;
  out.BeginObject().Name("iat").Int(list.issued_at).Name("exp").Int(list.expires_at).Name("number").Uint(list.number);
  out.Name("token_ids").BeginArray();
  for (const auto& id : list.token_ids) out.String(id);
  out.EndArray().Name("device_ids").BeginArray();
  for (const auto& id : list.device_ids) out.String(id);
  out.EndArray().EndObject();
  return std::move(out).Take();
}

Result<RevocationList> DecodeRevocationList(std::string_view payload) {
  if (payload.size() > kRevocationListSize) return MakeError(Code::kLimit, "a revocation list has at most 1 MiB");
  JsonParser parser(payload.size() + 1);
  ASSAY_TRY(const JsonValue root, parser.Parse(payload));
  RevocationList list;
  std::int64_t number = 0;
  unsigned seen = 0;
  const bool whole = root.EachMember([&](std::string_view name, JsonValue value) {
    if (name == "iat") return (seen |= 1U) != 0 && GetNumber(value, list.issued_at);
    if (name == "exp") return (seen |= 2U) != 0 && GetNumber(value, list.expires_at);
    if (name == "number") return (seen |= 4U) != 0 && GetNumber(value, number);
    if (name == "token_ids") return (seen |= 8U) != 0 && GetTexts(value, list.token_ids);
    if (name == "device_ids") return (seen |= 16U) != 0 && GetTexts(value, list.device_ids);
    return true;
  });
  if (!whole || seen != 31U || list.expires_at <= list.issued_at) {
    return MakeError(
        Code::kMalformed,
        "a revocation list has iat, exp after it, number, token_ids and device_ids, each once and in their limits");
  }
  list.number = static_cast<std::uint64_t>(number);
  return list;
}

}  // namespace assay
