// SPDX-License-Identifier: Apache-2.0
#include "verifier/token/access_token.h"

#include <doctest/doctest.h>

#include "sdk/core/json.h"

namespace assay::token {
namespace {

constexpr std::int64_t kNow = 1'780'000'000;
const std::string kFirst(32, 'a'), kSecond(32, 'b');

SecretRing Ring(const std::vector<std::string>& secrets) {
  std::vector<Bytes> views;
  for (const auto& secret : secrets) views.push_back(AsBytes(secret));
  auto ring = SecretRing::Make(views);
  REQUIRE(ring.ok());
  return std::move(*ring);
}

AccessClaims Claims() {
  return {"https://v", "server:1", "title", "t1", {"read", "ban"}, std::nullopt, kNow, kNow + 300};
}
AccessPolicy Offline() {
  AccessPolicy policy;
  policy.claims = {"https://v", "title", kNow};
  policy.mode = Mode::kOffline;
  return policy;
}

TokenFault Try(const std::string& payload, const AccessPolicy& policy = Offline()) {
  const SecretRing ring = Ring({kFirst});
  return ValidateAccessToken(ring, ring.Sign(kAccessType, payload), policy).fault;
}

class Store final : public RevocationStore {
 public:
  Result<Standing> Ask(std::string_view id) override {
    if (away) return MakeError(Code::kUnavailable, "away");
    return id == revoked ? Standing::kRevoked : Standing::kGood;
  }
  bool away = false;
  std::string revoked;
};

TEST_CASE("a token that was signed is accepted with what it says") {
  AccessClaims claims = Claims();
  claims.key_thumbprint = "jkt";
  const SecretRing ring = Ring({kFirst});
  const auto checked = ValidateAccessToken(ring, ring.Sign(kAccessType, EncodeAccessClaims(claims)), Offline());
  REQUIRE(checked.fault == TokenFault::kNone);
  CHECK(checked.claims.subject == "server:1");
  CHECK(checked.claims.scopes == std::vector<std::string>{"read", "ban"});
  CHECK(checked.claims.key_thumbprint == "jkt");
  CHECK(checked.claims.expires_at == kNow + 300);
}

TEST_CASE("every byte of a token counts, and none may be missing") {
  const SecretRing ring = Ring({kFirst});
  const std::string token = ring.Sign(kAccessType, EncodeAccessClaims(Claims()));
  for (std::size_t i = 0; i < token.size(); ++i) {
    std::string changed = token;
    changed[i] = changed[i] == 'A' ? 'B' : 'A';
    CHECK(ValidateAccessToken(ring, changed, Offline()).fault == TokenFault::kInvalid);
    CHECK(ValidateAccessToken(ring, token.substr(0, i), Offline()).fault == TokenFault::kInvalid);
  }
}

TEST_CASE("each claim that is wrong has its code") {
  const auto with = [](auto change) {
    AccessClaims claims = Claims();
    change(claims);
    return Try(EncodeAccessClaims(claims));
  };
  CHECK(with([](AccessClaims& c) { c.issuer = "other"; }) == TokenFault::kIssuer);
  CHECK(with([](AccessClaims& c) { c.audience = "other"; }) == TokenFault::kAudience);
  CHECK(with([](AccessClaims& c) { c.audience = ""; }) == TokenFault::kAudience);
  CHECK(with([](AccessClaims& c) { c.id = ""; }) == TokenFault::kInvalid);
  CHECK(with([](AccessClaims& c) { c.subject = ""; }) == TokenFault::kInvalid);
  CHECK(with([](AccessClaims& c) { c.expires_at = kNow - 30; }) == TokenFault::kExpired);
  CHECK(with([](AccessClaims& c) { c.expires_at = kNow - 29; }) == TokenFault::kNone);
  CHECK(with([](AccessClaims& c) { c.issued_at = kNow + 31; }) == TokenFault::kInvalid);
  CHECK(with([](AccessClaims& c) { c.issued_at = kNow - 90'000; }) == TokenFault::kExpired);
  AccessPolicy scoped = Offline();
  scoped.scope = "own";
  CHECK(Try(EncodeAccessClaims(Claims()), scoped) == TokenFault::kScope);
  scoped.scope = "ban";
  CHECK(Try(EncodeAccessClaims(Claims()), scoped) == TokenFault::kNone);
}

TEST_CASE("a payload without expiry, with a claim twice or of a wrong type is refused") {
  const std::string base = R"("iss":"https://v","sub":"s","aud":"title","jti":"t","iat":1780000000)";
  CHECK(Try("{" + base + ",\"exp\":1780000300}") == TokenFault::kNone);
  CHECK(Try("{" + base + "}") == TokenFault::kInvalid);
  CHECK(Try("{" + base + ",\"exp\":\"1780000300\"}") == TokenFault::kInvalid);
  CHECK(Try("{" + base + ",\"exp\":1,\"exp\":1780000300}") == TokenFault::kInvalid);
  CHECK(Try("{" + base + ",\"exp\":1e400}") == TokenFault::kInvalid);
  CHECK(Try("{" + base + ",\"exp\":1780000300,\"cnf\":{\"x5t\":\"a\"}}") == TokenFault::kInvalid);
  CHECK(Try("[]") == TokenFault::kInvalid);
}

TEST_CASE("the algorithm is the key's: none, another and a key of the sender's are refused") {
  const SecretRing ring = Ring({kFirst});
  const std::string payload = ToBase64Url(AsBytes(EncodeAccessClaims(Claims())));
  const auto forged = [&](const std::string& header) {
    const std::string start = ToBase64Url(AsBytes(header)) + "." + payload;
    return ValidateAccessToken(ring, start + "." + ToBase64Url(HmacSha256(AsBytes(kFirst), AsBytes(start))), Offline())
        .fault;
  };
  CHECK(forged(R"({"alg":"HS256","typ":"at+jwt"})") == TokenFault::kNone);
  CHECK(forged(R"({"alg":"none","typ":"at+jwt"})") == TokenFault::kInvalid);
  CHECK(forged(R"({"alg":"ES256","typ":"at+jwt"})") == TokenFault::kInvalid);
  CHECK(forged(R"({"alg":"HS256","typ":"session+jwt"})") == TokenFault::kInvalid);
  CHECK(forged(R"({"alg":"HS256"})") == TokenFault::kInvalid);
  CHECK(forged(R"({"alg":"HS256","typ":"at+jwt","crit":["x"]})") == TokenFault::kInvalid);
  CHECK(forged(R"({"alg":"HS256","typ":"at+jwt","jwk":{}})") == TokenFault::kInvalid);
}

TEST_CASE("an asymmetric key accepts its own tokens and no HMAC made with its public half") {
  const auto key = PrivateKey::Generate(KeyType::kP256);
  REQUIRE(key.ok());
  const auto shown = key->Public();
  REQUIRE(shown.ok());
  const auto kid = JwkThumbprint(*shown);
  const auto keys = KeySet::ParseJwks(*JwksJson({&*shown}));
  REQUIRE(keys.ok());
  const auto token = SignJws(*key, *kid, kAccessType, EncodeAccessClaims(Claims()));
  CHECK(ValidateAccessToken(*keys, *token, Offline()).fault == TokenFault::kNone);
  const std::string start = ToBase64Url(AsBytes("{\"alg\":\"HS256\",\"typ\":\"at+jwt\",\"kid\":\"" + *kid + "\"}")) +
                            "." + ToBase64Url(AsBytes(EncodeAccessClaims(Claims())));
  CHECK(ValidateAccessToken(*keys, start + "." + ToBase64Url(HmacSha256(AsBytes(shown->Pem()), AsBytes(start))),
                            Offline())
            .fault == TokenFault::kInvalid);
}

TEST_CASE("a ring signs with its first secret and accepts each until it is dropped") {
  const std::string old = Ring({kFirst}).Sign(kSessionType, EncodeAccessClaims(Claims()));
  AccessPolicy policy = Offline();
  policy.type = kSessionType;
  CHECK(ValidateAccessToken(Ring({kSecond, kFirst}), old, policy).fault == TokenFault::kNone);
  CHECK(ValidateAccessToken(Ring({kSecond}), old, policy).fault == TokenFault::kInvalid);
  CHECK(ValidateAccessToken(Ring({kSecond}), Ring({kSecond, kFirst}).Sign(kSessionType, EncodeAccessClaims(Claims())),
                            policy)
            .fault == TokenFault::kNone);
  CHECK(!SecretRing::Make({}).ok());
  CHECK(!SecretRing::Make({AsBytes("short")}).ok());
}

TEST_CASE("the cached mode refuses a listed token, and every token when the list is old or was never filled") {
  Denylist denylist;
  AccessPolicy policy = Offline();
  policy.mode = Mode::kCached;
  policy.denylist = &denylist;
  const std::string payload = EncodeAccessClaims(Claims());
  CHECK(Try(payload, policy) == TokenFault::kUnavailable);
  denylist.Refreshed(kNow - 60);
  CHECK(Try(payload, policy) == TokenFault::kNone);
  denylist.Refreshed(kNow - 61);
  CHECK(Try(payload, policy) == TokenFault::kUnavailable);
  denylist.Refreshed(kNow + 1);
  CHECK(Try(payload, policy) == TokenFault::kUnavailable);
  denylist.Refreshed(kNow);
  REQUIRE(denylist.Add("t1", kNow + 300, kNow));
  CHECK(Try(payload, policy) == TokenFault::kRevoked);
}

TEST_CASE("the live mode asks each time and refuses when there is no answer") {
  Store store;
  AccessPolicy policy = Offline();
  policy.mode = Mode::kLive;
  const std::string payload = EncodeAccessClaims(Claims());
  CHECK(Try(payload, policy) == TokenFault::kUnavailable);
  policy.store = &store;
  CHECK(Try(payload, policy) == TokenFault::kNone);
  store.revoked = "t1";
  CHECK(Try(payload, policy) == TokenFault::kRevoked);
  store.revoked.clear();
  store.away = true;
  CHECK(Try(payload, policy) == TokenFault::kUnavailable);
  CHECK(TokenFaultCode(TokenFault::kUnavailable) == "TOKEN_REVOKED");
}

TEST_CASE("a hundred thousand listed ids leave when their tokens would have expired") {
  Denylist denylist;
  for (int i = 0; i < 100'000; ++i) REQUIRE(denylist.Add("t" + std::to_string(i), kNow + 1 + i % 100, kNow));
  REQUIRE(denylist.Add("t0", kNow + 500, kNow));
  CHECK(denylist.Has("t99999"));
  CHECK(!denylist.Has("t100000"));
  REQUIRE(denylist.Add("late", kNow + 500, kNow + 200));
  CHECK(denylist.size() == 2);
  CHECK(denylist.Has("t0"));
}

}  // namespace
}  // namespace assay::token
