// SPDX-License-Identifier: Apache-2.0
#include "perf/chain_inside.h"

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "perf/bench.h"
#include "verifier/appraisal/runtime_replay.h"
#include "verifier/server/audit_records.h"

namespace assay::perf {
namespace {

constexpr int kRepeats = 200;

std::uint64_t NowMs() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
}

// Waits for completions that run on other threads.
class Countdown {
 public:
  explicit Countdown(std::size_t count) : left_(count) {}
  void Done() {
    const std::lock_guard lock(mutex_);
    if (--left_ == 0) zero_.notify_one();
  }
  void Wait() {
    std::unique_lock lock(mutex_);
    zero_.wait(lock, [this] { return left_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable zero_;
  std::size_t left_;
};

Inside::Part Loop(std::string name, std::function<void()> operation) {
  return {std::move(name), [operation = std::move(operation)] {
            const double start = CpuNanoseconds();
            for (int i = 0; i < kRepeats; ++i) operation();
            return (CpuNanoseconds() - start) / kRepeats;
          }};
}

token::ResultIssuer MakeIssuer() {
  token::IssuerKeys keys{.signing = PrivateKey::Generate(KeyType::kP256).value(),
                         .also_published = {},
                         .device_master = Secret::CopyOf(Buffer(32, 9)),
                         .device_key_version = 1};
  return token::ResultIssuer::Create(std::move(keys), "https://localhost:8443").value();
}

}  // namespace

Inside::Inside(const Site& site, std::vector<Machine>& machines)
    : machines_(machines),
      store_(store::SqliteStore::Open({.path = dir_ / "store.sqlite"}).value()),
      log_(audit::FileAuditLog::Open({.directory = dir_ / "audit", .visit = {}},
                                     audit::AuditKeys::Create(dir_ / "audit.key").value())
               .value()),
      aiks_(*store_, 1U << 14),
      verdicts_(*store_),
      policy_({site.Policy(), nullptr}),
      issuer_(MakeIssuer()),
      attestation_({.aiks = aiks_,
                    .fence = fence_,
                    .challenges = challenges_,
                    .audit = *log_,
                    .verdicts = verdicts_,
                    .policy = policy_,
                    .issuer = issuer_,
                    .consent_used = [](const Digest&, const std::function<void()>& then) { then(); }},
                   {.now_ms = NowMs}) {
  Enroll(*store_, machines_);
  FirstChallenges();
}

void Inside::FirstChallenges() {
  for (const auto& machine : machines_) {
    server::Request request;
    request.body = EncodeChallengeRequest({machine.attester()});
    attestation_.HandleChallenge(std::move(request), [this](const server::Response& response) {
      Expect(response.status == 200, "no challenge");
      next_.push_back(DecodeChallenge(response.body).value());
    });
  }
}

double Inside::Round(bool with_token) {
  const auto policy = policy_.Get();
  std::vector<server::Request> requests(machines_.size());
  std::vector<server::Response> responses(machines_.size());
  for (std::size_t i = 0; i < machines_.size(); ++i) {
    requests[i].body =
        machines_[i].Answer(next_[i], channel_, with_token ? std::optional(AskForToken(*policy)) : std::nullopt);
    requests[i].channel_binding = channel_;
  }
  Countdown left(machines_.size());
  const double start = CpuNanoseconds();
  for (std::size_t i = 0; i < machines_.size(); ++i) {
    attestation_.HandleAttest(std::move(requests[i]), [&responses, &left, i](server::Response response) {
      responses[i] = std::move(response);
      left.Done();
    });
  }
  left.Wait();
  verdicts_.Flush();
  const double spent = CpuNanoseconds() - start;
  for (std::size_t i = 0; i < machines_.size(); ++i) {
    Expect(responses[i].status == 200, "an attestation was refused");
    next_[i] = Accept(responses[i].body, with_token);
  }
  return spent / static_cast<double>(machines_.size());
}

// A record as long as that of a routine attestation, as many at once as there are machines.
double Inside::AuditAlone() {
  const std::vector<Reason> none;
  const std::string line = server::EncodeRecord(server::AttestRecord{
      .outcome = "judged", .generation = 1, .clock = {}, .at_ms = NowMs(), .tier = Tier::kAffirming, .reasons = &none});
  Countdown left(machines_.size());
  const double start = CpuNanoseconds();
  for (std::size_t i = 0; i < machines_.size(); ++i) {
    const Status queued = log_->Append(line, [&left](const Result<std::uint64_t>& sequence) {
      Expect(sequence.ok(), "a record was not made durable");
      left.Done();
    });
    Expect(queued.ok(), "a record was not taken");
  }
  left.Wait();
  return (CpuNanoseconds() - start) / static_cast<double>(machines_.size());
}

double Inside::RowsAlone() {
  std::vector<store::VerdictRow> rows;
  for (const auto& machine : machines_) {
    store::VerdictRow row;
    row.host_id = machine.host_row().host_id;
    row.audit_sequence = 1'000'000'000 + static_cast<std::uint64_t>(++rows_at_);
    row.at_ms = static_cast<std::int64_t>(NowMs());
    row.outcome = "judged";
    row.tier = Tier::kAffirming;
    row.reasons_json = "[]";
    row.clock = {.host_id = row.host_id,
                 .reset_count = 3,
                 .clock_ms = 1'000'000 + row.audit_sequence,
                 .audit_sequence = row.audit_sequence,
                 .runtime_index = 1};
    rows.push_back(std::move(row));
  }
  const double start = CpuNanoseconds();
  Expect(store_->PutVerdicts(rows).ok(), "verdict rows cannot be written");
  return (CpuNanoseconds() - start) / static_cast<double>(machines_.size());
}

std::vector<Inside::Part> Inside::Parts() {
  struct Scene {
    Buffer bytes;
    Evidence evidence;
    EvidenceBody body;
    tpm::ClockInfo clock;
    std::vector<Reason> reasons;
    appraisal::Facts facts;
    std::uint64_t tick = 0;
  };
  const auto policy = policy_.Get();
  const auto scene = std::make_shared<Scene>();
  const store::AikRecordPtr aik = aiks_.Find(machines_.front().attester()).value();
  scene->bytes = machines_.front().Answer(next_.front(), channel_, AskForToken(*policy));
  scene->evidence = DecodeEvidence(scene->bytes).value();
  scene->body = DecodeEvidenceBody(scene->evidence.body).value();
  scene->clock = tpm::DecodeAttest(scene->evidence.quote).value().clock;
  for (std::size_t i = 0; i < scene->evidence.pcrs.count; ++i) {
    scene->facts.pcrs[scene->evidence.pcrs.items[i].pcr] = ToDigest(scene->evidence.pcrs.items[i].value).value();
  }
  scene->facts.ek_chain = true;
  scene->facts.runtime = &scene->body.runtime;
  scene->facts.platform = &scene->body.platform;
  const attest::QuoteExpectation expected{
      .key = &aik->key,
      .scheme = aik->aik.scheme,
      .extra_data = ExtraData(QuoteTag::kEvidence, scene->evidence.nonce, Sha256(scene->evidence.body), channel_),
      .selection = policy->selection};
  const Digest other_host = Sha256(AsBytes("a host of this part alone"));
  const std::uint64_t now = NowMs();
  return {
      Loop("part: evidence decoded",
           [scene] {
             Expect(DecodeEvidenceBody(DecodeEvidence(scene->bytes).value().body).ok(), "evidence does not decode");
           }),
      Loop("part: AIK found, policy taken",
           [this, scene] {
             Expect(aiks_.Find(scene->body.attester).ok() && policy_.Get() != nullptr, "an AIK is missing");
           }),
      Loop("part: challenge checked",
           [this, scene, policy, now] {
             const auto check =
                 challenges_.Check(scene->evidence.nonce, scene->body.attester, policy->selection, now, 1U << 30);
             Expect(check.fault == attest::ChallengeFault::kNone, "the challenge was refused");
           }),
      Loop("part: body digest and extraData",
           [this, scene] {
             Keep(ExtraData(QuoteTag::kEvidence, scene->evidence.nonce, Sha256(scene->evidence.body), channel_));
           }),
      Loop("part: quote checked",
           [scene, aik, expected] {
             Expect(attest::CheckQuote(scene->evidence, expected).fault == attest::QuoteFault::kNone,
                    "the quote was refused");
           }),
      Loop("part: fence read and passed",
           [this, scene, other_host] {
             const attest::HostState state = fence_.Peek(other_host);
             attest::FenceAttempt attempt{.generation = 1,
                                          .clock = scene->clock,
                                          .new_anchor = attest::Anchor{1, scene->clock},
                                          .runtime = state.runtime};
             attempt.clock.clock += ++scene->tick;
             Expect(fence_.Pass(other_host, attempt) == attest::FenceOutcome::kPassed, "the fence refused");
           }),
      Loop("part: appraised",
           [scene, policy] {
             Expect(appraisal::Judge(scene->facts, *policy).tier == Tier::kAffirming, "not affirming");
           }),
      Loop("part: next challenge issued",
           [this, scene, policy, now] { Keep(challenges_.Issue(scene->body.attester, policy->selection, now)); }),
      Loop("part: record's line written",
           [scene, now] {
             Keep(server::EncodeRecord(server::AttestRecord{.outcome = "judged",
                                                            .generation = 1,
                                                            .clock = scene->clock,
                                                            .at_ms = now,
                                                            .tier = Tier::kAffirming,
                                                            .reasons = &scene->reasons}));
           }),
      {"part: record made durable, all in flight", [this] { return AuditAlone(); }},
      Loop("part: reply encoded",
           [] {
             AttestReply reply;
             reply.next.nonce = Buffer(limits::kChallenge, 1);
             Keep(EncodeAttestReply(reply));
           }),
      {"part: verdict row written, batched", [this] { return RowsAlone(); }},
      Loop("part: result token authorised and signed",
           [this, scene, policy, aik] {
             const auto title = token::ResultIssuer::Authorise(*scene->body.request, *policy);
             Expect(std::holds_alternative<const config::Title*>(title), "no token for this request");
             const token::ResultSubject subject{.ek_spki_digest = {},
                                                .attester = scene->body.attester,
                                                .aik_spki = aik->spki,
                                                .aik_scheme = aik->aik.scheme,
                                                .policy = policy->digest,
                                                .clock = scene->clock};
             Expect(issuer_
                        .Issue(*std::get<const config::Title*>(title), *scene->body.request,
                               {.tier = Tier::kAffirming, .vector = {}, .reasons = {}}, scene->facts, subject)
                        .ok(),
                    "no token");
           }),
  };
}

}  // namespace assay::perf
