// SPDX-License-Identifier: Apache-2.0
// JWS compact serialization. The header may only name a key and agree with it: it never chooses an algorithm.
#include <cstdlib>

#include "sdk/core/json.h"
#include "sdk/core/token.h"

namespace assay {
namespace {

constexpr std::size_t kHeaderText = 512;  // of the decoded JSON
constexpr std::size_t kSignatureSize = 64;

// Parsing memory is made once a thread.
JsonParser& HeaderParser() {
  thread_local JsonParser parser(kHeaderText);
  return parser;
}

std::string_view AlgorithmOf(KeyType type) noexcept {
  if (type == KeyType::kP256) return "ES256";
  if (type == KeyType::kEd25519) return "EdDSA";
  return {};
}

struct Parts {
  std::string_view header, payload, signature, signed_text;
};

bool Split(std::string_view token, Parts& parts) noexcept {
  const std::size_t first = token.find('.');
  if (first == std::string_view::npos) return false;
  const std::size_t second = token.find('.', first + 1);
  if (second == std::string_view::npos || token.find('.', second + 1) != std::string_view::npos) return false;
  parts = {token.substr(0, first), token.substr(first + 1, second - first - 1), token.substr(second + 1),
           token.substr(0, second)};
  return true;
}

struct Header {
  std::string_view alg, kid, typ;
  JwsFault fault = JwsFault::kNone;
};

bool ReadHeaderMember(Header& header, std::string_view name, JsonValue value) noexcept {
  const auto take = [&](std::string_view& field) {
    const auto text = value.String();
    if (text) field = *text;
    return text.has_value();
  };
  if (name == "alg") return take(header.alg);
  if (name == "kid") return take(header.kid);
  if (name == "typ") return take(header.typ);
  if (name == "crit") header.fault = JwsFault::kCritical;
  if (name == "jwk" || name == "jku" || name.substr(0, 3) == "x5c" || name.substr(0, 3) == "x5u" ||
      name.substr(0, 3) == "x5t") {
    header.fault = JwsFault::kEmbeddedKey;
  }
  return false;  // we write no other member and take none
}

JwsFault CheckHeader(std::string_view json, Header& header) noexcept {
  const auto root = HeaderParser().TryParse(json);
  if (!root) return JwsFault::kMalformed;
  const auto read = [&header](std::string_view name, JsonValue value) { return ReadHeaderMember(header, name, value); };
  if (!root->EachMember(read)) return header.fault == JwsFault::kNone ? JwsFault::kMalformed : header.fault;
  if (header.alg != "ES256" && header.alg != "EdDSA") return JwsFault::kAlgorithm;
  return JwsFault::kNone;
}

SignatureCheck CheckSignature(const PublicKey& key, std::string_view text, Bytes signature) noexcept {
  if (key.type() == KeyType::kEd25519) return key.VerifyEd25519(AsBytes(text), signature);
  return key.VerifyDigest(SignatureScheme::kEcdsaP256Sha256, Sha256(AsBytes(text)), signature);
}

}  // namespace

std::string_view JwsFaultName(JwsFault fault) noexcept {
  switch (fault) {
    case JwsFault::kNone: return "none";
    case JwsFault::kMalformed: return "malformed";
    case JwsFault::kAlgorithm: return "algorithm";
    case JwsFault::kKeyUnknown: return "key_unknown";
    case JwsFault::kType: return "type";
    case JwsFault::kSignature: return "signature";
    case JwsFault::kCritical: return "critical";
    case JwsFault::kEmbeddedKey: return "embedded_key";
  }
  std::abort();
}

Result<std::string> SignJws(const PrivateKey& key, std::string_view kid, std::string_view typ,
                            std::string_view payload_json) {
  const std::string_view algorithm = AlgorithmOf(key.type());
  if (algorithm.empty()) return MakeError(Code::kUnsupported, "tokens are signed with P-256 or Ed25519 keys");
  JsonWriter header;
  header.BeginObject().Name("alg").String(algorithm).Name("kid").String(kid).Name("typ").String(typ).EndObject();
  if (header.text().size() > kHeaderText)
    return MakeError(Code::kLimit, "a token's header is over its limit: shorten the kid");
  std::string token = ToBase64Url(AsBytes(header.text())) + '.' + ToBase64Url(AsBytes(payload_json));
  const auto scheme = key.type() == KeyType::kP256 ? SignatureScheme::kEcdsaP256Sha256 : SignatureScheme::kEd25519;
  ASSAY_TRY(const Buffer signature, key.Sign(scheme, AsBytes(token)));
  token += '.';
  token += ToBase64Url(signature);
  return token;
}

JwsCheck VerifyJws(const KeySet& keys, std::string_view token, std::string_view expected_typ,
                   MutableBytes scratch) noexcept {
  const auto refuse = [](JwsFault fault) { return JwsCheck{fault, {}}; };
  Parts parts;
  if (token.size() > scratch.size() || !Split(token, parts)) return refuse(JwsFault::kMalformed);
  std::array<std::uint8_t, kHeaderText> header_text;
  const auto header_size = FromBase64UrlInto(parts.header, header_text);
  if (!header_size.ok()) return refuse(JwsFault::kMalformed);
  Header header;
  const JwsFault fault = CheckHeader(AsText(Bytes(header_text).first(*header_size)), header);
  if (fault != JwsFault::kNone) return refuse(fault);
  if (header.typ != expected_typ) return refuse(JwsFault::kType);
  const KeySet::Entry* entry = keys.Find(header.kid);
  if (entry == nullptr) return refuse(JwsFault::kKeyUnknown);
  if (header.alg != AlgorithmOf(entry->key.type())) return refuse(JwsFault::kAlgorithm);
  std::array<std::uint8_t, kSignatureSize> signature;
  const auto signature_size = FromBase64UrlInto(parts.signature, signature);
  if (!signature_size.ok() || *signature_size != kSignatureSize) return refuse(JwsFault::kSignature);
  if (CheckSignature(entry->key, parts.signed_text, signature) != SignatureCheck::kValid)
    return refuse(JwsFault::kSignature);
  const auto payload_size = FromBase64UrlInto(parts.payload, scratch);
  if (!payload_size.ok()) return refuse(JwsFault::kMalformed);
  return {JwsFault::kNone, {AsText(Bytes(scratch).first(*payload_size)), entry->kid, expected_typ}};
}

}  // namespace assay
