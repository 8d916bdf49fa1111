// SPDX-License-Identifier: Apache-2.0
#include "verifier/token/compact.h"

#include <array>
#include <span>

namespace assay::token {
namespace {

std::optional<std::string_view> TextMember(JsonValue object, std::string_view wanted) {
  std::optional<std::string_view> found;
  const bool whole = object.EachMember([&](std::string_view name, JsonValue value) {
    if (name == wanted) found = value.String();
    return true;
  });
  return whole ? found : std::nullopt;
}

bool HasMember(JsonValue object, std::string_view wanted) {
  bool found = false;
  (void)object.EachMember([&](std::string_view name, JsonValue) { return !(found = name == wanted); });
  return found;
}

// The required members of each key type, in the order of their names.
std::span<const std::string_view> RequiredMembers(std::string_view kty) {
  static constexpr std::array<std::string_view, 4> kEc = {"crv", "kty", "x", "y"};
  static constexpr std::array<std::string_view, 3> kOkp = {"crv", "kty", "x"};
  static constexpr std::array<std::string_view, 3> kRsa = {"e", "kty", "n"};
  static constexpr std::array<std::string_view, 2> kOct = {"k", "kty"};
  if (kty == "EC") return kEc;
  if (kty == "OKP") return kOkp;
  if (kty == "RSA") return kRsa;
  if (kty == "oct") return kOct;
  return {};
}

}  // namespace

std::optional<Compact> SplitCompact(std::string_view token) {
  const std::size_t first = token.find('.');
  const std::size_t second = first == std::string_view::npos ? first : token.find('.', first + 1);
  if (token.size() > kCompactSize || second == std::string_view::npos ||
      token.find('.', second + 1) != std::string_view::npos)
    return std::nullopt;
  const auto header = FromBase64Url(token.substr(0, first));
  const auto payload = FromBase64Url(token.substr(first + 1, second - first - 1));
  auto signature = FromBase64Url(token.substr(second + 1));
  if (!header.ok() || !payload.ok() || !signature.ok() || header->empty() || payload->empty() || signature->empty())
    return std::nullopt;
  return Compact{std::string(AsText(*header)), std::string(AsText(*payload)), std::move(*signature),
                 token.substr(0, second)};
}

std::optional<std::string> JwkThumbprint(JsonValue jwk) {
  const auto members = RequiredMembers(TextMember(jwk, "kty").value_or(""));
  if (members.empty()) return std::nullopt;
  JsonWriter out;
  out.BeginObject();
  for (const std::string_view name : members) {
    const auto value = TextMember(jwk, name);
    if (!value) return std::nullopt;
    out.Name(name).String(*value);
  }
  return ToBase64Url(Sha256(AsBytes(out.EndObject().text())));
}

std::optional<ParsedJwk> ParsePublicJwk(JsonValue jwk) {
  for (const std::string_view secret : {"d", "p", "q", "dp", "dq", "qi", "oth", "k"})
    if (HasMember(jwk, secret)) return std::nullopt;
  auto thumbprint = JwkThumbprint(jwk);
  const std::string_view kty = TextMember(jwk, "kty").value_or("");
  const std::string_view crv = TextMember(jwk, "crv").value_or("");
  const auto x = FromBase64Url(TextMember(jwk, "x").value_or(""));
  if (!thumbprint || !x.ok() || x->size() != 32) return std::nullopt;
  if (kty == "OKP" && crv == "Ed25519") {
    auto key = PublicKey::FromEd25519(*x);
    if (!key.ok()) return std::nullopt;
    return ParsedJwk{std::move(*key), std::move(*thumbprint)};
  }
  const auto y = FromBase64Url(TextMember(jwk, "y").value_or(""));
  if (kty != "EC" || crv != "P-256" || !y.ok() || y->size() != 32) return std::nullopt;
  auto key = PublicKey::FromP256(*x, *y);
  if (!key.ok()) return std::nullopt;
  return ParsedJwk{std::move(*key), std::move(*thumbprint)};
}

bool VerifyCompact(const PublicKey& key, std::string_view alg, const Compact& token) {
  const Bytes message = AsBytes(token.signed_part);
  if (key.type() == KeyType::kP256) {
    return alg == "ES256" && token.signature.size() == 64 &&
           key.VerifyDigest(SignatureScheme::kEcdsaP256Sha256, Sha256(message), token.signature) ==
               SignatureCheck::kValid;
  }
  return key.type() == KeyType::kEd25519 && alg == "EdDSA" &&
         key.VerifyEd25519(message, token.signature) == SignatureCheck::kValid;
}

}  // namespace assay::token
