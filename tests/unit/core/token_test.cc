// SPDX-License-Identifier: Apache-2.0
#include "sdk/core/token.h"

#include <doctest/doctest.h>

#include "sdk/core/json.h"

namespace assay {
namespace {

struct Signer {
  PrivateKey key;
  std::string kid;
  KeySet set;
  explicit Signer(KeyType type = KeyType::kP256) : key(PrivateKey::Generate(type).value()) {
    const PublicKey pub = key.Public().value();
    kid = JwkThumbprint(pub).value();
    set = KeySet::ParseJwks(JwksJson({&pub}).value()).value();
  }
  std::string Sign(std::string_view payload, std::string_view typ = kResultTokenType) const {
    return SignJws(key, kid, typ, payload).value();
  }
  // A token with any header, signed as its text says nothing about.
  std::string Forge(std::string_view header, std::string_view payload) const {
    const std::string text = ToBase64Url(AsBytes(header)) + "." + ToBase64Url(AsBytes(payload));
    const auto scheme = key.type() == KeyType::kP256 ? SignatureScheme::kEcdsaP256Sha256 : SignatureScheme::kEd25519;
    return text + "." + ToBase64Url(key.Sign(scheme, AsBytes(text)).value());
  }
};

JwsFault FaultOf(const KeySet& set, std::string_view token, std::string_view typ = kResultTokenType) {
  Buffer scratch(token.size());
  return VerifyJws(set, token, typ, scratch).fault;
}

TEST_CASE("a token of each key type verifies and gives its payload") {
  for (const KeyType type : {KeyType::kP256, KeyType::kEd25519}) {
    const Signer signer(type);
    const std::string token = signer.Sign(R"({"a":1})");
    Buffer scratch(token.size());
    for (int round = 0; round < 3; ++round) {
      const JwsCheck check = VerifyJws(signer.set, token, kResultTokenType, scratch);
      REQUIRE(check.fault == JwsFault::kNone);
      CHECK(check.jws.payload == R"({"a":1})");
      CHECK(check.jws.kid == signer.kid);
      CHECK(check.jws.typ == kResultTokenType);
    }
  }
}

TEST_CASE("every character of a token that changes makes it worthless") {
  for (const KeyType type : {KeyType::kP256, KeyType::kEd25519}) {
    const Signer signer(type);
    const std::string token = signer.Sign(R"({"a":1,"b":"text"})");
    for (std::size_t i = 0; i < token.size(); ++i) {
      std::string bad = token;
      bad[i] = bad[i] == 'A' ? 'B' : 'A';
      CHECK(FaultOf(signer.set, bad) != JwsFault::kNone);
      CHECK(FaultOf(signer.set, std::string_view(token).substr(0, i)) != JwsFault::kNone);
    }
    CHECK(FaultOf(signer.set, token + "A") != JwsFault::kNone);
    CHECK(FaultOf(signer.set, token + ".") == JwsFault::kMalformed);
    CHECK(FaultOf(signer.set, token + "=") != JwsFault::kNone);
    CHECK(FaultOf(signer.set, token + "\n") != JwsFault::kNone);
  }
}

TEST_CASE("the header chooses neither algorithm nor key") {
  const Signer signer;
  const Signer other(KeyType::kEd25519);
  const std::string kid = "\"kid\":\"" + signer.kid + "\"";
  const auto fault = [&](const std::string& header) { return FaultOf(signer.set, signer.Forge(header, "{}")); };
  const std::string typ = R"("typ":"ear+jwt")";
  CHECK(fault(R"({"alg":"ES256",)" + kid + "," + typ + "}") == JwsFault::kNone);
  CHECK(fault(R"({"alg":"none",)" + kid + "," + typ + "}") == JwsFault::kAlgorithm);
  CHECK(fault(R"({"alg":"HS256",)" + kid + "," + typ + "}") == JwsFault::kAlgorithm);
  CHECK(fault(R"({"alg":"EdDSA",)" + kid + "," + typ + "}") == JwsFault::kAlgorithm);
  CHECK(fault("{" + kid + "," + typ + "}") == JwsFault::kAlgorithm);
  CHECK(fault(R"({"alg":"ES256","kid":"other",)" + typ + "}") == JwsFault::kKeyUnknown);
  CHECK(fault(R"({"alg":"ES256",)" + typ + "}") == JwsFault::kKeyUnknown);
  CHECK(fault(R"({"alg":"ES256",)" + kid + "}") == JwsFault::kType);
  CHECK(fault(R"({"alg":"ES256",)" + kid + R"(,"typ":"JWT"})") == JwsFault::kType);
  CHECK(fault(R"({"alg":"ES256",)" + kid + "," + typ + R"(,"crit":["exp"]})") == JwsFault::kCritical);
  const PublicKey pub = signer.key.Public().value();
  CHECK(fault(R"({"alg":"ES256",)" + kid + "," + typ + ",\"jwk\":" + JwkJson(pub, signer.kid).value() + "}") ==
        JwsFault::kEmbeddedKey);
  for (const char* member : {"jku", "x5u", "x5c", "x5t", "x5t#S256"}) {
    CHECK(fault(R"({"alg":"ES256",)" + kid + "," + typ + ",\"" + member + "\":\"https://example.org\"}") ==
          JwsFault::kEmbeddedKey);
  }
  CHECK(fault(R"({"alg":"ES256",)" + kid + "," + typ + R"(,"b64":false})") == JwsFault::kMalformed);
  CHECK(fault(R"({"alg":"ES256","alg":"ES256",)" + kid + "," + typ + "}") == JwsFault::kMalformed);
  CHECK(fault(R"(["ES256"])") == JwsFault::kMalformed);
  CHECK(FaultOf(other.set, signer.Sign("{}")) == JwsFault::kKeyUnknown);
  CHECK(FaultOf(signer.set, signer.Sign("{}", kRevocationsType)) == JwsFault::kType);
}

TEST_CASE("an HMAC made with the public key as its secret is refused") {
  const Signer signer;
  const std::string text = ToBase64Url(AsBytes(R"({"alg":"HS256","kid":")" + signer.kid + R"(","typ":"ear+jwt"})")) +
                           "." + ToBase64Url(AsBytes("{}"));
  const PublicKey pub = signer.key.Public().value();
  for (const Buffer& secret : {pub.Spki(), ToBuffer(AsBytes(pub.Pem()))}) {
    CHECK(FaultOf(signer.set, text + "." + ToBase64Url(HmacSha256(secret, AsBytes(text)))) == JwsFault::kAlgorithm);
  }
}

TEST_CASE("thumbprints are those of RFC 7638 and RFC 8037") {
  // RFC 8037 appendix A.3
  const auto ed =
      KeySet::ParseJwks(
          R"({"keys":[{"kty":"OKP","crv":"Ed25519","kid":"k","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]})")
          .value();
  CHECK(JwkThumbprint(ed.Find("k")->key).value() == "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
  // P-256: RFC 7517 appendix A.1's first key; its required members in their order
  const std::string x = "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4",
                    y = "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM";
  const auto ec = KeySet::ParseJwks(R"({"keys":[{"kty":"EC","crv":"P-256","x":")" + x + R"(","y":")" + y +
                                    R"(","use":"enc","kid":"1"},)" + R"({"kty":"EC","crv":"P-256","x":")" + x +
                                    R"(","y":")" + y + R"(","use":"sig","kid":"2"}]})")
                      .value();
  CHECK(ec.Find("1") == nullptr);  // not a signing key
  const Digest expected = Sha256(AsBytes(R"({"crv":"P-256","kty":"EC","x":")" + x + R"(","y":")" + y + "\"}"));
  CHECK(JwkThumbprint(ec.Find("2")->key).value() == ToBase64Url(expected));
  CHECK_FALSE(JwkThumbprint(PrivateKey::Generate(KeyType::kRsa2048).value().Public().value()).ok());
}

TEST_CASE("a key set with a fault in it is refused as a whole") {
  const Signer signer;
  const std::string jwk = JwkJson(signer.key.Public().value(), "k").value();
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = jwk;
    text.replace(text.find(from), from.size(), to);
    return KeySet::ParseJwks("{\"keys\":[" + text + "]}").ok();
  };
  CHECK(with("\"kid\":\"k\"", "\"kid\":\"j\""));
  CHECK_FALSE(with("\"kid\":\"k\"", "\"kid\":\"\""));
  CHECK_FALSE(with("\"kid\":\"k\"", "\"kid\":7"));
  CHECK_FALSE(with("\"kid\":\"k\"", "\"kid\":\"k\",\"kid\":\"k\""));
  CHECK_FALSE(with("\"kid\":\"k\"", "\"kid\":\"k\",\"d\":\"AA\""));
  CHECK_FALSE(with("\"ES256\"", "\"EdDSA\""));
  CHECK_FALSE(with("\"x\":\"", "\"x\":\"AA"));
  CHECK_FALSE(with("\"sig\"", "\"enc\""));  // leaves no key
  CHECK_FALSE(KeySet::ParseJwks("{\"keys\":[" + jwk + "," + jwk + "]}").ok());
  CHECK_FALSE(KeySet::ParseJwks("[" + jwk + "]").ok());
  CHECK_FALSE(KeySet::ParseJwks("{\"keys\":{}}").ok());
  CHECK_FALSE(KeySet::ParseJwks("{}").ok());
  CHECK(KeySet::ParseJwks("{\"keys\":[{\"kty\":\"RSA\",\"kid\":\"r\",\"n\":\"AA\",\"e\":\"AQAB\"}," + jwk + "]}").ok());
  std::string many;
  for (int i = 0; i < 33; ++i)
    many += (i == 0 ? "" : ",") + JwkJson(signer.key.Public().value(), std::to_string(i)).value();
  CHECK_FALSE(KeySet::ParseJwks("{\"keys\":[" + many + "]}").ok());
}

TEST_CASE("a server nonce is genuine only for its key, audience, match and channel") {
  const Digest channel = Sha256(AsBytes("channel"));
  const auto random = RandomArray<16>();
  const Buffer key(32, 1), other(32, 2);
  const Digest nonce = MakeServerNonce(key, "title", "match", random, channel);
  CHECK(CheckServerNonce(key, "title", "match", nonce, channel) == NonceCheck::kGenuine);
  CHECK(CheckServerNonce(other, "title", "match", nonce, channel) == NonceCheck::kForeign);
  CHECK(CheckServerNonce(key, "titlem", "atch", nonce, channel) == NonceCheck::kForeign);
  CHECK(CheckServerNonce(key, "title", "", nonce, channel) == NonceCheck::kForeign);
  CHECK(CheckServerNonce(key, "title", "match", nonce, Sha256(AsBytes("x"))) == NonceCheck::kForeign);
  for (std::size_t bit = 0; bit < 256; ++bit) {
    Digest bad = nonce;
    bad[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
    CHECK(CheckServerNonce(key, "title", "match", bad, channel) == NonceCheck::kForeign);
  }
  CHECK(CheckServerNonce(key, std::string(300, 'a'), "", nonce, channel) == NonceCheck::kForeign);
}

TEST_CASE("a revocation list survives a round trip and refuses what it should not hold") {
  const RevocationList list{
      .issued_at = 10, .expires_at = 20, .number = 3, .token_ids = {"t1", "t2"}, .device_ids = {"d"}};
  const std::string json = EncodeRevocationList(list);
  const RevocationList read = DecodeRevocationList(json).value();
  CHECK(EncodeRevocationList(read) == json);
  CHECK(read.token_ids == list.token_ids);
  for (std::size_t size = 0; size < json.size(); ++size)
    CHECK_FALSE(DecodeRevocationList(std::string_view(json).substr(0, size)).ok());
  for (const char* bad : {R"({"iat":10,"exp":10,"number":3,"token_ids":[],"device_ids":[]})",
                          R"({"iat":10,"exp":20,"token_ids":[],"device_ids":[]})",
                          R"({"iat":10,"exp":20,"number":-1,"token_ids":[],"device_ids":[]})",
                          R"({"iat":10,"exp":20,"number":1,"token_ids":[""],"device_ids":[]})",
                          R"({"iat":10,"exp":20,"number":1,"token_ids":[1],"device_ids":[]})",
                          R"({"iat":10,"exp":20,"number":1,"token_ids":[],"device_ids":{}})",
                          R"({"iat":10,"iat":10,"exp":20,"number":1,"token_ids":[],"device_ids":[]})"}) {
    CAPTURE(bad);
    CHECK_FALSE(DecodeRevocationList(bad).ok());
  }
}

}  // namespace
}  // namespace assay
