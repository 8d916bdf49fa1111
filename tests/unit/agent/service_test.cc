// SPDX-License-Identifier: Apache-2.0
// Requests end to end: relay, clients and the TPM's queue over a real socket.
#include "agent/server/service.h"

#include <doctest/doctest.h>

#include <future>

#include "sdk/core/host_token.h"
#include "tests/unit/agent/server_fixture.h"

namespace assay::agent {
namespace {

using test::Delivery;
using test::EvidenceFor;
using test::ServerFixture;
using test::TextOf;
using test::Verdict;

constexpr std::uint64_t kWait = 20'000;

local::ResultTokenRequest TokenFor(const char* audience, std::uint64_t deadline_ms = 15'000) {
  return {audience, "match", Sha256(AsBytes("nonce")), Sha256(AsBytes("key")), deadline_ms};
}
local::HostTokenRequest HostTokenFor(const char* audience) {
  return {audience, false, 0, Sha256(AsBytes("nonce")), Sha256(AsBytes("key"))};
}

std::future<local::Reply> Ask(ServerFixture& fixture, local::Request request) {
  return std::async(std::launch::async, [&fixture, request] { return fixture.Connect().Call(request, kWait).value(); });
}

std::uint64_t NextWork(local::Client& relay) {
  return local::DecodeWorkReply(relay.Call(local::WaitWorkRequest{15'000}, kWait).value().payload).value();
}

TEST_CASE("routine evidence, its verdict, and then host tokens: never before a result") {
  ServerFixture fixture;
  local::Client relay = fixture.Connect();
  local::Client client = fixture.Connect();
  CHECK(client.Call(HostTokenFor("title"), kWait).value().error.code == "no_result_yet");
  const local::Reply evidence = relay.Call(EvidenceFor(0), kWait).value();
  REQUIRE(evidence.ok);
  CHECK(DecodeEvidence(evidence.payload).ok());
  CHECK(client.Call(HostTokenFor("title"), kWait).value().error.code == "no_result_yet");
  CHECK(relay.Call(Delivery(0, Verdict(Tier::kAffirming)), kWait).value().ok);
  const local::Reply token = client.Call(HostTokenFor("title"), kWait).value();
  REQUIRE(token.ok);
  CHECK(ParseHostToken(token.payload).ok());
  const std::string status = TextOf(client.Call(local::StatusRequest{}, kWait).value());
  CHECK(status.find("\"tier\":\"affirming\"") != std::string::npos);
  CHECK(status.find("\"state\":\"connected\"") != std::string::npos);
}

TEST_CASE("a client's request wakes the relay, goes into the evidence, and comes back as a token") {
  ServerFixture fixture;
  local::Client relay = fixture.Connect();
  auto waiting = std::async(std::launch::async, [&] { return NextWork(relay); });
  auto token = Ask(fixture, TokenFor("title"));
  const std::uint64_t work = waiting.get();
  REQUIRE(work != 0);
  const local::Reply evidence = relay.Call(EvidenceFor(work), kWait).value();
  REQUIRE(evidence.ok);
  const EvidenceBody body = DecodeEvidenceBody(DecodeEvidence(evidence.payload).value().body).value();
  REQUIRE(body.request.has_value());
  CHECK(body.request->audience == "title");
  CHECK_FALSE(body.request->caller.measured);
  AttestReply fresh = Verdict(Tier::kNone);
  fresh.outcome = AttestReply::Outcome::kFreshChallengeNeeded;
  CHECK(relay.Call(Delivery(work, fresh), kWait).value().ok);  // not the end: the client keeps waiting
  CHECK(relay.Call(EvidenceFor(work), kWait).value().ok);
  CHECK(relay.Call(Delivery(work, Verdict(Tier::kAffirming, "a.b.c")), kWait).value().ok);
  const local::Reply reply = token.get();
  REQUIRE(reply.ok);
  CHECK(TextOf(reply) == "a.b.c");
  CHECK(relay.Call(EvidenceFor(work), kWait).value().error.code == "work_gone");
}

TEST_CASE("a refusal reaches the client in the verifier's words") {
  ServerFixture fixture;
  local::Client relay = fixture.Connect();
  SUBCASE("of the token") {
    auto token = Ask(fixture, TokenFor("title"));
    const std::uint64_t work = NextWork(relay);
    REQUIRE(relay.Call(EvidenceFor(work), kWait).value().ok);
    AttestReply reply = Verdict(Tier::kAffirming);
    reply.token_refusal = ErrorReply{"audience_not_authorised", "detail", "fix"};
    REQUIRE(relay.Call(Delivery(work, reply), kWait).value().ok);
    CHECK(token.get().error.code == "audience_not_authorised");
  }
  SUBCASE("of the submission") {
    auto token = Ask(fixture, TokenFor("title"));
    const std::uint64_t work = NextWork(relay);
    REQUIRE(relay.Call(local::DeliverRequest{work, "refused", {}, EncodeErrorReply({"replay", "detail", "fix"})}, kWait)
                .value()
                .ok);
    CHECK(token.get().error.code == "replay");
  }
  SUBCASE("a verdict without a token") {
    auto token = Ask(fixture, TokenFor("title"));
    const std::uint64_t work = NextWork(relay);
    REQUIRE(relay.Call(EvidenceFor(work), kWait).value().ok);
    REQUIRE(relay.Call(Delivery(work, Verdict(Tier::kContraindicated)), kWait).value().ok);
    CHECK(token.get().error.code == "no_token");
  }
}

TEST_CASE("a request that no relay takes ends at its deadline and says why") {
  ServerFixture fixture;
  const local::Reply reply = Ask(fixture, TokenFor("title", 300)).get();
  CHECK_FALSE(reply.ok);
  CHECK(reply.error.code == "timeout");
}

TEST_CASE("a request goes back to the book when the relay that took it dies") {
  ServerFixture fixture;
  auto token = Ask(fixture, TokenFor("title"));
  std::uint64_t work = 0;
  {
    local::Client dying = fixture.Connect();
    work = NextWork(dying);
  }
  local::Client relay = fixture.Connect();
  CHECK(NextWork(relay) == work);
  REQUIRE(relay.Call(EvidenceFor(work), kWait).value().ok);
  REQUIRE(relay.Call(Delivery(work, Verdict(Tier::kWarning, "x.y.z")), kWait).value().ok);
  CHECK(TextOf(token.get()) == "x.y.z");
}

TEST_CASE("one relay cannot answer what another has in hand") {
  ServerFixture fixture;
  local::Client relay = fixture.Connect();
  local::Client other = fixture.Connect();
  auto token = Ask(fixture, TokenFor("title"));
  const std::uint64_t work = NextWork(relay);
  CHECK(other.Call(EvidenceFor(work), kWait).value().error.code == "work_gone");
  REQUIRE(other.Call(Delivery(work, Verdict(Tier::kAffirming, "forged")), kWait).value().ok);
  REQUIRE(relay.Call(Delivery(work, Verdict(Tier::kAffirming, "a.b.c")), kWait).value().ok);
  CHECK(TextOf(token.get()) == "a.b.c");
}

TEST_CASE("waiting for work ends with none when the time is over") {
  ServerFixture fixture;
  local::Client relay = fixture.Connect();
  CHECK(local::DecodeWorkReply(relay.Call(local::WaitWorkRequest{50}, kWait).value().payload).value() == 0);
}

TEST_CASE("a caller over its budget is told so, and others go on") {
  ServerFixture fixture({.we_are_relay = false, .client = {1, 2}});
  local::Client client = fixture.Connect();
  for (int i = 0; i < 2; ++i) CHECK(client.Call(HostTokenFor("title"), kWait).value().error.code == "no_result_yet");
  CHECK(client.Call(HostTokenFor("title"), kWait).value().error.code == "busy");
  CHECK(client.Call(local::StatusRequest{}, kWait).value().ok);
}

TEST_CASE("status is answered while the TPM hangs, and its late facts answer nothing else") {
  ServerFixture fixture;
  std::promise<void> release;
  auto released = release.get_future().share();
  local::Client relay = fixture.Connect();
  fixture.quoter.device.before = [released](std::string_view command) -> Status {
    if (command == "Quote") released.wait();
    return Ok();
  };
  auto evidence = Ask(fixture, EvidenceFor(0));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  local::Client client = fixture.Connect();
  const std::string status = TextOf(client.Call(local::StatusRequest{}, kWait).value());
  CHECK(status.find("\"tpm_answered_in_ms\":") != std::string::npos);
  auto waiting =
      std::async(std::launch::async, [&] { return client.Call(local::WaitWorkRequest{500}, kWait).value(); });
  release.set_value();
  CHECK(evidence.get().ok);
  CHECK(local::DecodeWorkReply(waiting.get().payload).ok());
}

TEST_CASE("a delivery that is no verdict is refused and changes nothing") {
  ServerFixture fixture;
  local::Client relay = fixture.Connect();
  REQUIRE(relay.Call(EvidenceFor(0), kWait).value().ok);
  CHECK_FALSE(relay.Call(local::DeliverRequest{0, "connected", {1, 2, 3}, {}}, kWait).value().ok);
  CHECK_FALSE(relay.Call(local::DeliverRequest{0, "connected", {}, {1, 2, 3}}, kWait).value().ok);
  CHECK(relay.Call(HostTokenFor("title"), kWait).value().error.code == "no_result_yet");
}

TEST_CASE("a machine that is not enrolled says so to the relay") {
  ServerFixture fixture;
  std::filesystem::remove(config::EnrollmentPath(fixture.quoter.dir.path()));
  local::Client relay = fixture.Connect();
  CHECK(relay.Call(local::AttesterRequest{}, kWait).value().error.code == "not_enrolled");
  CHECK(relay.Call(EvidenceFor(0), kWait).value().error.code == "not_enrolled");
  CHECK(TextOf(relay.Call(local::StatusRequest{}, kWait).value()).find("not_usable") != std::string::npos);
}

TEST_CASE("root may look at evidence and have the agent examined") {
  if (::getuid() != 0) {
    MESSAGE("skipped: only root may send these requests");
    return;
  }
  ServerFixture fixture;
  local::Client root = fixture.Connect();
  const local::Reply shown = root.Call(local::ShowEvidenceRequest{}, kWait).value();
  REQUIRE(shown.ok);
  CHECK(TextOf(shown).find(ToHex(fixture.quoter.aik->SpkiDigest())) != std::string::npos);
  CHECK(TextOf(root.Call(local::DoctorRequest{}, kWait).value()).find("\"ok\":true") != std::string::npos);
}

}  // namespace
}  // namespace assay::agent
