// SPDX-License-Identifier: Apache-2.0
// JSON Web Keys (RFC 7517, RFC 8037) for the two key types that sign tokens, and their thumbprints (RFC 7638).
#include "sdk/core/json.h"
#include "sdk/core/token.h"

namespace assay {
namespace {

constexpr std::size_t kMaxKeys = 32;
constexpr std::size_t kMaxJwks = 64U << 10;
constexpr std::size_t kMaxKid = 128;

struct Members {
  std::string_view kty, crv, x, y, kid, use, alg;
  bool has_private = false;
};

bool ReadMember(Members& members, std::string_view name, JsonValue value) {
  const auto take = [&](std::string_view& field) {
    const auto text = value.String();
    if (text) field = *text;
    return text.has_value();
  };
  if (name == "kty") return take(members.kty);
  if (name == "crv") return take(members.crv);
  if (name == "x") return take(members.x);
  if (name == "y") return take(members.y);
  if (name == "kid") return take(members.kid);
  if (name == "use") return take(members.use);
  if (name == "alg") return take(members.alg);
  if (name == "d" || name == "k") members.has_private = true;
  return true;
}

Result<PublicKey> KeyOf(const Members& members) {
  ASSAY_TRY(const Buffer x, FromBase64Url(members.x));
  if (members.kty == "OKP" && members.crv == "Ed25519") return PublicKey::FromEd25519(x);
  ASSAY_TRY(const Buffer y, FromBase64Url(members.y));
  return PublicKey::FromP256(x, y);
}

std::string_view ExpectedAlgorithm(const Members& members) noexcept {
  if (members.kty == "EC" && members.crv == "P-256") return "ES256";
  if (members.kty == "OKP" && members.crv == "Ed25519") return "EdDSA";
  return {};
}

// Adds one key. A key of a type or use that signs no token is skipped: a set may hold others (RFC 7517 section 5).
Status AddKey(std::vector<KeySet::Entry>& entries, JsonValue jwk) {
  Members members;
  if (!jwk.EachMember(
          [&members](std::string_view name, JsonValue value) { return ReadMember(members, name, value); })) {
    return MakeError(Code::kMalformed, "a key of the set is no object, repeats a member or has one of a wrong type");
  }
  if (members.has_private)
    return MakeError(Code::kDenied, "the key set holds a private or secret key: publish public keys only");
  const std::string_view algorithm = ExpectedAlgorithm(members);
  if (algorithm.empty() || (!members.use.empty() && members.use != "sig")) return Ok();
  if (!members.alg.empty() && members.alg != algorithm)
    return MakeError(Code::kMalformed, "a key's alg contradicts its type");
  if (members.kid.empty() || members.kid.size() > kMaxKid)
    return MakeError(Code::kMalformed, "a key needs a kid of 1 to 128 characters");
  for (const auto& entry : entries)
    if (entry.kid == members.kid) return MakeError(Code::kMalformed, "two keys share a kid");
  if (entries.size() == kMaxKeys) return MakeError(Code::kLimit, "a key set holds at most 32 keys");
  ASSAY_TRY(PublicKey key, KeyOf(members));
  entries.push_back({std::string(members.kid), std::move(key)});
  return Ok();
}

// The members that RFC 7638 section 3.2 and RFC 8037 section 2 require, in their order.
Result<JsonWriter> RequiredMembers(const PublicKey& key) {
  ASSAY_TRY(const auto point, key.Point());
  JsonWriter out;
  out.BeginObject();
  if (key.type() == KeyType::kP256) {
    out.Name("crv")
        .String("P-256")
        .Name("kty")
        .String("EC")
        .Name("x")
        .String(ToBase64Url(point.x))
        .Name("y")
        .String(ToBase64Url(point.y));
  } else if (key.type() == KeyType::kEd25519) {
    out.Name("crv").String("Ed25519").Name("kty").String("OKP").Name("x").String(ToBase64Url(point.x));
  } else {
    return MakeError(Code::kUnsupported, "tokens are signed with P-256 or Ed25519 keys");
  }
  return out;
}

}  // namespace

Result<std::string> JwkThumbprint(const PublicKey& key) {
  ASSAY_TRY(JsonWriter out, RequiredMembers(key));
  out.EndObject();
  return ToBase64Url(Sha256(AsBytes(out.text())));
}

Result<std::string> JwkJson(const PublicKey& key, std::string_view kid) {
  ASSAY_TRY(JsonWriter out, RequiredMembers(key));
  out.Name("kid").String(kid).Name("use").String("sig");
  out.Name("alg").String(key.type() == KeyType::kP256 ? "ES256" : "EdDSA").EndObject();
  return std::move(out).Take();
}

Result<std::string> JwksJson(const std::vector<const PublicKey*>& keys) {
  JsonWriter out;
  out.BeginObject().Name("keys").BeginArray();
  for (const PublicKey* key : keys) {
    ASSAY_TRY(const std::string kid, JwkThumbprint(*key));
    ASSAY_TRY(const std::string jwk, JwkJson(*key, kid));
    out.Raw(jwk);
  }
  out.EndArray().EndObject();
  return std::move(out).Take();
}

Result<KeySet> KeySet::ParseJwks(std::string_view json) {
  if (json.size() > kMaxJwks) return MakeError(Code::kLimit, "a key set has at most 64 KiB");
  JsonParser parser(kMaxJwks);
  ASSAY_TRY(const JsonValue root, parser.Parse(json));
  KeySet set;
  Status status = MakeError(Code::kMalformed, "a key set is an object with an array \"keys\"");
  const bool whole = root.EachMember([&](std::string_view name, JsonValue value) {
    if (name != "keys") return true;
    if (value.kind() != JsonKind::kArray) return false;
    status = Ok();
    return value.EachElement([&](JsonValue jwk) {
      status = AddKey(set.entries_, jwk);
      return status.ok();
    });
  });
  if (!status.ok()) return std::move(status).error();
  if (!whole) return MakeError(Code::kMalformed, "a key set is an object with an array \"keys\", and no member twice");
  if (set.entries_.empty()) return MakeError(Code::kNotFound, "the key set holds no P-256 or Ed25519 signing key");
  return set;
}

const KeySet::Entry* KeySet::Find(std::string_view kid) const noexcept {
  for (const auto& entry : entries_)
    if (entry.kid == kid) return &entry;
  return nullptr;
}

}  // namespace assay
