// SPDX-License-Identifier: Apache-2.0
#include "verifier/token/result_issuer.h"

#include <doctest/doctest.h>

namespace assay::token {
namespace {

struct Case {
  Secret title_key = Secret::CopyOf(Buffer(32, 7));
  config::Policy policy;
  TokenRequest request;
  ResultIssuer issuer = ResultIssuer::Create({.signing = PrivateKey::Generate(KeyType::kP256).value(),
                                              .also_published = {},
                                              .device_master = Secret::CopyOf(Buffer(32, 9)),
                                              .device_key_version = 1},
                                             "https://verifier")
                            .value();
  Case() {
    config::Title title;
    title.audience = "title-a";
    title.tenant = "studio";
    title.executables = {Sha256(AsBytes("game"))};
    title.key = Secret::CopyOf(Buffer(32, 7));
    policy.titles.push_back(std::move(title));
    request.audience = "title-a";
    request.match = "m1";
    request.session_key_hash = Sha256(AsBytes("key"));
    request.server_nonce = Nonce();
  }
  Digest Nonce() const {
    return MakeServerNonce(title_key.view(), request.audience, request.match, Buffer(16, 1), request.session_key_hash);
  }
  std::string Refusal() const {
    const auto outcome = ResultIssuer::Authorise(request, policy);
    const auto* refusal = std::get_if<ErrorReply>(&outcome);
    return refusal == nullptr ? "" : refusal->code;
  }
};

TEST_CASE("an unmeasured caller needs a nonce made with the title's key for this match and key") {
  Case c;
  CHECK(c.Refusal() == "");
  c.request.server_nonce[20] ^= 1;
  CHECK(c.Refusal() == "audience_not_authorised");
  c.request.server_nonce = c.Nonce();
  c.request.match = "m2";
  CHECK(c.Refusal() == "audience_not_authorised");
  c.request.match = "m1";
  c.request.session_key_hash = Sha256(AsBytes("another player's key"));
  CHECK(c.Refusal() == "audience_not_authorised");
}

TEST_CASE("a measured caller must be listed when its nonce is foreign") {
  Case c;
  c.request.server_nonce = {};
  c.request.caller = {.measured = true, .executable = Sha256(AsBytes("game"))};
  CHECK(c.Refusal() == "");
  c.request.caller.executable = Sha256(AsBytes("cheat"));
  CHECK(c.Refusal() == "audience_not_authorised");
  c.request.audience = "title-b";
  CHECK(c.Refusal() == "unknown_audience");
}

TEST_CASE("a title without a key takes listed executables only") {
  Case c;
  c.policy.titles[0].key = Secret();
  c.request.server_nonce =
      MakeServerNonce({}, c.request.audience, c.request.match, Buffer(16, 1), c.request.session_key_hash);
  CHECK(c.Refusal() == "audience_not_authorised");
}

TEST_CASE("a token verifies under the published keys and says what was asked") {
  Case c;
  RuntimeEvidence runtime;
  appraisal::Facts facts;
  facts.runtime = &runtime;
  for (const std::uint8_t pcr : {std::uint8_t{0}, std::uint8_t{7}, std::uint8_t{14}})
    facts.pcrs[pcr] = Sha256(Bytes(&pcr, 1));
  appraisal::Verdict verdict;
  verdict.tier = Tier::kAffirming;
  const Buffer spki = PrivateKey::Generate(KeyType::kP256).value().Public().value().Spki();
  const ResultSubject subject{.ek_spki_digest = Sha256(AsBytes("ek")),
                              .weak_device_id = false,
                              .attester = Sha256(spki),
                              .aik_spki = spki,
                              .aik_scheme = SignatureScheme::kEcdsaP256Sha256,
                              .policy = Sha256(AsBytes("policy")),
                              .clock = {.clock = 77, .reset_count = 3, .restart_count = 0, .safe = true},
                              .now = 1000,
                              .next_attestation = 1060};
  const Issued issued = c.issuer.Issue(c.policy.titles[0], c.request, verdict, facts, subject).value();
  const KeySet keys = KeySet::ParseJwks(c.issuer.jwks()).value();
  Buffer scratch(issued.token.size());
  const JwsCheck check = VerifyJws(keys, issued.token, kResultTokenType, scratch);
  REQUIRE(check.fault == JwsFault::kNone);
  const ResultClaims claims = DecodeResultClaims(check.jws.payload).value();
  CHECK(claims.audience == "title-a");
  CHECK(claims.match == "m1");
  CHECK(claims.appraisal_policy == "policy:sha256:" + ToHex(Sha256(AsBytes("policy"))));
  CHECK_FALSE(claims.verifier_build.empty());
  CHECK(claims.session_key_hash == c.request.session_key_hash);
  CHECK(claims.server_nonce == c.request.server_nonce);
  CHECK(claims.expires_at == 1300);
  CHECK_FALSE(claims.host_token.has_value());
  c.policy.titles[0].host_tokens = true;
  const Issued with = c.issuer.Issue(c.policy.titles[0], c.request, verdict, facts, subject).value();
  Buffer more(with.token.size());
  const ResultClaims host = DecodeResultClaims(VerifyJws(keys, with.token, kResultTokenType, more).jws.payload).value();
  REQUIRE(host.host_token.has_value());
  CHECK(host.host_token->boot_pcr_mask == 0x81);
  CHECK(host.host_token->pcr14 == *facts.pcrs[14]);
  CHECK(host.host_token->boot_pcr_digest == Sha256({*facts.pcrs[0], *facts.pcrs[7]}));
  CHECK(host.host_token->clock_ms == 77);
  CHECK(host.host_token->aik_scheme == SignatureScheme::kEcdsaP256Sha256);
}

TEST_CASE("a key that is published twice stands in the set once") {
  const PrivateKey signing = PrivateKey::Generate(KeyType::kP256).value();
  IssuerKeys keys{.signing = PrivateKey::FromPem(AsText(signing.Pem().view())).value(),
                  .also_published = {},
                  .device_master = Secret::CopyOf(Buffer(32, 9)),
                  .device_key_version = 1};
  keys.also_published.push_back(signing.Public().value());
  keys.also_published.push_back(PrivateKey::Generate(KeyType::kP256).value().Public().value());
  const ResultIssuer issuer = ResultIssuer::Create(std::move(keys), "https://verifier").value();
  CHECK(KeySet::ParseJwks(issuer.jwks()).value().entries().size() == 2);
}

TEST_CASE("device ids are stable, and differ between titles, tenants and machines") {
  Case c;
  config::Title other;
  other.audience = "title-b";
  other.tenant = "studio";
  config::Title elsewhere;
  elsewhere.audience = "title-a";
  elsewhere.tenant = "rival";
  const Digest ek = Sha256(AsBytes("ek"));
  const std::string id = c.issuer.DeviceId(c.policy.titles[0], ek);
  CHECK(id == c.issuer.DeviceId(c.policy.titles[0], ek));
  CHECK(id != c.issuer.DeviceId(other, ek));
  CHECK(id != c.issuer.DeviceId(elsewhere, ek));
  CHECK(id != c.issuer.DeviceId(c.policy.titles[0], Sha256(AsBytes("another ek"))));
}

}  // namespace
}  // namespace assay::token
