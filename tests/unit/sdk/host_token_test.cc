// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstring>
#include <functional>

#include "sdk/core/runtime_log.h"
#include "sdk/tools/soft_quote.h"
#include "tests/unit/sdk/counting_new.h"
#include "tests/unit/sdk/scene.h"

namespace assay::test {
namespace {

// All that goes into a host token, before it is quoted, after that, and after it is signed: each stage may be changed.
struct Forge {
  Buffer values = Buffer(9 * 32, 0);
  Buffer entries;
  HostToken token;
  tools::SoftQuote quote;
  Buffer attest, signature;
  bool rebind = true;  // extraData follows the body
  std::function<void(Forge&)> before, after_quote, after_signature;

  explicit Forge(const Scene& scene) {
    const auto& request = scene.host_request;
    token.attester = Sha256(scene.attester.keys().aik.Public().value().Spki());
    token.server_nonce = request.server_nonce;
    token.session_key_hash = request.session_key_hash;
    token.pcr_mask = 0x40FF;
    quote.clock = {static_cast<std::uint64_t>(request.now_ms), 1, 0, true};
    quote.selections = {{tpm::Alg::kSha256, 0x40FF}};
  }
  void Append(const Buffer& entry) {
    Writer framed;
    framed.U16Le(static_cast<std::uint16_t>(entry.size()));
    framed.Put(entry);
    entries.insert(entries.end(), framed.buffer().begin(), framed.buffer().end());
    ++token.entry_count;
  }
  void Extend(const Buffer& entry) {
    Digest value;
    CopyBytes(Bytes(values).subspan(8 * 32), value);
    CopyBytes(ExtendWithEntry(value, entry), MutableBytes(values).subspan(8 * 32));
  }
  Buffer Make(const Scene& scene) {
    if (before) before(*this);
    token.pcr_values = values;
    token.entries = entries;
    if (rebind) quote.extra_data = ToBuffer(ExtraData(token.tag, token.server_nonce, HostTokenBodyDigest(token), {}));
    if (quote.pcr_digest.empty()) quote.pcr_digest = ToBuffer(Sha256(values));
    if (after_quote) after_quote(*this);
    token.pcr_values = values;
    token.entries = entries;
    attest = tools::EncodeSoftQuote(quote);
    signature = tools::SignSoftQuote(scene.attester.keys().aik, scene.attester.aik_scheme(), attest).value();
    if (after_signature) after_signature(*this);
    token.attest = attest;
    token.signature = signature;
    Buffer out(limits::kHostToken);
    out.resize(SerializeHostToken(token, out).value());
    return out;
  }
};

assay_code Verify(const Scene& scene, const assay_attester* attester, Bytes token, assay_host_result* out = nullptr) {
  return assay_verify_host_token(attester, token.data(), token.size(), &scene.host_options, out);
}

TEST_CASE("a genuine host token is accepted for RSA and for P-256 attestation keys") {
  for (const KeyType aik : {KeyType::kP256, KeyType::kRsa2048}) {
    Scene scene(KeyType::kP256, aik);
    const Attester attester = scene.Prepare();
    assay_host_result result;
    CHECK(Verify(scene, attester.get(), scene.attester.MakeHostToken(scene.host_request).value(), &result) == ASSAY_OK);
    CHECK(result.clock_ms == static_cast<std::uint64_t>(scene.host_request.now_ms));
    CHECK(result.entry_count == 0);
    CHECK(Verify(scene, attester.get(), Forge(scene).Make(scene)) == ASSAY_OK);
  }
}

TEST_CASE("the scheme is the record's: an RSA key signs with that one only") {
  Scene scene(KeyType::kP256, KeyType::kRsa2048);
  for (const auto recorded : {SignatureScheme::kRsaSsaSha256, SignatureScheme::kRsaPssSha256}) {
    ResultClaims claims = scene.attester.Claims(scene.request);
    claims.host_token->aik_scheme = recorded;
    REQUIRE(scene.Verify(claims) == ASSAY_OK);
    assay_attester* handle = nullptr;
    REQUIRE(assay_result_prepare_host_tokens(&scene.result, &handle) == ASSAY_OK);
    const Attester attester(handle);
    for (const auto used : {SignatureScheme::kRsaSsaSha256, SignatureScheme::kRsaPssSha256}) {
      Forge forge(scene);
      forge.after_signature = [&](Forge& f) {
        f.signature = tools::SignSoftQuote(scene.attester.keys().aik, used, f.attest).value();
      };
      CHECK(Verify(scene, attester.get(), forge.Make(scene)) == (used == recorded ? ASSAY_OK : ASSAY_E_SIGNATURE));
    }
  }
}

TEST_CASE("each field that is not what the server and the result say has its own code") {
  Scene scene;
  const Attester attester = scene.Prepare();
  const auto before = [&](auto change) {
    Forge forge(scene);
    forge.before = change;
    return Verify(scene, attester.get(), forge.Make(scene));
  };
  CHECK(before([](Forge&) {}) == ASSAY_OK);
  CHECK(before([](Forge& f) { f.token.tag = QuoteTag::kHeartbeat; }) == ASSAY_E_TAG);
  CHECK(before([](Forge& f) { f.token.server_nonce[0] ^= 1; }) == ASSAY_E_NONCE);
  CHECK(before([](Forge& f) { f.token.session_key_hash[0] ^= 1; }) == ASSAY_E_SESSION_KEY);
  CHECK(before([](Forge& f) { f.token.attester[0] ^= 1; }) == ASSAY_E_ATTESTER);
  CHECK(before([](Forge& f) { f.token.sequence = 1; }) == ASSAY_E_SEQUENCE);
  CHECK(before([](Forge& f) { f.token.gate = GateState::kEnforce; }) == ASSAY_E_GATE);
  CHECK(before([](Forge& f) { f.token.policy[0] ^= 1; }) == ASSAY_E_GATE_POLICY);
  CHECK(before([](Forge& f) { f.token.policy_version = 1; }) == ASSAY_E_GATE_POLICY);
  CHECK(before([](Forge& f) { f.quote.magic = 0; }) == ASSAY_E_MAGIC);
  CHECK(before([](Forge& f) { f.quote.type = static_cast<std::uint16_t>(tpm::AttestType::kCertify); }) ==
        ASSAY_E_ATTEST_TYPE);
  CHECK(before([](Forge& f) { f.quote.clock.reset_count = 2; }) == ASSAY_E_RESET_COUNT);
  CHECK(before([](Forge& f) { f.quote.clock.reset_count = 0; }) == ASSAY_E_RESET_COUNT);
  CHECK(before([](Forge& f) { f.quote.clock.clock = kNow - 1; }) == ASSAY_E_CLOCK);
  CHECK(before([](Forge& f) { f.quote.clock.clock = kNow; }) == ASSAY_OK);
  CHECK(before([](Forge& f) { f.quote.selections = {{tpm::Alg::kSha256, 0x40FE}}; }) == ASSAY_E_SELECTION);
  CHECK(before([](Forge& f) { f.quote.selections = {{tpm::Alg::kSha1, 0x40FF}}; }) == ASSAY_E_SELECTION);
  CHECK(before([](Forge& f) { f.quote.selections = {}; }) == ASSAY_E_SELECTION);
  CHECK(before([](Forge& f) { f.quote.selections.push_back({tpm::Alg::kSha384, 1}); }) == ASSAY_E_SELECTION);
  CHECK(before([](Forge& f) { f.quote.pcr_digest = ToBuffer(Sha256(AsBytes("x"))); }) == ASSAY_E_PCR_DIGEST);
  CHECK(before([](Forge& f) { f.values[0] ^= 1; }) == ASSAY_E_BOOT_PCRS);
  CHECK(before([](Forge& f) { f.values[8 * 32] ^= 1; }) == ASSAY_E_PCR14);
  // fewer PCRs, in the signed bytes and in the list alike
  CHECK(before([](Forge& f) {
          f.token.pcr_mask = 0x40FE;
          f.quote.selections = {{tpm::Alg::kSha256, 0x40FE}};
          f.values.resize(8 * 32);
        }) == ASSAY_E_SELECTION);
  // without PCR 14
  CHECK(before([](Forge& f) {
          f.token.pcr_mask = 0xFF;
          f.quote.selections = {{tpm::Alg::kSha256, 0xFF}};
          f.values.resize(8 * 32);
        }) == ASSAY_E_SELECTION);
}

TEST_CASE("what was changed after the quote or after the signature is refused") {
  Scene scene;
  const Attester attester = scene.Prepare();
  const auto after_quote = [&](auto change) {
    Forge forge(scene);
    forge.after_quote = change;
    return Verify(scene, attester.get(), forge.Make(scene));
  };
  CHECK(after_quote([](Forge& f) { f.quote.extra_data[0] ^= 1; }) == ASSAY_E_BINDING);
  CHECK(after_quote([](Forge& f) { f.quote.extra_data.pop_back(); }) == ASSAY_E_BINDING);
  CHECK(after_quote([](Forge& f) {
          f.Append(EncodeRuntimeEntry({.kind = EntryKind::kBatch, .digests = {Digest{}}}));
        }) == ASSAY_E_BINDING);
  CHECK(after_quote([](Forge& f) { f.values[3] ^= 1; }) == ASSAY_E_PCR_DIGEST);
  const auto after_signature = [&](auto change) {
    Forge forge(scene);
    forge.after_signature = change;
    return Verify(scene, attester.get(), forge.Make(scene));
  };
  for (std::size_t bit = 0; bit < 8 * 60; ++bit) {
    const assay_code code =
        after_signature([bit](Forge& f) { f.signature[bit / 8] ^= static_cast<std::uint8_t>(1U << bit % 8); });
    CHECK(code == ASSAY_E_SIGNATURE);
  }
  CHECK(after_signature([](Forge& f) { f.attest.back() ^= 1; }) == ASSAY_E_SIGNATURE);
  CHECK(after_signature([](Forge& f) { f.attest.pop_back(); }) == ASSAY_E_MALFORMED);
  CHECK(after_signature([](Forge& f) { f.attest.push_back(0); }) == ASSAY_E_MALFORMED);
  CHECK(after_signature([](Forge& f) {
          f.quote.type = 0x8017;
          f.attest = tools::EncodeSoftQuote(f.quote);
        }) != ASSAY_OK);
  // the same quote signed by another key, or with another scheme's name
  const PrivateKey other = PrivateKey::Generate(KeyType::kP256).value();
  CHECK(after_signature([&](Forge& f) {
          f.signature = tools::SignSoftQuote(other, SignatureScheme::kEcdsaP256Sha256, f.attest).value();
        }) == ASSAY_E_SIGNATURE);
  const PrivateKey rsa = PrivateKey::Generate(KeyType::kRsa2048).value();
  CHECK(after_signature([&](Forge& f) {
          f.signature = tools::SignSoftQuote(rsa, SignatureScheme::kRsaSsaSha256, f.attest).value();
        }) == ASSAY_E_SIGNATURE);
}

TEST_CASE("a token is stale by the server's own clock and never before its nonce") {
  Scene scene;
  const Attester attester = scene.Prepare();
  const Buffer token = scene.attester.MakeHostToken(scene.host_request).value();
  const auto at = [&](std::int64_t issued, std::int64_t now, std::uint32_t max_age = 0) {
    scene.host_options.nonce_issued_at_ms = issued;
    scene.host_options.now_ms = now;
    scene.host_options.max_age_ms = max_age;
    return Verify(scene, attester.get(), token);
  };
  CHECK(at(kNow, kNow + 10000) == ASSAY_OK);
  CHECK(at(kNow, kNow + 10001) == ASSAY_E_NONCE_AGE);
  CHECK(at(kNow, kNow + 1001, 1000) == ASSAY_E_NONCE_AGE);
  CHECK(at(kNow + 1, kNow) == ASSAY_E_NONCE_AGE);
  CHECK(at(kNow + 119000, kNow + 120000) == ASSAY_E_EXPIRED);  // the result's end
  CHECK(at(0, kNow) == ASSAY_E_ARGUMENT);
  CHECK(at(kNow, 0) == ASSAY_E_ARGUMENT);
}

TEST_CASE("the channel must be the result's own, not only the token's") {
  Scene scene;
  const Attester attester = scene.Prepare();
  const Digest other = Sha256(AsBytes("other channel"));
  scene.host_request.session_key_hash = other;
  scene.host_options.session_key_hash = other.data();
  CHECK(Verify(scene, attester.get(), scene.attester.MakeHostToken(scene.host_request).value()) == ASSAY_E_SESSION_KEY);
}

TEST_CASE("PCR 14 moves only by entries that the token carries and the result allows") {
  Scene scene;
  ResultClaims claims = scene.attester.Claims(scene.request);
  claims.host_token->allowed_entries = 1U << static_cast<unsigned>(EntryKind::kBatch);
  REQUIRE(scene.Verify(claims) == ASSAY_OK);
  assay_attester* handle = nullptr;
  REQUIRE(assay_result_prepare_host_tokens(&scene.result, &handle) == ASSAY_OK);
  const Attester attester(handle);
  const Buffer batch = EncodeRuntimeEntry(
      {.index = 4, .kind = EntryKind::kBatch, .digests = {Sha256(AsBytes("a")), Sha256(AsBytes("b"))}});
  const Buffer release = EncodeRuntimeEntry({.index = 5, .kind = EntryKind::kRelease, .digests = {}});
  const auto with = [&](auto change, assay_host_result* out = nullptr) {
    Forge forge(scene);
    forge.before = change;
    return Verify(scene, attester.get(), forge.Make(scene), out);
  };
  assay_host_result result;
  CHECK(with(
            [&](Forge& f) {
              f.Append(batch);
              f.Extend(batch);
            },
            &result) == ASSAY_OK);
  CHECK(result.entry_count == 1);
  CHECK(result.entry_kinds == 1U << static_cast<unsigned>(EntryKind::kBatch));
  CHECK(with([&](Forge& f) {
          for (int i = 0; i < 3; ++i) {
            f.Append(batch);
            f.Extend(batch);
          }
        }) == ASSAY_OK);
  CHECK(with([&](Forge& f) { f.Append(batch); }) == ASSAY_E_PCR14);
  CHECK(with([&](Forge& f) { f.Extend(batch); }) == ASSAY_E_PCR14);
  CHECK(with([&](Forge& f) {
          f.Append(batch);
          f.Append(batch);
          f.Extend(batch);
        }) == ASSAY_E_PCR14);
  CHECK(with([&](Forge& f) {
          f.Append(release);
          f.Extend(release);
        }) == ASSAY_E_ENTRY_KIND);
  CHECK(with(
            [&](Forge& f) {
              f.Append(batch);
              f.Extend(batch);
              f.Append(release);
              f.Extend(release);
            },
            &result) == ASSAY_E_ENTRY_KIND);
  CHECK(result.entry_kinds == 0);
  const Buffer junk = {0x01, 0x02};
  CHECK(with([&](Forge& f) {
          f.Append(junk);
          f.Extend(junk);
        }) == ASSAY_E_ENTRY_KIND);
}

TEST_CASE("host tokens need an accepted result whose attestation key is sound") {
  Scene scene;
  assay_attester* handle = nullptr;
  const auto prepare = [&](auto change) {
    ResultClaims claims = scene.attester.Claims(scene.request);
    change(claims);
    (void)scene.Verify(claims);
    const assay_code code = assay_result_prepare_host_tokens(&scene.result, &handle);
    assay_attester_free(handle);
    return code;
  };
  CHECK(prepare([](ResultClaims&) {}) == ASSAY_OK);
  CHECK(prepare([](ResultClaims& c) { c.host_token.reset(); }) == ASSAY_E_NO_HOST_TOKENS);
  CHECK(prepare([](ResultClaims& c) { c.tier = Tier::kContraindicated; }) == ASSAY_E_NO_HOST_TOKENS);
  CHECK(prepare([](ResultClaims& c) { c.match = "x"; }) == ASSAY_E_NO_HOST_TOKENS);
  CHECK(prepare([](ResultClaims& c) { c.attester[0] ^= 1; }) == ASSAY_E_AIK);
  CHECK(prepare([](ResultClaims& c) { c.host_token->aik_scheme = SignatureScheme::kRsaSsaSha256; }) == ASSAY_E_AIK);
  CHECK(prepare([](ResultClaims& c) { c.host_token->boot_pcr_mask |= 1U << 14; }) == ASSAY_E_AIK);
  CHECK(prepare([](ResultClaims& c) {
          c.host_token->aik_spki.back() ^= 1;
          c.attester = Sha256(c.host_token->aik_spki);
        }) == ASSAY_E_AIK);
  CHECK(assay_result_prepare_host_tokens(nullptr, &handle) == ASSAY_E_ARGUMENT);
  CHECK(assay_result_prepare_host_tokens(&scene.result, nullptr) == ASSAY_E_ARGUMENT);
}

TEST_CASE("a host token cut at any byte, or with any bit flipped, is refused") {
  Scene scene;
  const Attester attester = scene.Prepare();
  const Buffer token = scene.attester.MakeHostToken(scene.host_request).value();
  for (std::size_t size = 0; size < token.size(); ++size)
    CHECK(Verify(scene, attester.get(), Bytes(token).first(size)) == ASSAY_E_MALFORMED);
  for (std::size_t bit = 0; bit < token.size() * 8; ++bit) {
    Buffer bad = token;
    bad[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
    CHECK(Verify(scene, attester.get(), bad) != ASSAY_OK);
  }
}

TEST_CASE("verifying a host token allocates nothing of ours") {
  Scene scene;
  const Attester attester = scene.Prepare();
  const Buffer token = scene.attester.MakeHostToken(scene.host_request).value();
  Buffer foreign = token;
  foreign[50] ^= 1;
  CHECK(Verify(scene, attester.get(), token) == ASSAY_OK);
  const std::size_t before = Allocations();
  for (int i = 0; i < 20; ++i) {
    if (Verify(scene, attester.get(), token) != ASSAY_OK) FAIL("refused");
    if (Verify(scene, attester.get(), foreign) != ASSAY_E_NONCE) FAIL("accepted");
  }
  CHECK(Allocations() == before);
}

TEST_CASE("heartbeats go forward in sequence and clock and count once") {
  Scene scene;
  const Attester attester = scene.Prepare();
  assay_heartbeat state;
  assay_host_result result;
  REQUIRE(Verify(scene, attester.get(), scene.attester.MakeHostToken(scene.host_request).value(), &result) == ASSAY_OK);
  REQUIRE(assay_heartbeat_start(&state, attester.get(), &result) == ASSAY_OK);
  const auto verify = [&](const tools::SoftHostRequest& request, std::int64_t now) {
    const Buffer token = scene.attester.MakeHostToken(request).value();
    return assay_heartbeat_verify(&state, attester.get(), token.data(), token.size(), scene.options.session_key_hash,
                                  now, 0, &result);
  };
  tools::SoftHostRequest request = scene.host_request;
  request.heartbeat = true;
  CHECK(verify(request, kNow + 3000) == ASSAY_E_SEQUENCE);  // no challenge is open
  for (std::uint64_t beat = 1; beat <= 3; ++beat) {
    const std::int64_t now = kNow + 3000 + static_cast<std::int64_t>(beat) * 1000;
    REQUIRE(assay_heartbeat_challenge(&state, now) == ASSAY_OK);
    CHECK(state.sequence == beat);
    CopyBytes(state.nonce, request.server_nonce);
    request.sequence = beat;
    request.now_ms = now;
    tools::SoftHostRequest wrong = request;
    wrong.sequence = beat - 1;
    CHECK(verify(wrong, now) == ASSAY_E_SEQUENCE);
    wrong = request;
    wrong.heartbeat = false;
    CHECK(verify(wrong, now) == ASSAY_E_TAG);
    wrong = request;
    wrong.now_ms = static_cast<std::int64_t>(state.clock_ms);
    CHECK(verify(wrong, now) == ASSAY_E_CLOCK);
    CHECK(verify(request, now + 10001) == ASSAY_E_NONCE_AGE);
    CHECK(verify(request, now + 5) == ASSAY_OK);
    CHECK(result.sequence == beat);
    CHECK(verify(request, now + 6) == ASSAY_E_SEQUENCE);  // counted already
  }
  REQUIRE(assay_heartbeat_challenge(&state, kNow + 9000) == ASSAY_OK);
  request.sequence = state.sequence;
  CHECK(verify(request, kNow + 9000) == ASSAY_E_NONCE);  // the one before
  CHECK(assay_heartbeat_start(&state, nullptr, nullptr) == ASSAY_E_ARGUMENT);
  CHECK(assay_heartbeat_challenge(&state, 0) == ASSAY_E_ARGUMENT);
  CHECK(assay_heartbeat_start(&state, attester.get(), nullptr) == ASSAY_OK);
}

TEST_CASE("every required argument of a host token's check that is missing refuses") {
  Scene scene;
  const Attester attester = scene.Prepare();
  const Buffer token = scene.attester.MakeHostToken(scene.host_request).value();
  const auto with = [&](auto change) {
    assay_host_token_options options = scene.host_options;
    change(options);
    return assay_verify_host_token(attester.get(), token.data(), token.size(), &options, nullptr);
  };
  CHECK(with([](assay_host_token_options&) {}) == ASSAY_OK);
  CHECK(with([](assay_host_token_options& o) { o.struct_size = 1; }) == ASSAY_E_ARGUMENT);
  CHECK(with([](assay_host_token_options& o) { o.server_nonce = nullptr; }) == ASSAY_E_ARGUMENT);
  CHECK(with([](assay_host_token_options& o) { o.session_key_hash = nullptr; }) == ASSAY_E_ARGUMENT);
  CHECK(assay_verify_host_token(nullptr, token.data(), token.size(), &scene.host_options, nullptr) == ASSAY_E_ARGUMENT);
  CHECK(assay_verify_host_token(attester.get(), nullptr, 0, &scene.host_options, nullptr) == ASSAY_E_ARGUMENT);
  CHECK(assay_verify_host_token(attester.get(), token.data(), token.size(), nullptr, nullptr) == ASSAY_E_ARGUMENT);
}

}  // namespace
}  // namespace assay::test
