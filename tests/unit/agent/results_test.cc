// SPDX-License-Identifier: Apache-2.0
#include "agent/server/results.h"

#include <doctest/doctest.h>

#include "agent/server/status.h"
#include "sdk/core/crypto.h"

namespace assay::agent {
namespace {

ResultBasis BasisAt(std::uint64_t entries) { return {{tpm::Alg::kSha256, 0x4001}, entries, 3, {}}; }

TEST_CASE("no result, no basis for a host token; evidence alone is no result") {
  Results results;
  CHECK(results.BasisFor(1000, "title") == nullptr);
  results.OnEvidence(50, BasisAt(1));
  CHECK(results.BasisFor(1000, "title") == nullptr);
  results.OnFailure({"verifier_unavailable", "", ""}, 1);
  CHECK(results.BasisFor(1000, "title") == nullptr);
}

TEST_CASE("a user's host tokens refer to the result whose token the user has, not to a later routine one") {
  Results results;
  results.OnEvidence(50, BasisAt(1));
  results.OnVerdict(50, {}, 10);
  results.OnToken(1000, "title");
  results.OnEvidence(50, BasisAt(4));
  results.OnVerdict(50, {}, 20);
  REQUIRE(results.BasisFor(1000, "title") != nullptr);
  CHECK(results.BasisFor(1000, "title")->entries == 1);
  CHECK(results.BasisFor(1000, "other")->entries == 4);
  CHECK(results.BasisFor(1001, "title")->entries == 4);
  results.OnToken(1000, "title");
  CHECK(results.BasisFor(1000, "title")->entries == 4);
}

TEST_CASE("a verdict over another relay connection does not move the basis") {
  Results results;
  results.OnEvidence(50, BasisAt(1));
  results.OnVerdict(51, {}, 10);
  CHECK(results.BasisFor(1, "t") == nullptr);
  results.OnRelayClosed(50);
  results.OnVerdict(50, {}, 11);
  CHECK(results.BasisFor(1, "t") == nullptr);
}

TEST_CASE("what is remembered of tokens is bounded, and the token itself is not kept") {
  Results results;
  results.OnEvidence(50, BasisAt(1));
  AttestReply reply;
  reply.result_token = "secret";
  results.OnVerdict(50, reply, 10);
  CHECK(results.verdict()->reply.result_token.empty());
  for (uid_t uid = 0; uid < 2 * Results::kMaxBases; ++uid) results.OnToken(uid, "t");
  results.OnEvidence(50, BasisAt(9));
  results.OnVerdict(50, {}, 20);
  CHECK(results.BasisFor(0, "t")->entries == 9);
  CHECK(results.BasisFor(2 * Results::kMaxBases - 1, "t")->entries == 1);
}

TEST_CASE("status tells everyone how things stand, and only root and the relay who this machine is") {
  QuoterFacts facts;
  config::EnrollmentRecord record;
  record.attester = Sha256(AsBytes("attester"));
  record.host_id = Sha256(AsBytes("host"));
  record.verifier_url = "https://verifier.example:8443";
  facts.attester = record;
  facts.log_faults = static_cast<std::uint32_t>(LogFault::kForeignExtend);
  Results results;
  AttestReply reply;
  reply.tier = Tier::kWarning;
  reply.reasons = {{"clock_unsafe", Tier::kWarning, "detail", "fix"}};
  results.OnVerdict(1, reply, 100);
  StatusInput input;
  input.facts = &facts;
  input.results = &results;
  input.now_ms = 150;
  const std::string open = StatusJson(input);
  input.full = true;
  const std::string full = StatusJson(input);
  for (const std::string& secret : {ToHex(record.attester), ToHex(record.host_id), record.verifier_url}) {
    CHECK(open.find(secret) == std::string::npos);
    CHECK(full.find(secret) != std::string::npos);
  }
  for (const char* shown :
       {"\"tier\":\"warning\"", "\"clock_unsafe\"", "\"log_foreign_extend\"", "\"age_ms\":50",
        "\"caller\":\"unmeasured\"", "\"runtime_anchor\":\"self_reported\"", "\"state\":\"absent\""}) {
    CHECK_MESSAGE(open.find(shown) != std::string::npos, shown);
  }
}

TEST_CASE("text that is not UTF-8 is shown in hex, not printed as it is") {
  QuoterFacts facts;
  facts.attester_problem = "/path/\xff";
  Results results;
  StatusInput input;
  input.facts = &facts;
  input.results = &results;
  CHECK(StatusJson(input).find("hex:2f706174682fff") != std::string::npos);
}

}  // namespace
}  // namespace assay::agent
