// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "sdk/core/json.h"
#include "sdk/core/token.h"

namespace assay {
namespace {

ResultClaims FullClaims() {
  ResultClaims claims;
  claims.issuer = "https://verifier.example";
  claims.audience = "title.example";
  claims.issued_at = 1800000000;
  claims.expires_at = 1800000120;
  claims.token_id = "0001";
  claims.verifier_build = "0.1.0";
  claims.appraisal_policy = "policy:demo/1";
  claims.test = true;
  claims.server_nonce = Sha256(AsBytes("nonce"));
  claims.match = "match-\xC3\xA9";
  claims.session_key_hash = Sha256(AsBytes("channel"));
  claims.tier = Tier::kWarning;
  claims.vector = {.instance_identity = 2, .executables = -1, .runtime_opaque = 96};
  claims.reasons = {"runtime_self_reported", "clock_unsafe"};
  claims.device_id = "device";
  claims.device_key_version = 2;
  claims.previous_device_id = "before";
  claims.caller = {true, Sha256(AsBytes("game"))};
  claims.policy_version = 7;
  claims.next_attestation = 1800000060;
  claims.attester = Sha256(AsBytes("attester"));
  claims.host_token = HostTokenClaims{.aik_spki = Buffer(294, 0x30),
                                      .aik_scheme = SignatureScheme::kRsaPssSha256,
                                      .reset_count = 4,
                                      .restart_count = 1,
                                      .clock_ms = 123456789,
                                      .boot_pcr_digest = Sha256(AsBytes("boot")),
                                      .boot_pcr_mask = 0xFF,
                                      .pcr14 = Sha256(AsBytes("14")),
                                      .allowed_entries = 8};
  return claims;
}

TEST_CASE("claims survive a round trip, whole and at their least") {
  const std::string full = EncodeResultClaims(FullClaims());
  CHECK(EncodeResultClaims(DecodeResultClaims(full).value()) == full);
  ResultClaims least = FullClaims();
  least.test = false;
  least.vector = {};
  least.appraisal_policy.clear();
  least.reasons.clear();
  least.previous_device_id.reset();
  least.caller = {};
  least.host_token.reset();
  least.match.clear();
  const std::string text = EncodeResultClaims(least);
  const ResultClaims read = DecodeResultClaims(text).value();
  CHECK(EncodeResultClaims(read) == text);
  CHECK_FALSE(read.host_token.has_value());
  CHECK(text.find("ear_trustworthiness_vector") == std::string::npos);
}

TEST_CASE("claims cut at any byte are refused") {
  const std::string text = EncodeResultClaims(FullClaims());
  for (std::size_t size = 0; size < text.size(); ++size)
    CHECK_FALSE(DecodeResultClaims(std::string_view(text).substr(0, size)).ok());
  CHECK_FALSE(DecodeResultClaims(text + "x").ok());
}

// Every member of the top object: taken out, repeated, null and of another type.
TEST_CASE("a claim that is missing, repeated or mistyped is refused unless it is optional") {
  const std::string text = EncodeResultClaims(FullClaims());
  std::vector<std::pair<std::string, std::string>> members;
  JsonParser parser(8192);
  const auto collect = [&](std::string_view name, JsonValue) {
    const std::string quoted = JsonQuote(name) + ":";
    members.emplace_back(std::string(name), quoted);
    return true;
  };
  CHECK(parser.Parse(text).value().EachMember(collect));
  CHECK(members.size() == 21);
  for (const auto& [name, quoted] : members) {
    CAPTURE(name);
    const bool optional = name == "assay.test" || name == "assay.host";
    std::string renamed = text;
    renamed.replace(renamed.find(quoted), quoted.size(), "\"other\":");
    CHECK(DecodeResultClaims(renamed).ok() == optional);
    std::string repeated = text;
    repeated.insert(1, quoted + "1,");
    CHECK_FALSE(DecodeResultClaims(repeated).ok());
    for (const char* value : {"null", "1.5", "[7]", "{\"other\":1}", "\"text\"", "-1"}) {
      if (std::string_view(value) == "\"text\"" &&
          (name == "iss" || name == "aud" || name == "jti" || name == "assay.match"))
        continue;
      JsonWriter out;
      out.BeginObject();
      JsonParser again(8192);
      std::string changed = text;
      const std::size_t at = changed.find(quoted);
      changed.insert(at, quoted + value + ",");
      const std::size_t old = changed.find(quoted, at + quoted.size());
      changed.replace(old, quoted.size(), "\"other\":");
      CAPTURE(changed);
      CHECK_FALSE(DecodeResultClaims(changed).ok());
    }
  }
}

TEST_CASE("values out of their range are refused") {
  const std::string text = EncodeResultClaims(FullClaims());
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string changed = text;
    const std::size_t at = changed.find(from);
    REQUIRE(at != std::string::npos);
    changed.replace(at, from.size(), to);
    return DecodeResultClaims(changed).ok();
  };
  CHECK(with("\"warning\"", "\"affirming\""));
  CHECK_FALSE(with("\"warning\"", "\"Warning\""));
  CHECK_FALSE(with("rats/ear#03", "rats/ear#02"));
  CHECK_FALSE(with("1800000120", "1800000000"));  // exp not after iat
  CHECK_FALSE(with("1800000120", "1800000120.0"));
  CHECK_FALSE(with("1800000120", "\"1800000120\""));
  CHECK_FALSE(with("\"executables\":-1", "\"executables\":-129"));
  CHECK_FALSE(with("\"executables\":-1", "\"executable\":-1"));
  CHECK_FALSE(with("\"aud\":\"title.example\"", "\"aud\":[\"title.example\"]"));
  CHECK_FALSE(with("\"aud\":\"title.example\"", "\"aud\":\"\""));
  CHECK_FALSE(with("title.example", "title\\u0000example"));
  CHECK_FALSE(with("title.example", std::string(limits::kAudience + 1, 'a')));
  CHECK(with("title.example", std::string(limits::kAudience, 'a')));
  CHECK_FALSE(with("self_reported\",\"assay.gate", "trusted\",\"assay.gate"));
  CHECK_FALSE(with("\"assay.gate\":\"absent\"", "\"assay.gate\":\"off\""));
  CHECK_FALSE(with("rsapss-sha256", "ed25519"));
  CHECK_FALSE(with("\"boot_pcr_mask\":255", "\"boot_pcr_mask\":16777216"));
  CHECK_FALSE(with("\"reset_count\":4", "\"reset_count\":4294967296"));
  CHECK_FALSE(with("\"submods\":{", "\"submods\":{\"second\":{\"ear_status\":\"contraindicated\"},"));
  CHECK_FALSE(with("\"cnf\":{", "\"cnf\":{\"kid\":\"x\","));
  CHECK_FALSE(with("\"assay.test\":true", "\"nbf\":1"));
  CHECK(with("\"assay.test\":true", "\"later.claim\":{\"a\":[1]}"));
  CHECK_FALSE(with("\"runtime_self_reported\"", "\"" + std::string(kReasonCode + 1, 'r') + "\""));
  ResultClaims many = FullClaims();
  many.reasons.assign(limits::kReasons, "r");
  CHECK(DecodeResultClaims(EncodeResultClaims(many)).ok());
  many.reasons.emplace_back("r");
  CHECK_FALSE(DecodeResultClaims(EncodeResultClaims(many)).ok());
}

std::string ReadAll(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The names and the profile are those of the draft's own schema and examples.
TEST_CASE("claim names and profile are those of draft-ietf-rats-ear") {
  const char* fixtures = std::getenv("ASSAY_FIXTURES");
  if (fixtures == nullptr) {
    std::puts("skipped: ASSAY_FIXTURES is not set, so the draft's schema is not there to compare with");
    return;
  }
  const std::filesystem::path dir = std::filesystem::path(fixtures) / "ear";
  const std::string schema = ReadAll(dir / "ear.cddl") + ReadAll(dir / "ear-appraisal.cddl") +
                             ReadAll(dir / "ar4si.cddl") + ReadAll(dir / "rfc9711.cddl");
  const std::string text = EncodeResultClaims(FullClaims());
  CHECK(schema.find("\"" + std::string(kEarProfile) + "\"") != std::string::npos);
  for (const char* name : {"ear_status", "ear_trustworthiness_vector", "ear_appraisal_policy_ids", "ear_verifier_id",
                           "developer", "build", "instance-identity", "executables", "runtime-opaque", "eat_profile",
                           "eat_nonce", "submods", "iat", "exp", "iss", "aud"}) {
    CAPTURE(name);
    CHECK(schema.find("\"" + std::string(name) + "\"") != std::string::npos);
    CHECK(text.find("\"" + std::string(name) + "\":") != std::string::npos);
  }
  // The draft's example and the older Veraison files are valid JSON but no result of ours.
  JsonParser parser(16384);
  for (const char* file :
       {"ear-json-1.diag", "ear-json-2.diag", "ext-teep-json-1.diag", "veraison/ear-claims.json",
        "veraison/ear-claims-tv-ok.json", "veraison/ear-claims-extension-ok.json", "rust/claims.json"}) {
    const std::string example = ReadAll(dir / file);
    CAPTURE(file);
    CHECK(parser.Parse(example).ok());
    CHECK_FALSE(DecodeResultClaims(example).ok());
  }
  CHECK(KeySet::ParseJwks("{\"keys\":[{\"kid\":\"v\"," + ReadAll(dir / "rust/ec_key_pub.jwk").substr(1) + "]}")
            .value()
            .Find("v")
            ->key.Spki() == PublicKey::FromPem(ReadAll(dir / "rust/ec_key_pub.pem")).value().Spki());
}

}  // namespace
}  // namespace assay
