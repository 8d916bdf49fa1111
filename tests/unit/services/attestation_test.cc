// SPDX-License-Identifier: Apache-2.0
#include "verifier/server/attestation.h"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "sdk/core/runtime_log.h"
#include "tests/support/forge.h"
#include "tests/support/memory_store.h"
#include "tests/support/recording_audit.h"

namespace assay::server {
namespace {

constexpr std::uint32_t kMask = (1U << 0) | (1U << 4) | (1U << 14);
constexpr std::uint64_t kStart = 1'700'000'000'000;

config::Policy TestPolicy() {
  config::Policy policy;
  policy.name = "test";
  policy.selection = {tpm::Alg::kSha256, kMask};
  policy.pcrs[4] = {Digest{}};
  policy.runtime_not_asked = true;
  config::Title title;
  title.audience = "title";
  title.tenant = "studio";
  title.key = Secret::CopyOf(Buffer(32, 7));
  title.host_tokens = true;
  policy.titles.push_back(std::move(title));
  return policy;
}

Buffer AreaOf(const PublicKey& key) {
  const auto point = key.Point().value();
  Writer out;
  out.U16Be(0x0023);
  out.U16Be(0x000B);
  out.U32Be(0x00050472);
  out.PutU16Sized({});
  out.U16Be(0x0010);
  out.U16Be(0x0018);
  out.U16Be(0x000B);
  out.U16Be(3);
  out.U16Be(0x0010);
  out.PutU16Sized(point.x);
  out.PutU16Sized(point.y);
  return std::move(out).Take();
}

// A verifier's heart with everything real but disk and network, and one enrolled machine with a software key.
struct World {
  std::uint64_t now = kStart;
  test::MemoryStore store;
  test::RecordingAudit audit;
  attest::Fence fence;
  attest::ChallengeKeeper challenges;
  PolicyHolder policy{LoadedPolicy{TestPolicy(), nullptr}};
  token::ResultIssuer issuer = token::ResultIssuer::Create({.signing = PrivateKey::Generate(KeyType::kP256).value(),
                                                            .also_published = {},
                                                            .device_master = Secret::CopyOf(Buffer(32, 9)),
                                                            .device_key_version = 1},
                                                           "https://v")
                                   .value();
  store::AikCache aiks{store, 1024};
  VerdictWriter verdicts{store};
  Attestation attestation{
      {.aiks = aiks,
       .fence = fence,
       .challenges = challenges,
       .audit = audit,
       .verdicts = verdicts,
       .policy = policy,
       .issuer = issuer,
       .consent_used =
           [this](const Digest& id, const std::function<void()>& then) {
             (void)store.SetResetAccepted(id, false);
             then();
           }},
      {.challenge_lifetime_ms = 120'000, .reattest_interval_ms = 60'000, .now_ms = [this] { return now; }}};
  PrivateKey key = PrivateKey::Generate(KeyType::kP256).value();
  Digest attester = key.Public().value().SpkiDigest();
  Digest host = Sha256(AsBytes("host"));
  Digest channel = Sha256(AsBytes("channel"));
  tpm::ClockInfo clock{.clock = 100'000, .reset_count = 3, .restart_count = 0, .safe = true};
  std::vector<Buffer> log;
  Digest pcr14{};
  EvidenceBody body;

  World() {
    store::HostRow row;
    row.host_id = host;
    row.ek_spki_digest = Sha256(AsBytes("ek"));
    row.generation = 1;
    store.hosts[host] = row;
    store::AikRow aik;
    aik.attester = attester;
    aik.host_id = host;
    aik.generation = 1;
    aik.scheme = SignatureScheme::kEcdsaP256Sha256;
    aik.public_area = AreaOf(key.Public().value());
    aik.not_after = static_cast<std::int64_t>(kStart / 1000) + 86400;
    store.aiks[attester] = aik;
    body.attester = attester;
    body.runtime.agent = Sha256(AsBytes("agent"));
    body.runtime.scope = "none";
    body.platform.lockdown = "none";
    body.platform.kernel_release = "6.1";
    AddEntry(EntryKind::kIdentity);
  }
  void AddEntry(EntryKind kind) {
    RuntimeEntry entry;
    entry.index = log.size();
    entry.kind = kind;
    if (kind == EntryKind::kIdentity) entry.agent = body.runtime.agent;
    log.push_back(EncodeRuntimeEntry(entry));
    pcr14 = ExtendWithEntry(pcr14, log.back());
    body.runtime.log.clear();
    for (const auto& item : log) body.runtime.log.emplace_back(item);
  }
  Buffer Ask() {
    const auto nonce = challenges.Issue(attester, {tpm::Alg::kSha256, kMask}, now);
    return Buffer(nonce.begin(), nonce.end());
  }
  // Evidence over `nonce` with the machine's state as it is.
  test::ForgedEvidence Make(const Buffer& nonce,
                            const std::function<void(test::QuoteFields&, test::ForgedEvidence&)>& change = {}) {
    test::ForgedEvidence evidence;
    evidence.nonce = nonce;
    evidence.body = EncodeEvidenceBody(body);
    evidence.pcrs = {
        {std::uint8_t{0}, Buffer(32, 0)}, {std::uint8_t{4}, Buffer(32, 0)}, {std::uint8_t{14}, ToBuffer(pcr14)}};
    test::QuoteFields fields;
    fields.clock = clock;
    fields.selections = {{tpm::Alg::kSha256, kMask}};
    fields.extra_data = ExtraData(QuoteTag::kEvidence, evidence.nonce, Sha256(evidence.body), channel);
    fields.pcr_digest = test::DigestOfPcrs(evidence.pcrs, kMask);
    if (change) change(fields, evidence);
    test::SignQuote(evidence, key, SignatureScheme::kEcdsaP256Sha256, fields);
    return evidence;
  }
  Response Send(Buffer bytes, std::optional<Digest> binding) {
    Request request;
    request.body = std::move(bytes);
    request.channel_binding = binding;
    Response out;
    attestation.HandleAttest(std::move(request), [&](Response response) { out = std::move(response); });
    return out;
  }
  Response Send(const test::ForgedEvidence& evidence) { return Send(EncodeEvidence(evidence.View()), channel); }
  // A fresh challenge answered 50 ms of TPM time later.
  AttestReply Attest() {
    clock.clock += 50;
    const Response response = Send(Make(Ask()));
    REQUIRE(response.status == 200);
    return DecodeAttestReply(response.body).value();
  }
};

std::string CodeOf(const Response& response) {
  if (response.status == 200) return "ok";
  return DecodeErrorReply(response.body).value().code;
}

TEST_CASE("evidence that shows what was asked is affirming, recorded and written once") {
  World world;
  const AttestReply reply = world.Attest();
  CHECK(reply.tier == Tier::kAffirming);
  CHECK(reply.audit_sequence == 1);
  CHECK(reply.result_token.empty());
  CHECK(reply.next.runtime_from == 1);
  REQUIRE(world.audit.records.size() == 1);
  CHECK(world.audit.records[0].find("\"outcome\":\"judged\"") != std::string::npos);
  world.verdicts.Flush();
  REQUIRE(world.store.verdicts.size() == 1);
  CHECK(world.store.verdicts[0].audit_sequence == 1);
}

TEST_CASE("each defect is refused by its code, with fence and trail unchanged") {
  struct Row {
    const char* code;
    std::function<Response(World&)> send;
  };
  const auto changed = [](std::function<void(test::QuoteFields&, test::ForgedEvidence&)> change) {
    return [change](World& world) { return world.Send(world.Make(world.Ask(), change)); };
  };
  const std::vector<Row> rows = {
      {"evidence_malformed",
       [](World& w) {
         Buffer bytes = EncodeEvidence(w.Make(w.Ask()).View());
         bytes.push_back(0);
         return w.Send(bytes, w.channel);
       }},
      {"evidence_malformed", [](World& w) { return w.Send({}, w.channel); }},
      {"attester_unknown",
       [](World& w) {
         w.body.attester[0] ^= 1;
         return w.Send(w.Make(w.Ask()));
       }},
      {"challenge_expired",
       [](World& w) {
         const Buffer nonce = w.Ask();
         w.now += 120'001;
         return w.Send(w.Make(nonce));
       }},
      {"challenge_foreign", [](World& w) { return w.Send(w.Make(Buffer(limits::kChallenge, 1))); }},
      {"challenge_foreign",
       [](World& w) {
         const auto other = attest::ChallengeKeeper().Issue(w.attester, {tpm::Alg::kSha256, kMask}, w.now);
         return w.Send(w.Make(Buffer(other.begin(), other.end())));
       }},
      {"challenge_foreign",
       [](World& w) {
         const auto other = w.challenges.Issue(Sha256({}), {tpm::Alg::kSha256, kMask}, w.now);
         return w.Send(w.Make(Buffer(other.begin(), other.end())));
       }},
      {"challenge_future",
       [](World& w) {
         const Buffer nonce = w.Ask();
         w.now -= 1;
         return w.Send(w.Make(nonce));
       }},
      {"binding_mismatch",
       [](World& w) { return w.Send(EncodeEvidence(w.Make(w.Ask()).View()), Sha256(AsBytes("another connection"))); }},
      {"no_channel", [](World& w) { return w.Send(EncodeEvidence(w.Make(w.Ask()).View()), std::nullopt); }},
      {"binding_mismatch",
       [](World& w) {
         auto e = w.Make(w.Ask());
         w.body.runtime.drops = 1;
         e.body = EncodeEvidenceBody(w.body);
         return w.Send(e);
       }},
      {"binding_mismatch",
       [](World& w) {
         auto e = w.Make(w.Ask());
         e.nonce = w.Ask();
         return w.Send(e);
       }},
      {"signature_invalid",
       [](World& w) {
         w.key = PrivateKey::Generate(KeyType::kP256).value();
         return w.Send(w.Make(w.Ask()));
       }},
      {"not_tpm_generated", changed([](auto& f, auto&) { f.magic = 1; })},
      {"pcr_selection_mismatch", changed([](auto& f, auto&) {
         f.selections = {{tpm::Alg::kSha256, kMask & ~1U}};
       })},
      {"pcr_selection_mismatch", changed([](auto& f, auto&) {
         f.selections = {{tpm::Alg::kSha1, kMask}};
       })},
      {"pcr_selection_mismatch", changed([](auto& f, auto&) { f.selections.clear(); })},
      {"pcr_digest_mismatch", changed([](auto&, auto& e) { e.pcrs[1].second[0] ^= 1; })},
      {"aik_expired",
       [](World& w) {
         w.now += 90'000'000;
         return w.Send(w.Make(w.Ask()));
       }},
  };
  for (const auto& row : rows) {
    CAPTURE(row.code);
    World world;
    CHECK(CodeOf(row.send(world)) == row.code);
    CHECK(world.audit.records.empty());
    CHECK_FALSE(world.fence.Peek(world.host).last.has_value());
  }
}

TEST_CASE("no bit of accepted evidence can be flipped, and it can be cut nowhere") {
  World world;
  const Buffer good = EncodeEvidence(world.Make(world.Ask()).View());
  for (std::size_t bit = 0; bit < good.size() * 8; bit += 3) {
    Buffer bad = good;
    bad[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
    CHECK(world.Send(bad, world.channel).status >= 400);
  }
  for (std::size_t size = 0; size < good.size(); ++size)
    CHECK(world.Send(Buffer(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)), world.channel).status ==
          400);
  CHECK(world.audit.records.empty());
  CHECK(world.Send(good, world.channel).status == 200);
}

TEST_CASE("the same evidence twice is a replay, recorded as one") {
  World world;
  const auto evidence = world.Make(world.Ask());
  CHECK(world.Send(evidence).status == 200);
  CHECK(CodeOf(world.Send(evidence)) == "replay");
  REQUIRE(world.audit.records.size() == 2);
  CHECK(world.audit.records[1].find("\"outcome\":\"replay\"") != std::string::npos);
}

TEST_CASE("repeating refused evidence fills no disk: beyond a budget it is counted, not recorded") {
  World world;
  const auto evidence = world.Make(world.Ask());
  CHECK(world.Send(evidence).status == 200);
  for (std::uint32_t i = 0; i < attest::kRecordedRefusals; ++i) CHECK(CodeOf(world.Send(evidence)) == "replay");
  const std::size_t recorded = world.audit.records.size();
  for (int i = 0; i < 100; ++i) CHECK(CodeOf(world.Send(evidence)) == "too_many_refusals");
  CHECK(world.audit.records.size() == recorded);
  world.clock.clock += 10;
  CHECK(world.Send(world.Make(world.Ask())).status == 200);  // good evidence goes on
  world.now += 60'000;
  CHECK(CodeOf(world.Send(world.Make(world.Ask()))) == "replay");
}

TEST_CASE("32 racing copies of one submission give exactly one affirming record") {
  for (int round = 0; round < 10; ++round) {
    World world;
    const Buffer bytes = EncodeEvidence(world.Make(world.Ask()).View());
    std::atomic<int> judged = 0, replayed = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 32; ++i) {
      threads.emplace_back([&] {
        const std::string code = CodeOf(world.Send(bytes, world.channel));
        if (code == "ok") ++judged;
        if (code == "replay") ++replayed;
      });
    }
    for (auto& thread : threads) thread.join();
    CHECK(judged == 1);
    CHECK(replayed == 31);
    int affirming = 0;
    for (const auto& record : world.audit.records)
      if (record.find("\"tier\":\"affirming\"") != std::string::npos) ++affirming;
    CHECK(affirming == 1);
  }
}

TEST_CASE("counters: a clone, a cleared TPM, a power cut, and an operator's consent") {
  World world;
  (void)world.Attest();
  const auto sent = [&] { return CodeOf(world.Send(world.Make(world.Ask()))); };
  world.clock = {.clock = 900'000, .reset_count = 2, .restart_count = 0, .safe = true};
  CHECK(sent() == "cloned_state");
  world.clock = {.clock = 10, .reset_count = 1, .restart_count = 0, .safe = true};
  CHECK(sent() == "tpm_cleared");
  world.clock = {.clock = 90'000, .reset_count = 4, .restart_count = 0, .safe = true};
  CHECK(sent() == "cloned_state");
  world.clock.safe = false;
  const AttestReply reply = DecodeAttestReply(world.Send(world.Make(world.Ask())).body).value();
  CHECK(reply.tier == Tier::kAffirming);
  CHECK(reply.reasons.at(0).code == "clock_unsafe");
  world.clock = {.clock = 10, .reset_count = 1, .restart_count = 0, .safe = true};
  CHECK(sent() == "tpm_cleared");
  world.fence.AcceptReset(world.host, true);
  (void)world.store.SetResetAccepted(world.host, true);
  CHECK(sent() == "ok");
  CHECK_FALSE(world.store.hosts[world.host].reset_accepted);  // a restart does not bring the consent back
  world.clock = {.clock = 5, .reset_count = 0, .restart_count = 0, .safe = true};
  CHECK(sent() == "tpm_cleared");
}

TEST_CASE("a renewal's quote passes the same fence: refusals are recorded, a consent is used up durably") {
  World world;
  (void)world.Attest();
  const auto prove = [&](std::optional<Response>& answered) {
    Request request;
    request.body = EncodeEvidence(world.Make(world.Ask()).View());
    request.channel_binding = world.channel;
    Responder respond = [&](Response response) { answered = std::move(response); };
    const auto proven = world.attestation.Prove(std::move(request), respond);
    if (proven) respond({});
    return proven.has_value();
  };
  std::optional<Response> answered;
  const std::size_t records = world.audit.records.size();
  world.clock = {.clock = 10, .reset_count = 2, .restart_count = 0, .safe = true};
  CHECK_FALSE(prove(answered));
  CHECK(CodeOf(answered.value()) == "cloned_state");
  REQUIRE(world.audit.records.size() == records + 1);
  CHECK(world.audit.records.back().find("\"outcome\":\"cloned_state\"") != std::string::npos);
  world.fence.AcceptReset(world.host, true);
  (void)world.store.SetResetAccepted(world.host, true);
  answered.reset();
  CHECK(prove(answered));
  CHECK(answered.value().status == 200);
  CHECK_FALSE(world.store.hosts[world.host].reset_accepted);
  CHECK(world.fence.Peek(world.host).last->reset_count == 2);
  world.clock.clock = 10;  // the same counters again
  CHECK_FALSE(prove(answered));
  CHECK(CodeOf(answered.value()) == "replay");
}

TEST_CASE("without the gate nobody measured a caller, whatever the evidence says of it") {
  World world;
  config::Policy policy = TestPolicy();
  policy.titles[0].executables = {Sha256(AsBytes("game"))};
  world.policy.Set({std::move(policy), nullptr});
  TokenRequest request;
  request.audience = "title";
  request.match = "m";
  request.session_key_hash = Sha256(AsBytes("session"));
  request.caller = {.measured = true, .executable = Sha256(AsBytes("game"))};
  world.body.request = request;
  const AttestReply alone = world.Attest();
  CHECK(alone.result_token.empty());
  REQUIRE(alone.token_refusal.has_value());
  CHECK(alone.token_refusal->code == "audience_not_authorised");
  world.body.runtime.gate = GateState::kEnforce;  // only said so: nothing anchors it
  CHECK(world.Attest().token_refusal->code == "audience_not_authorised");
  config::Policy trusting = TestPolicy();
  trusting.titles[0].executables = {Sha256(AsBytes("game"))};
  trusting.self_reported_may_affirm = true;
  world.policy.Set({std::move(trusting), nullptr});
  CHECK_FALSE(world.Attest().result_token.empty());
  world.body.runtime.gate = GateState::kBroken;
  CHECK(world.Attest().result_token.empty());
  world.body.request->server_nonce =
      MakeServerNonce(Buffer(32, 7), "title", "m", Buffer(16, 1), request.session_key_hash);
  const AttestReply by_nonce = world.Attest();
  const KeySet keys = KeySet::ParseJwks(world.issuer.jwks()).value();
  Buffer scratch(by_nonce.result_token.size());
  const JwsCheck check = VerifyJws(keys, by_nonce.result_token, kResultTokenType, scratch);
  REQUIRE(check.fault == JwsFault::kNone);
  CHECK_FALSE(DecodeResultClaims(check.jws.payload).value().caller.measured);
}

TEST_CASE("a PCR that the policy does not list contradicts with both values in the reason") {
  World world;
  const Response response = world.Send(world.Make(world.Ask(), [](auto& fields, auto& evidence) {
    evidence.pcrs[1].second = Buffer(32, 0xAB);
    fields.pcr_digest = test::DigestOfPcrs(evidence.pcrs, kMask);
  }));
  const AttestReply reply = DecodeAttestReply(response.body).value();
  CHECK(reply.tier == Tier::kContraindicated);
  CHECK(reply.reasons.at(0).detail.find("PCR 4") != std::string::npos);
  CHECK(reply.reasons.at(0).detail.find("abab") != std::string::npos);
}

TEST_CASE("steady state is one round trip on the challenge that rode on the last result") {
  World world;
  AttestReply reply = world.Attest();
  for (int round = 0; round < 5; ++round) {
    world.now += 60'000;
    world.clock.clock += 60'000;
    world.body.runtime.log.clear();
    world.body.runtime.log_from = reply.next.runtime_from;
    world.body.runtime.log_base = world.pcr14;
    reply = DecodeAttestReply(world.Send(world.Make(reply.next.nonce)).body).value();
    CHECK(reply.outcome == AttestReply::Outcome::kJudged);
    CHECK(reply.tier == Tier::kAffirming);
  }
}

TEST_CASE("a quote taken at once and submitted late is asked for again, and the fence does not move") {
  World world;
  const AttestReply first = world.Attest();
  const auto early = world.Make(first.next.nonce, [](auto& fields, auto&) { fields.clock.clock += 1; });
  world.now += 16'000;
  const AttestReply reply = DecodeAttestReply(world.Send(early).body).value();
  CHECK(reply.outcome == AttestReply::Outcome::kFreshChallengeNeeded);
  CHECK(world.audit.records.size() == 1);
  CHECK(world.fence.Peek(world.host).last->clock == world.clock.clock);
  world.clock.clock += 16'000;
  CHECK(DecodeAttestReply(world.Send(world.Make(reply.next.nonce)).body).value().outcome ==
        AttestReply::Outcome::kJudged);
}

TEST_CASE("under freshness = asked a challenge that aged is asked for again even when the clocks agree") {
  World world;
  config::Policy policy = TestPolicy();
  policy.freshness_asked = true;
  world.policy.Set(LoadedPolicy{std::move(policy), nullptr});
  const AttestReply first = world.Attest();
  world.now += 60'000;
  world.clock.clock += 60'000;  // as TPM2_ClockSet could make it look
  CHECK(DecodeAttestReply(world.Send(world.Make(first.next.nonce)).body).value().outcome ==
        AttestReply::Outcome::kFreshChallengeNeeded);
}

TEST_CASE("a runtime log from the middle that is not known is wanted from the start") {
  World world;
  world.body.runtime.log_from = 5;
  world.body.runtime.log_base = world.pcr14;
  world.body.runtime.log.clear();
  const AttestReply reply = DecodeAttestReply(world.Send(world.Make(world.Ask())).body).value();
  CHECK(reply.outcome == AttestReply::Outcome::kFreshChallengeNeeded);
  CHECK(reply.next.runtime_from == 0);
}

TEST_CASE("a stranger's extend of PCR 14, a release and a first value that is not zero contradict") {
  World stranger;
  stranger.pcr14 = Sha256(AsBytes("stranger"));
  CHECK(stranger.Attest().reasons.at(0).code == "runtime_log_mismatch");
  World released;
  released.AddEntry(EntryKind::kRelease);
  CHECK(released.Attest().reasons.at(0).code == "gate_released");
  World based;
  based.body.runtime.log_base = Sha256(AsBytes("shim"));
  based.pcr14 = ExtendWithEntry(based.body.runtime.log_base, based.log[0]);
  CHECK(based.Attest().reasons.at(0).code == "runtime_log_base");
}

TEST_CASE("when the trail has stopped nothing is answered as judged") {
  World world;
  world.audit.stopped = MakeError(Code::kUnavailable, "disk full");
  const Response response = world.Send(world.Make(world.Ask()));
  CHECK(response.status == 503);
  CHECK(CodeOf(response) == "audit_unavailable");
  CHECK(world.attestation.counts().judged_affirming.value() == 0);
}

TEST_CASE("a retired AIK is refused even while it is cached") {
  World world;
  (void)world.Attest();
  world.store.hosts[world.host].generation = 2;
  world.fence.SetGeneration(world.host, 2);
  world.clock.clock += 10;
  CHECK(CodeOf(world.Send(world.Make(world.Ask()))) == "aik_retired");
}

TEST_CASE("a result token is issued to who may have it and refused to others by name") {
  World world;
  TokenRequest request;
  request.audience = "title";
  request.match = "m";
  request.session_key_hash = Sha256(AsBytes("k"));
  request.server_nonce = MakeServerNonce(Buffer(32, 7), "title", "m", Buffer(16, 1), request.session_key_hash);
  world.body.request = request;
  CHECK_FALSE(world.Attest().result_token.empty());
  CHECK(world.audit.records.back().find("\"audience\":\"title\"") != std::string::npos);
  world.body.request->match = "other";
  const AttestReply refused = world.Attest();
  CHECK(refused.result_token.empty());
  CHECK(refused.token_refusal->code == "audience_not_authorised");
  world.body.request->audience = "another title";
  CHECK(world.Attest().token_refusal->code == "unknown_audience");
}

}  // namespace
}  // namespace assay::server
