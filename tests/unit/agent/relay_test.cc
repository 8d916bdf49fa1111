// SPDX-License-Identifier: Apache-2.0
// The relay's states over an agent and a verifier that do what a test says.
#include "agent/relay/relay.h"

#include <doctest/doctest.h>

#include <deque>

#include "sdk/core/crypto.h"

namespace assay::relay {
namespace {

Challenge ChallengeOf(std::uint8_t mark) {
  Challenge challenge;
  challenge.nonce = Buffer(limits::kChallenge, mark);
  challenge.selection = {tpm::Alg::kSha256, 1};
  return challenge;
}

AttestReply VerdictOf(Tier tier, std::uint8_t next) {
  AttestReply reply;
  reply.tier = tier;
  reply.next = ChallengeOf(next);
  reply.next_in_ms = 60'000;
  return reply;
}

VerifierAnswer OkWith(Buffer body) { return {200, std::move(body), std::nullopt}; }
VerifierAnswer RefusalOf(unsigned status, const char* code) {
  return {status, EncodeErrorReply({code, "detail", "fix"}), std::nullopt};
}

class FakeAgent final : public AgentLink {
 public:
  Result<local::Reply> Call(const local::Request& request, std::uint64_t) override {
    if (down) return MakeError(Code::kUnavailable, "no agent");
    kinds.push_back(local::KindOf(request));
    local::Reply reply;
    reply.ok = true;
    if (const auto* evidence = std::get_if<local::EvidenceRequest>(&request)) {
      evidences.push_back(*evidence);
      if (!refusals.empty()) {
        reply.ok = false;
        reply.error = refusals.front();
        refusals.pop_front();
        return reply;
      }
      reply.payload = evidence->challenge.nonce;  // stands for evidence over that challenge
    } else if (const auto* delivery = std::get_if<local::DeliverRequest>(&request)) {
      deliveries.push_back(*delivery);
    } else if (std::holds_alternative<local::AttesterRequest>(request)) {
      reply.payload = local::EncodeAttesterReply({Sha256(AsBytes("attester")), 0, renew_after});
    } else if (std::holds_alternative<local::WaitWorkRequest>(request)) {
      if (now != nullptr) *now += wait_takes_ms;
      reply.payload = local::EncodeWorkReply(work.empty() ? 0 : work.front());
      if (!work.empty()) work.pop_front();
    }
    return reply;
  }
  bool down = false;
  std::uint64_t renew_after = 0;
  std::uint64_t* now = nullptr;
  std::uint64_t wait_takes_ms = 0;
  std::deque<std::uint64_t> work;
  std::deque<ErrorReply> refusals;
  std::vector<local::Kind> kinds;
  std::vector<local::EvidenceRequest> evidences;
  std::vector<local::DeliverRequest> deliveries;
};

class FakeVerifier final : public VerifierLink {
 public:
  Result<VerifierAnswer> Post(std::string_view path, Bytes) override {
    CHECK(path == route::kChallenge);
    ++challenges_asked;
    if (down) return MakeError(Code::kUnavailable, "no verifier");
    return OkWith(EncodeChallenge(ChallengeOf(static_cast<std::uint8_t>(100 + challenges_asked))));
  }
  Result<Digest> ChannelBinding() override {
    if (down) return MakeError(Code::kUnavailable, "no verifier");
    ++bindings;
    return Sha256(AsBytes(std::to_string(bindings)));
  }
  Result<VerifierAnswer> PostBound(std::string_view path, Bytes body) override {
    CHECK(path == route::kAttest);
    submitted.push_back(ToBuffer(body));
    if (answers.empty())
      return OkWith(EncodeAttestReply(VerdictOf(Tier::kAffirming, static_cast<std::uint8_t>(submitted.size()))));
    auto answer = std::move(answers.front());
    answers.pop_front();
    return answer;
  }
  bool down = false;
  int challenges_asked = 0;
  int bindings = 0;
  std::deque<Result<VerifierAnswer>> answers;
  std::vector<Buffer> submitted;
};

struct Fixture {
  Fixture() {
    agent.now = &now;
    config.first_backoff_ms = 1000;
    config.max_backoff_ms = 8000;
    config.max_interval_ms = 3'600'000;
  }
  Relay Make() {
    return Relay({&agent, &verifier, config, [this](const std::string& line) { log.push_back(line); },
                  [this] { return now; },
                  [this](std::uint64_t ms) {
                    slept.push_back(ms);
                    now += ms;
                  },
                  [this] { return random; }, [] { return std::uint64_t{1'000'000}; }});
  }
  FakeAgent agent;
  FakeVerifier verifier;
  config::RelayConfig config;
  std::uint64_t now = 5000;
  std::uint64_t random = UINT64_MAX;
  std::vector<std::uint64_t> slept;
  std::vector<std::string> log;
};

TEST_CASE("the first challenge is asked for, later ones ride on answers: one round trip in steady state") {
  Fixture fixture;
  Relay relay = fixture.Make();
  for (int i = 0; i < 4; ++i) CHECK(relay.AttestOnce(0).state == State::kConnected);
  CHECK(fixture.verifier.challenges_asked == 1);
  REQUIRE(fixture.verifier.submitted.size() == 4);
  CHECK(fixture.verifier.submitted[0] == Buffer(limits::kChallenge, 101));
  CHECK(fixture.verifier.submitted[1] == Buffer(limits::kChallenge, 1));
  CHECK(fixture.verifier.submitted[3] == Buffer(limits::kChallenge, 3));
  CHECK(fixture.agent.deliveries.size() == 4);
  CHECK(fixture.agent.deliveries[0].relay_state == "connected");
}

TEST_CASE("a fresh challenge that the verifier needs takes one more round, with the challenge it sent along") {
  Fixture fixture;
  Relay relay = fixture.Make();
  AttestReply fresh = VerdictOf(Tier::kNone, 77);
  fresh.outcome = AttestReply::Outcome::kFreshChallengeNeeded;
  fixture.verifier.answers.push_back(OkWith(EncodeAttestReply(fresh)));
  const Round round = relay.AttestOnce(9);
  CHECK(round.reply->tier == Tier::kAffirming);
  REQUIRE(fixture.verifier.submitted.size() == 2);
  CHECK(fixture.verifier.submitted[1] == Buffer(limits::kChallenge, 77));
  CHECK(fixture.agent.evidences[1].work == 9);
  CHECK(fixture.agent.deliveries.size() == 1);
}

TEST_CASE("a verifier that asks for fresh challenges without end is refused as such") {
  Fixture fixture;
  Relay relay = fixture.Make();
  AttestReply fresh = VerdictOf(Tier::kNone, 77);
  fresh.outcome = AttestReply::Outcome::kFreshChallengeNeeded;
  for (int i = 0; i < 5; ++i) fixture.verifier.answers.push_back(OkWith(EncodeAttestReply(fresh)));
  const Round round = relay.AttestOnce(0);
  CHECK(round.state == State::kRefused);
  CHECK(round.error.code == "not_fresh");
  CHECK(fixture.verifier.submitted.size() == 2);
}

TEST_CASE(
    "a refusal of a challenge that rode along is tried once more on a fresh one, a refusal of a fresh one is final") {
  Fixture fixture;
  Relay relay = fixture.Make();
  REQUIRE(relay.AttestOnce(0).state == State::kConnected);
  fixture.verifier.answers.push_back(RefusalOf(403, "challenge_foreign"));
  CHECK(relay.AttestOnce(0).state == State::kConnected);
  CHECK(fixture.verifier.challenges_asked == 2);
  fixture.verifier.answers.push_back(RefusalOf(403, "binding_mismatch"));
  fixture.verifier.answers.push_back(RefusalOf(403, "binding_mismatch"));
  const Round round = relay.AttestOnce(4);
  CHECK(round.state == State::kRefused);
  CHECK(round.error.code == "binding_mismatch");
  CHECK(fixture.agent.deliveries.back().relay_state == "refused");
  CHECK(fixture.agent.deliveries.back().work == 4);
  CHECK(DecodeErrorReply(fixture.agent.deliveries.back().error).value().code == "binding_mismatch");
}

TEST_CASE("evidence is taken again when the connection it was bound to is gone, a bounded number of times") {
  Fixture fixture;
  Relay relay = fixture.Make();
  fixture.verifier.answers.push_back(MakeError(Code::kConflict, "renewed"));
  CHECK(relay.AttestOnce(0).state == State::kConnected);
  REQUIRE(fixture.agent.evidences.size() == 2);
  CHECK(fixture.agent.evidences[0].channel_binding != fixture.agent.evidences[1].channel_binding);
  for (int i = 0; i < 9; ++i) fixture.verifier.answers.push_back(MakeError(Code::kConflict, "renewed"));
  CHECK(relay.AttestOnce(0).state == State::kVerifierUnavailable);
  CHECK(fixture.verifier.answers.size() == 6);
}

TEST_CASE("each failure has its state, and the agent is told") {
  Fixture fixture;
  Relay relay = fixture.Make();
  SUBCASE("the verifier is down") {
    fixture.verifier.down = true;
    CHECK(relay.AttestOnce(3).state == State::kVerifierUnavailable);
    CHECK(fixture.agent.deliveries.back().relay_state == "verifier_unavailable");
    CHECK(fixture.agent.deliveries.back().work == 3);
  }
  SUBCASE("the verifier's certificate is another's") {
    fixture.verifier.answers.push_back(MakeError(Code::kDenied, "certificate"));
    const Round round = relay.AttestOnce(0);
    CHECK(round.state == State::kRefused);
    CHECK(round.error.code == "verifier_certificate");
  }
  SUBCASE("the verifier is overloaded") {
    VerifierAnswer busy = RefusalOf(503, "busy");
    busy.retry_after_s = 4;
    fixture.verifier.answers.push_back(busy);
    const Round round = relay.AttestOnce(0);
    CHECK(round.state == State::kVerifierUnavailable);
    CHECK(round.retry_after_ms == 4000);
  }
  SUBCASE("the verifier answers nonsense") {
    fixture.verifier.answers.push_back(OkWith({1, 2, 3}));
    CHECK(relay.AttestOnce(0).state == State::kVerifierUnavailable);
    fixture.verifier.answers.push_back(VerifierAnswer{404, {}, std::nullopt});
    const Round round = relay.AttestOnce(0);
    CHECK(round.state == State::kRefused);
    CHECK(round.error.code == "http_404");
  }
  SUBCASE("the agent is down") {
    fixture.agent.down = true;
    CHECK(relay.AttestOnce(0).state == State::kAgentUnavailable);
    CHECK(fixture.verifier.submitted.empty());
  }
  SUBCASE("the agent has no evidence to give") {
    fixture.agent.refusals.push_back({"not_enrolled", "", ""});
    CHECK(relay.AttestOnce(0).state == State::kBackingOff);
    CHECK(fixture.agent.deliveries.back().relay_state == "backing_off");
  }
}

TEST_CASE("a client that left in the meantime does not keep the machine from being attested") {
  Fixture fixture;
  Relay relay = fixture.Make();
  fixture.agent.refusals.push_back({"work_gone", "", ""});
  CHECK(relay.AttestOnce(8).state == State::kConnected);
  CHECK(fixture.agent.evidences.back().work == 0);
}

TEST_CASE("after an error no challenge is used twice") {
  Fixture fixture;
  Relay relay = fixture.Make();
  REQUIRE(relay.AttestOnce(0).state == State::kConnected);
  fixture.verifier.answers.push_back(MakeError(Code::kTimeout, "lost"));
  CHECK(relay.AttestOnce(0).state == State::kVerifierUnavailable);
  CHECK(relay.AttestOnce(0).state == State::kConnected);
  for (std::size_t i = 0; i < fixture.verifier.submitted.size(); ++i) {
    for (std::size_t j = i + 1; j < fixture.verifier.submitted.size(); ++j)
      CHECK(fixture.verifier.submitted[i] != fixture.verifier.submitted[j]);
  }
}

TEST_CASE("back-off doubles up to its cap, is jittered over its whole range, and ends with the first success") {
  Fixture fixture;
  Relay relay = fixture.Make();
  fixture.verifier.down = true;
  fixture.random = 0;
  relay.Turn();
  CHECK(fixture.slept.back() == 0);
  for (const std::uint64_t ceiling : {2000U, 4000U, 8000U, 8000U}) {
    fixture.random = ceiling;  // the largest remainder
    relay.Turn();
    CHECK(fixture.slept.back() == ceiling);
  }
  fixture.verifier.down = false;
  fixture.agent.wait_takes_ms = 60'000;
  relay.Turn();
  fixture.verifier.down = true;
  fixture.random = 1000;
  relay.Turn();
  CHECK(fixture.slept.back() == 1000);
}

TEST_CASE("what the verifier asks to wait is waited, within the cap") {
  Backoff backoff(1000, 8000);
  CHECK(backoff.Next(0, 5000) == 5000);
  CHECK(backoff.Next(0, 1'000'000) == 8000);
  Backoff endless(1000, 8000);
  for (int i = 0; i < 200; ++i) CHECK(endless.Next(UINT64_MAX, 0) <= 8000);
}

TEST_CASE("between routine evidence the relay waits for clients, and a client's request is served at once") {
  Fixture fixture;
  Relay relay = fixture.Make();
  fixture.agent.work = {0, 42};
  fixture.agent.wait_takes_ms = 50'000;  // the whole wait: nobody asked
  relay.Turn();
  CHECK(fixture.agent.evidences.size() == 1);
  relay.Turn();
  REQUIRE(fixture.agent.evidences.size() == 2);
  CHECK(fixture.agent.evidences[1].work == 42);
}

TEST_CASE("an answer without work before the time is over means that evidence is wanted now") {
  Fixture fixture;
  Relay relay = fixture.Make();
  fixture.agent.wait_takes_ms = 10;
  relay.Turn();
  CHECK(fixture.agent.kinds.back() == local::Kind::kWaitWork);
  relay.Turn();
  CHECK(fixture.agent.evidences.size() == 2);
  CHECK(fixture.agent.evidences[1].work == 0);
}

TEST_CASE("a state is logged when it changes, and a certificate due for renewal is noted") {
  Fixture fixture;
  fixture.agent.renew_after = 999'999;
  Relay relay = fixture.Make();
  fixture.verifier.down = true;
  for (int i = 0; i < 3; ++i) (void)relay.AttestOnce(0);
  REQUIRE(fixture.log.size() == 2);
  CHECK(fixture.log[0].find("assay-enroll renew") != std::string::npos);
  CHECK(fixture.log[1].find("verifier_unavailable") == 0);
  fixture.verifier.down = false;
  (void)relay.AttestOnce(0);
  CHECK(fixture.log.back() == "connected");
}

}  // namespace
}  // namespace assay::relay
