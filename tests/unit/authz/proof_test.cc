// SPDX-License-Identifier: Apache-2.0
// DPoP proofs and device bundles made here and changed in one place at a time.
#include <doctest/doctest.h>

#include "sdk/core/json.h"
#include "verifier/token/bundle.h"
#include "verifier/token/compact.h"
#include "verifier/token/dpop.h"

namespace assay::token {
namespace {

constexpr std::int64_t kNow = 1'780'000'000;

struct Prover {
  PrivateKey key;
  std::string jwk;
  explicit Prover(KeyType type) : key(std::move(*PrivateKey::Generate(type))) { jwk = *JwkJson(*key.Public(), "k"); }

  std::string Sign(const std::string& header, const std::string& payload) const {
    const std::string start = ToBase64Url(AsBytes(header)) + "." + ToBase64Url(AsBytes(payload));
    const bool p256 = key.type() == KeyType::kP256;
    return start + "." +
           ToBase64Url(*key.Sign(p256 ? SignatureScheme::kEcdsaP256Sha256 : SignatureScheme::kEd25519, AsBytes(start)));
  }
  std::string Header(const std::string& alg, const std::string& more = "") const {
    return "{\"typ\":\"dpop+jwt\",\"alg\":\"" + alg + "\",\"jwk\":" + jwk + more + "}";
  }
};

std::string Claims(std::int64_t iat, const std::string& id = "j1") {
  return "{\"jti\":\"" + id + "\",\"htm\":\"POST\",\"htu\":\"https://v.example/x\",\"iat\":" + std::to_string(iat) +
         "}";
}

ProofFault Try(const std::string& proof, ReplayStore& replay, std::int64_t now = kNow) {
  return VerifyProof({proof, "POST", "https://V.example:443/x?q#f", "", now, false, {}}, replay).fault;
}
ProofFault Try(const std::string& proof) {
  MemoryReplayStore replay;
  return Try(proof, replay);
}

TEST_CASE("both key types prove, and the algorithm must be the key's") {
  const Prover p256(KeyType::kP256), ed25519(KeyType::kEd25519);
  CHECK(Try(p256.Sign(p256.Header("ES256"), Claims(kNow))) == ProofFault::kNone);
  CHECK(Try(ed25519.Sign(ed25519.Header("EdDSA"), Claims(kNow))) == ProofFault::kNone);
  CHECK(Try(ed25519.Sign(ed25519.Header("ES256"), Claims(kNow))) == ProofFault::kSignature);
  CHECK(Try(p256.Sign(p256.Header("none"), Claims(kNow))) == ProofFault::kAlgorithm);
  CHECK(Try(p256.Sign(p256.Header("ES256", ",\"crit\":[\"b64\"]"), Claims(kNow))) == ProofFault::kMalformed);
  CHECK(Try(p256.Sign(ed25519.Header("EdDSA"), Claims(kNow))) == ProofFault::kSignature);
}

TEST_CASE("a key with a private member is refused") {
  Prover prover(KeyType::kP256);
  prover.jwk.insert(1, "\"d\":\"AA\",");
  CHECK(Try(prover.Sign(prover.Header("ES256"), Claims(kNow))) == ProofFault::kKey);
}

TEST_CASE("a proof that is cut or changed anywhere is refused") {
  const Prover prover(KeyType::kEd25519);
  const std::string proof = prover.Sign(prover.Header("EdDSA"), Claims(kNow));
  for (std::size_t i = 0; i < proof.size(); ++i) {
    std::string changed = proof;
    changed[i] = changed[i] == 'A' ? 'B' : 'A';
    CHECK(Try(changed) != ProofFault::kNone);
    CHECK(Try(proof.substr(0, i)) != ProofFault::kNone);
  }
}

TEST_CASE("the window of a proof's time is closed at both ends") {
  const Prover prover(KeyType::kEd25519);
  const auto at = [&](std::int64_t iat) { return Try(prover.Sign(prover.Header("EdDSA"), Claims(iat))); };
  CHECK(at(kNow + 30) == ProofFault::kNone);
  CHECK(at(kNow + 31) == ProofFault::kTime);
  CHECK(at(kNow - 330) == ProofFault::kNone);
  CHECK(at(kNow - 331) == ProofFault::kTime);
}

TEST_CASE("a proof serves once in any order, for as long as its time is good") {
  const Prover prover(KeyType::kEd25519);
  MemoryReplayStore replay;
  const std::string late = prover.Sign(prover.Header("EdDSA"), Claims(kNow + 30, "late"));
  const std::string early = prover.Sign(prover.Header("EdDSA"), Claims(kNow - 300, "early"));
  CHECK(Try(late, replay) == ProofFault::kNone);
  CHECK(Try(early, replay) == ProofFault::kNone);
  CHECK(Try(early, replay) == ProofFault::kReplay);
  CHECK(Try(late, replay, kNow + 360) == ProofFault::kReplay);
  CHECK(Try(late, replay, kNow + 361) == ProofFault::kTime);
}

TEST_CASE("a replay store that lost its memory refuses until old proofs are too old") {
  const Prover prover(KeyType::kEd25519);
  MemoryReplayStore replay(kNow + kProofAhead + kProofBehind);
  CHECK(Try(prover.Sign(prover.Header("EdDSA"), Claims(kNow)), replay) == ProofFault::kReplay);
  CHECK(Try(prover.Sign(prover.Header("EdDSA"), Claims(kNow + 360)), replay, kNow + 360) == ProofFault::kNone);
}

TEST_CASE("URLs are equal up to case of host, default port, query and fragment, nothing else") {
  CHECK(NormalUrl("HTTPS://A.b:443?x/y") == "https://a.b/");
  CHECK(NormalUrl("http://a:80/P#?") == "http://a/P");
  CHECK(NormalUrl("http://a:443/") == "http://a:443/");
  for (const char* bad : {"", "a/b", "ftp://a/", "https://", "https:///x", "https://u@a/", "https://:443/"})
    CHECK(!NormalUrl(bad));
}

std::string BundleClaims(const std::string& perms, const std::string& more = "") {
  return R"({"iss":"v","sub":"e","aud":["e"],"jti":"b","iat":1780000000,"exp":1780003600,"perms":)" + perms + more +
         "}";
}

struct Issuer {
  PrivateKey key = std::move(*PrivateKey::Generate(KeyType::kEd25519));
  KeySet keys;
  std::string kid;
  authz::SystemZones zones;
  Issuer() : keys(Keys(key)), kid(*JwkThumbprint(*key.Public())) {}
  static KeySet Keys(const PrivateKey& key) {
    const auto shown = key.Public();
    return std::move(*KeySet::ParseJwks(*JwksJson({&*shown})));
  }
  OpenedBundle Open(const std::string& claims, std::uint64_t least_version = 0, std::int64_t now = kNow) {
    return OpenBundle(keys, *SignJws(key, kid, kBundleType, claims), {"e", "v", now, 30, least_version}, zones);
  }
};

BundleAnswer Ask(const Bundle& bundle, authz::RateLedger* calls = nullptr) {
  static const authz::Arguments none;
  return DecideBundle(bundle, {"use", "k:1", {kNow, std::nullopt, &none}}, calls);
}

TEST_CASE("a bundle's version never goes back and its time never runs over") {
  Issuer issuer;
  const std::string claims = BundleClaims("[]", ",\"ver\":7");
  CHECK(issuer.Open(claims, 7).fault == BundleFault::kNone);
  CHECK(issuer.Open(claims, 8).fault == BundleFault::kRollback);
  CHECK(issuer.Open(BundleClaims("[]"), 1).fault == BundleFault::kRollback);
  CHECK(issuer.Open(claims, 0, kNow + 3629).fault == BundleFault::kNone);
  CHECK(issuer.Open(claims, 0, kNow + 3630).fault == BundleFault::kExpired);
  CHECK(issuer.Open(BundleClaims("[]", ",\"ver\":-1")).fault == BundleFault::kMalformed);
}

TEST_CASE("a bundle denies by default, by rule and by what it cannot read") {
  Issuer issuer;
  const auto ask = [&](const std::string& perms, authz::RateLedger* calls = nullptr) {
    const auto opened = issuer.Open(BundleClaims(perms));
    REQUIRE(opened.fault == BundleFault::kNone);
    return Ask(opened.bundle, calls);
  };
  const std::string allow = R"({"resource":"k:*","actions":["use"]})";
  CHECK(ask("[]") == BundleAnswer::kDeny);
  CHECK(ask("[" + allow + "]") == BundleAnswer::kAllow);
  CHECK(ask("[" + allow + R"(,{"resource":"k:1","actions":["*"],"effect":"deny"}])") == BundleAnswer::kDeny);
  CHECK(ask("[" + allow + R"(,{"resource":"z","actions":["use"],"constraints":{"phase":1}}])") == BundleAnswer::kDeny);
  CHECK(ask(R"([{"resource":"k:*","actions":["use"],"constraints":{"requireApproval":true}}])") ==
        BundleAnswer::kNeedsOnline);
  const std::string counted = R"([{"resource":"k:*","actions":["use"],"constraints":{"maxCallsPerHour":1}}])";
  authz::RateLedger calls;
  CHECK(ask(counted) == BundleAnswer::kNeedsOnline);
  CHECK(ask(counted, &calls) == BundleAnswer::kAllow);
  CHECK(ask(counted, &calls) == BundleAnswer::kDeny);
}

}  // namespace
}  // namespace assay::token
