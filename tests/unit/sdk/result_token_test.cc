// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "tests/unit/sdk/counting_new.h"
#include "tests/unit/sdk/scene.h"

namespace assay::test {
namespace {

TEST_CASE("a genuine token is accepted and says what it holds") {
  for (const KeyType type : {KeyType::kP256, KeyType::kEd25519}) {
    Scene scene(type);
    ResultClaims claims = scene.attester.Claims(scene.request);
    claims.vector.instance_identity = 2;
    claims.vector.sourced_data = -3;
    claims.previous_device_id = "old";
    claims.caller = {true, Sha256(AsBytes("game"))};
    claims.gate = GateState::kEnforce;
    REQUIRE(scene.Verify(claims) == ASSAY_OK);
    const assay_result& r = scene.result;
    CHECK(r.code == ASSAY_OK);
    CHECK(r.tier == ASSAY_TIER_AFFIRMING);
    CHECK(r.trust_vector[ASSAY_TV_INSTANCE_IDENTITY] == 2);
    CHECK(r.trust_vector[ASSAY_TV_SOURCED_DATA] == -3);
    CHECK(r.device_id == claims.device_id);
    CHECK(std::string(r.previous_device_id) == "old");
    CHECK(r.weak_device_id == 1);
    CHECK(r.test == 1);
    CHECK(r.caller_measured == 1);
    CHECK(Equal(r.caller_digest, claims.caller.executable));
    CHECK(r.gate == ASSAY_GATE_ENFORCE);
    CHECK(r.runtime_anchor == ASSAY_ANCHOR_SELF_REPORTED);
    CHECK(r.reason_count == 1);
    CHECK(std::string(r.reasons[0]) == "test_mode");
    CHECK(r.expires_at_s == claims.expires_at);
    CHECK(r.next_attestation_s == claims.next_attestation);
    CHECK(r.has_host_block == 1);
    CHECK(r.host.reset_count == 1);
  }
}

// Each line changes one thing of an accepted token.
TEST_CASE("each claim that differs from what the server knows has its own code") {
  Scene scene;
  const auto with = [&scene](auto change) {
    ResultClaims claims = scene.attester.Claims(scene.request);
    change(claims);
    const assay_code code = scene.Verify(claims);
    CHECK(scene.result.code == code);
    if (code != ASSAY_OK && code != ASSAY_E_TIER) {
      assay_result empty{};
      empty.code = code;
      CHECK(std::memcmp(&scene.result, &empty, sizeof(empty)) == 0);  // nothing of a refused token gets out
    }
    return code;
  };
  CHECK(with([](ResultClaims&) {}) == ASSAY_OK);
  CHECK(with([](ResultClaims& c) { c.issuer = "https://other.example"; }) == ASSAY_E_ISSUER);
  CHECK(with([](ResultClaims& c) { c.audience = "other.example"; }) == ASSAY_E_AUDIENCE);
  CHECK(with([](ResultClaims& c) { c.audience = c.issuer; }) == ASSAY_E_VERIFIER_AUDIENCE);
  CHECK(with([](ResultClaims& c) { c.server_nonce[31] ^= 1; }) == ASSAY_E_NONCE);
  CHECK(with([](ResultClaims& c) { c.match = "match-2"; }) == ASSAY_E_MATCH);
  CHECK(with([](ResultClaims& c) { c.match.clear(); }) == ASSAY_E_MATCH);
  CHECK(with([](ResultClaims& c) { c.session_key_hash[0] ^= 1; }) == ASSAY_E_SESSION_KEY);
  CHECK(with([](ResultClaims& c) {
          c.issued_at -= 121;
          c.expires_at -= 120;
        }) == ASSAY_E_EXPIRED);
  CHECK(with([](ResultClaims& c) {
          c.issued_at += 10;
          c.expires_at += 10;
        }) == ASSAY_E_NOT_YET_VALID);
  CHECK(with([](ResultClaims& c) { c.expires_at = c.issued_at; }) == ASSAY_E_CLAIMS);
  CHECK(with([](ResultClaims& c) { c.token_id.clear(); }) == ASSAY_E_CLAIMS);
  CHECK(with([](ResultClaims& c) { c.tier = Tier::kWarning; }) == ASSAY_E_TIER);
  CHECK(scene.result.reason_count == 1);
  CHECK(with([](ResultClaims& c) { c.tier = Tier::kContraindicated; }) == ASSAY_E_TIER);
  CHECK(with([](ResultClaims& c) { c.tier = Tier::kNone; }) == ASSAY_E_TIER);
  scene.options.worst_tier = ASSAY_TIER_CONTRAINDICATED;
  CHECK(with([](ResultClaims& c) { c.tier = Tier::kContraindicated; }) == ASSAY_OK);
  CHECK(with([](ResultClaims& c) { c.tier = Tier::kNone; }) == ASSAY_E_TIER);
  scene.options.allow_test = 0;
  CHECK(with([](ResultClaims&) {}) == ASSAY_E_TEST_TOKEN);
  CHECK(with([](ResultClaims& c) { c.test = false; }) == ASSAY_OK);
}

TEST_CASE("a token without cnf, exp or another claim is refused") {
  Scene scene;
  const std::string text = EncodeResultClaims(scene.attester.Claims(scene.request));
  const std::string kid = JwkThumbprint(scene.attester.keys().signer.Public().value()).value();
  const auto without = [&](const std::string& name) {
    std::string changed = text;
    changed.replace(changed.find("\"" + name + "\":"), name.size() + 3, "\"other\":");
    return scene.Verify(SignJws(scene.attester.keys().signer, kid, kResultTokenType, changed).value());
  };
  CHECK(without("cnf") == ASSAY_E_NO_CNF);
  for (const char* name :
       {"exp", "iat", "iss", "aud", "jti", "eat_nonce", "eat_profile", "submods", "assay.match", "assay.caller"})
    CHECK(without(name) == ASSAY_E_CLAIMS);
}

TEST_CASE("a token that is no token of this verifier has its own code for each fault") {
  Scene scene;
  const Scene stranger;
  const std::string good = scene.attester.Sign(scene.attester.Claims(scene.request)).value();
  CHECK(scene.Verify(good) == ASSAY_OK);
  CHECK(scene.Verify(stranger.attester.Sign(stranger.attester.Claims(stranger.request)).value()) ==
        ASSAY_E_KEY_UNKNOWN);
  CHECK(scene.Verify(scene.attester.SignRevocations({}).value()) == ASSAY_E_TYPE);
  const std::string payload = EncodeResultClaims(scene.attester.Claims(scene.request));
  const PrivateKey& key = scene.attester.keys().signer;
  const std::string kid = JwkThumbprint(key.Public().value()).value();
  CHECK(scene.Verify(SignJws(key, "other", kResultTokenType, payload).value()) == ASSAY_E_KEY_UNKNOWN);
  const std::string tail = good.substr(good.find('.'));
  const auto with_header = [&](const std::string& header) { return scene.Verify(ToBase64Url(AsBytes(header)) + tail); };
  const std::string rest = "\"kid\":\"" + kid + R"(","typ":"ear+jwt")";
  CHECK(with_header(R"({"alg":"none",)" + rest + "}") == ASSAY_E_ALGORITHM);
  CHECK(with_header(R"({"alg":"HS256",)" + rest + "}") == ASSAY_E_ALGORITHM);
  CHECK(with_header(R"({"alg":"EdDSA",)" + rest + "}") == ASSAY_E_ALGORITHM);
  CHECK(with_header(R"({"alg":"ES256",)" + rest + R"(,"crit":["b64"]})") == ASSAY_E_CRITICAL);
  CHECK(with_header(R"({"alg":"ES256",)" + rest + R"(,"jku":"https://x.example"})") == ASSAY_E_EMBEDDED_KEY);
  CHECK(with_header(R"({"alg": "ES256",)" + rest + "}") == ASSAY_E_SIGNATURE);  // one space more
  CHECK(scene.Verify(std::string(ASSAY_MAX_TOKEN + 1, 'a')) == ASSAY_E_MALFORMED);
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = bad[i] == 'A' ? 'B' : 'A';
    CHECK(scene.Verify(bad) != ASSAY_OK);
    CHECK(scene.Verify(good.substr(0, i)) != ASSAY_OK);
  }
}

TEST_CASE("the nonce has an age that the server measures itself") {
  Scene scene;
  const std::string token = scene.attester.Sign(scene.attester.Claims(scene.request)).value();
  const auto at = [&](std::int64_t issued, std::int64_t now) {
    scene.options.nonce_issued_at_ms = issued;
    scene.options.now_ms = now;
    return scene.Verify(token);
  };
  CHECK(at(kNow - 60000, kNow + 60000) == ASSAY_OK);
  CHECK(at(kNow - 60001, kNow + 60000) == ASSAY_E_NONCE_AGE);
  CHECK(at(kNow + 1, kNow) == ASSAY_E_NONCE_AGE);
  scene.options.max_nonce_age_ms = 1000;
  CHECK(at(kNow, kNow + 1000) == ASSAY_OK);
  CHECK(at(kNow, kNow + 1001) == ASSAY_E_NONCE_AGE);
  scene.options.max_nonce_age_ms = 3600000;
  CHECK(at(kNow, kNow + 119999) == ASSAY_OK);
  CHECK(at(kNow, kNow + 120000) == ASSAY_E_EXPIRED);
  scene.options.leeway_ms = 5000;
  CHECK(at(kNow, kNow + 124999) == ASSAY_OK);
  CHECK(at(kNow, kNow + 125000) == ASSAY_E_EXPIRED);
  CHECK(at(kNow - 5000, kNow - 5000) == ASSAY_OK);
  CHECK(at(kNow - 5001, kNow - 5001) == ASSAY_E_NOT_YET_VALID);
}

TEST_CASE("every required argument that is missing refuses") {
  const auto with = [](auto change) {
    Scene scene;
    change(scene.options);
    return scene.Verify(scene.attester.Claims(scene.request));
  };
  CHECK(with([](assay_result_options&) {}) == ASSAY_OK);
  CHECK(with([](assay_result_options& o) { o.struct_size = 0; }) == ASSAY_E_ARGUMENT);
  CHECK(with([](assay_result_options& o) { o.issuer = nullptr; }) == ASSAY_E_ARGUMENT);
  CHECK(with([](assay_result_options& o) { o.issuer = ""; }) == ASSAY_E_ARGUMENT);
  CHECK(with([](assay_result_options& o) { o.audience = nullptr; }) == ASSAY_E_ARGUMENT);
  CHECK(with([](assay_result_options& o) { o.match = nullptr; }) == ASSAY_E_ARGUMENT);
  CHECK(with([](assay_result_options& o) { o.server_nonce = nullptr; }) == ASSAY_E_ARGUMENT);
  CHECK(with([](assay_result_options& o) { o.session_key_hash = nullptr; }) == ASSAY_E_ARGUMENT);
  CHECK(with([](assay_result_options& o) { o.nonce_issued_at_ms = 0; }) == ASSAY_E_ARGUMENT);
  CHECK(with([](assay_result_options& o) { o.now_ms = 0; }) == ASSAY_E_ARGUMENT);
  CHECK(with([](assay_result_options& o) { o.now_ms = INT64_MAX; }) == ASSAY_E_ARGUMENT);
  CHECK(with([](assay_result_options& o) { o.leeway_ms = 300001; }) == ASSAY_E_ARGUMENT);
  CHECK(with([](assay_result_options& o) { o.worst_tier = 1; }) == ASSAY_E_ARGUMENT);
  Scene scene;
  CHECK(assay_verify_result_token(scene.keys.get(), nullptr, 1, &scene.options, &scene.result) == ASSAY_E_ARGUMENT);
  CHECK(assay_verify_result_token(nullptr, "a", 1, &scene.options, &scene.result) == ASSAY_E_ARGUMENT);
  CHECK(assay_verify_result_token(scene.keys.get(), "a", 1, nullptr, &scene.result) == ASSAY_E_ARGUMENT);
  CHECK(assay_verify_result_token(scene.keys.get(), "a", 1, &scene.options, nullptr) == ASSAY_E_ARGUMENT);
}

TEST_CASE("a revoked token or device is refused and a list past its end refuses all") {
  Scene scene;
  const ResultClaims claims = scene.attester.Claims(scene.request);
  const auto with = [&](const RevocationList& list) {
    const std::string jws = scene.attester.SignRevocations(list).value();
    assay_revocations* handle = nullptr;
    REQUIRE(assay_revocations_parse(scene.keys.get(), jws.data(), jws.size(), &handle) == ASSAY_OK);
    const Revocations owned(handle);
    CHECK(assay_revocations_number(handle) == list.number);
    CHECK(assay_revocations_expires_s(handle) == list.expires_at);
    scene.options.revocations = handle;
    const assay_code code = scene.Verify(claims);
    scene.options.revocations = nullptr;
    return code;
  };
  const std::int64_t now_s = kNow / 1000;
  CHECK(with({now_s, now_s + 60, 1, {"b", "a"}, {"c"}}) == ASSAY_OK);
  CHECK(with({now_s, now_s + 60, 2, {"zz", claims.token_id, "a"}, {}}) == ASSAY_E_REVOKED);
  CHECK(with({now_s, now_s + 60, 3, {}, {"zz", "a", claims.device_id}}) == ASSAY_E_REVOKED);
  CHECK(with({now_s - 60, now_s, 4, {}, {}}) == ASSAY_E_REVOCATIONS_STALE);
  const std::string token = scene.attester.Sign(claims).value();
  assay_revocations* handle = nullptr;
  CHECK(assay_revocations_parse(scene.keys.get(), token.data(), token.size(), &handle) == ASSAY_E_TYPE);
  std::string jws = scene.attester.SignRevocations({now_s, now_s + 60, 1, {}, {}}).value();
  jws[jws.size() - 10] = jws[jws.size() - 10] == 'A' ? 'B' : 'A';
  CHECK(assay_revocations_parse(scene.keys.get(), jws.data(), jws.size(), &handle) == ASSAY_E_SIGNATURE);
  CHECK(handle == nullptr);
}

TEST_CASE("verifying allocates nothing after a thread's first call, also when it refuses") {
  Scene scene;
  const std::string good = scene.attester.Sign(scene.attester.Claims(scene.request)).value();
  ResultClaims other = scene.attester.Claims(scene.request);
  other.match = "other";
  const std::string refused = scene.attester.Sign(other).value();
  CHECK(scene.Verify(good) == ASSAY_OK);
  const std::size_t before = Allocations();
  for (int i = 0; i < 50; ++i) {
    if (scene.Verify(good) != ASSAY_OK) FAIL("refused");
    if (scene.Verify(refused) != ASSAY_E_MATCH) FAIL("accepted");
  }
  CHECK(Allocations() == before);
  const std::size_t counted = Allocations();
  const Buffer seen(10);
  CHECK(Allocations() == counted + 1);  // the counter counts
}

TEST_CASE("one key set serves many threads at once") {
  Scene scene;
  const std::string good = scene.attester.Sign(scene.attester.Claims(scene.request)).value();
  std::string bad = good;
  bad[good.size() / 2] = bad[good.size() / 2] == 'A' ? 'B' : 'A';
  std::atomic<int> faults{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      assay_result result;
      for (int i = 0; i < 50; ++i) {
        if (assay_verify_result_token(scene.keys.get(), good.data(), good.size(), &scene.options, &result) != ASSAY_OK)
          ++faults;
        if (assay_verify_result_token(scene.keys.get(), bad.data(), bad.size(), &scene.options, &result) == ASSAY_OK)
          ++faults;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(faults == 0);
}

TEST_CASE("nonce, key hash, codes and key sets keep their contracts") {
  const Buffer key(32, 7);
  const Digest channel = Sha256(AsBytes("channel"));
  Digest nonce;
  REQUIRE(assay_make_server_nonce(key.data(), key.size(), "title", "match", channel.data(), nonce.data()) == ASSAY_OK);
  CHECK(CheckServerNonce(key, "title", "match", nonce, channel) == NonceCheck::kGenuine);
  Digest second;
  CHECK(assay_make_server_nonce(key.data(), key.size(), "title", "match", channel.data(), second.data()) == ASSAY_OK);
  CHECK(second != nonce);
  CHECK(assay_make_server_nonce(key.data(), 15, "title", "match", channel.data(), nonce.data()) == ASSAY_E_ARGUMENT);
  CHECK(assay_make_server_nonce(key.data(), key.size(), "", "match", channel.data(), nonce.data()) == ASSAY_E_ARGUMENT);
  CHECK(assay_make_server_nonce(key.data(), key.size(), "title", nullptr, channel.data(), nonce.data()) ==
        ASSAY_E_ARGUMENT);
  Digest hash;
  CHECK(assay_session_key_hash(key.data(), key.size(), hash.data()) == ASSAY_OK);
  CHECK(hash == Sha256(key));
  CHECK(assay_session_key_hash(key.data(), 0, hash.data()) == ASSAY_E_ARGUMENT);
  CHECK(std::string(assay_code_name(ASSAY_E_SESSION_KEY)) == "session_key");
  CHECK(std::string(assay_code_name(9999)) == "unknown");
  CHECK(std::string(assay_version()) == ASSAY_VERSION_STRING);
  assay_keyset* handle = nullptr;
  CHECK(assay_keyset_parse("{}", 2, &handle) == ASSAY_E_MALFORMED);
  CHECK(assay_keyset_parse(nullptr, 2, &handle) == ASSAY_E_ARGUMENT);
  CHECK(handle == nullptr);
  CHECK(assay_keyset_count(nullptr) == 0);
  assay_keyset_free(nullptr);
}

}  // namespace
}  // namespace assay::test
