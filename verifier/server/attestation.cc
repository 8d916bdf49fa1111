// SPDX-License-Identifier: Apache-2.0
#include "verifier/server/attestation.h"

#include <utility>

#include "verifier/appraisal/runtime_replay.h"
#include "verifier/server/audit_records.h"

namespace assay::server {
namespace {

constexpr std::uint8_t kRuntimeLogPcr = 14;
constexpr char kCbor[] = "application/cbor";

Response CborResponse(unsigned status, Buffer body) {
  Response response;
  response.status = status;
  response.content_type = kCbor;
  response.body = std::move(body);
  return response;
}

ErrorReply ChallengeRefusal(const attest::ChallengeCheck& check) {
  switch (check.fault) {
    case attest::ChallengeFault::kExpired:
      return {"challenge_expired", "the challenge was issued " + std::to_string(check.age_ms) + " ms ago",
              "ask for a fresh challenge"};
    case attest::ChallengeFault::kFuture:
      return {"challenge_future", "the challenge is dated ahead of this verifier's clock",
              "check the verifier's clock, then ask for a fresh challenge"};
    default:
      return {"challenge_foreign",
              "this verifier did not make that challenge for this attester and PCR selection since its start",
              "ask for a fresh challenge"};
  }
}

ErrorReply QuoteRefusal(attest::QuoteFault fault) {
  using attest::QuoteFault;
  std::string detail;
  switch (fault) {
    case QuoteFault::kScheme: detail = "the signature uses another algorithm than this AIK was enrolled with"; break;
    case QuoteFault::kSignature: detail = "the signature over the quote does not verify under the enrolled AIK"; break;
    case QuoteFault::kMagic: detail = "the signed structure was not made inside a TPM"; break;
    case QuoteFault::kType: detail = "the signed structure is no quote"; break;
    case QuoteFault::kBinding: detail = "the quote does not bind this challenge, body and connection"; break;
    case QuoteFault::kSelection: detail = "the quote covers other PCRs than were asked for"; break;
    case QuoteFault::kPcrDigest: detail = "the PCR values sent are not those that were signed"; break;
    default: detail = "the quote or its signature does not decode"; break;
  }
  return {std::string(attest::QuoteFaultCode(fault)), std::move(detail),
          "take a fresh quote for a fresh challenge on this connection"};
}

struct FenceRefusal {
  std::string_view outcome;
  ErrorReply reply;
};

FenceRefusal RefusalOf(attest::FenceOutcome outcome) {
  using attest::FenceOutcome;
  switch (outcome) {
    case FenceOutcome::kReplay:
      return {"replay",
              {"replay", "the TPM's clock is not later than in the last evidence accepted from this host",
               "take a fresh quote for a fresh challenge"}};
    case FenceOutcome::kClonedState:
      return {"cloned_state",
              {"cloned_state", "the TPM's counters are those of an older or copied state",
               "an operator may allow it: assayctl hosts accept-reset HOST --reason TEXT"}};
    case FenceOutcome::kTpmCleared:
      return {"tpm_cleared",
              {"tpm_cleared", "the TPM's counters started over, as after TPM2_Clear",
               "an operator may allow it: assayctl hosts accept-reset HOST --reason TEXT"}};
    default:
      return {"aik_retired",
              {"aik_retired", "this AIK was replaced by a later one of the same host",
               "attest with the current AIK, or enroll again"}};
  }
}

}  // namespace

// One request on its way: what was decoded (views into `bytes`) and what was proved.
struct Attestation::Case {
  Buffer bytes;
  PolicyHolder::Snapshot policy;
  std::uint64_t now_ms = 0;
  Evidence evidence;
  EvidenceBody body;
  store::AikRecordPtr aik;
  std::uint64_t challenge_age_ms = 0;
  tpm::ClockInfo clock;
  attest::HostState state;
  attest::Freshness freshness = attest::Freshness::kAskAgain;
  appraisal::RuntimeReplay replay;
  bool clock_unsafe = false;

  const Digest& host() const { return aik->host.host_id; }
};

Attestation::Attestation(AttestationDeps deps, AttestationSettings settings)
    : deps_(deps), settings_(std::move(settings)) {}

Challenge Attestation::NextChallenge(const Digest& attester, const config::Policy& policy,
                                     const attest::HostState& state) const {
  Challenge challenge;
  const auto nonce = deps_.challenges.Issue(attester, policy.selection, settings_.now_ms());
  challenge.nonce.assign(nonce.begin(), nonce.end());
  challenge.selection = policy.selection;
  challenge.lifetime_ms = settings_.challenge_lifetime_ms;
  challenge.runtime_from = state.runtime.next_index;
  return challenge;
}

void Attestation::HandleChallenge(Request request, Responder respond) {
  const auto asked = DecodeChallengeRequest(request.body);
  if (!asked.ok())
    return Refuse(respond, 400, {"malformed", asked.error().detail, "send a ChallengeRequest (docs/evidence.cddl)"});
  // A challenge is worth nothing without the AIK, so unknown attesters get one too: no lookup for strangers to burn.
  const auto aik = deps_.aiks.FindCached(asked->attester);
  const attest::HostState state = aik ? deps_.fence.Peek(aik->host.host_id) : attest::HostState{};
  respond(CborResponse(200, EncodeChallenge(NextChallenge(asked->attester, *deps_.policy.Get(), state))));
}

void Attestation::Refuse(const Responder& respond, unsigned status, ErrorReply reply) {
  counts_.refused.Add();
  respond(CborResponse(status, EncodeErrorReply(reply)));
}

bool Attestation::Open(const Request& request, Case& c, ErrorReply& refusal, unsigned& status) {
  status = 400;
  const auto evidence = DecodeEvidence(c.bytes);
  if (!evidence.ok()) {
    refusal = {"evidence_malformed", evidence.error().detail, "send Evidence as docs/evidence.cddl says"};
    return false;
  }
  c.evidence = *evidence;
  auto body = DecodeEvidenceBody(c.evidence.body);
  if (!body.ok()) {
    refusal = {"evidence_malformed", body.error().detail, "send an evidence body as docs/evidence.cddl says"};
    return false;
  }
  c.body = *std::move(body);
  c.policy = deps_.policy.Get();
  c.now_ms = settings_.now_ms();
  status = 403;
  auto aik = deps_.aiks.Find(c.body.attester);
  // The fence's generation beats a cached record: a rotation since it was read makes it stale.
  if (aik.ok() && (*aik)->host.generation < deps_.fence.Peek((*aik)->host.host_id).generation)
    aik = deps_.aiks.Reload(c.body.attester);
  if (!aik.ok()) {
    if (aik.error().code == Code::kNotFound) {
      refusal = {"attester_unknown", "no AIK with id " + ToHex(c.body.attester) + " is enrolled here",
                 "enroll this machine: assay-enroll enroll"};
    } else {
      status = 503;
      refusal = {"store_unavailable", "the store could not be read: " + aik.error().detail, "try again later"};
    }
    return false;
  }
  c.aik = *std::move(aik);
  if (c.aik->aik.generation < c.aik->host.generation) {
    refusal = RefusalOf(attest::FenceOutcome::kRetiredKey).reply;
    return false;
  }
  if (c.aik->host.state != "active") {
    refusal = {"host_replaced", "an operator replaced this host by another",
               "enroll the machine again, or ask the operator"};
    return false;
  }
  if (c.aik->aik.not_after < static_cast<std::int64_t>(c.now_ms / 1000)) {
    refusal = {"aik_expired", "the AIK's certificate is no longer valid",
               "enroll again: assay-enroll enroll; renew in time with assay-enroll renew"};
    return false;
  }
  if (!request.channel_binding) {
    refusal = {"no_channel", "evidence is taken over TLS only", "connect to the network listener"};
    return false;
  }
  return true;
}

bool Attestation::CheckIt(const Request& request, Case& c, ErrorReply& refusal, unsigned& status) {
  status = 403;
  const auto challenge = deps_.challenges.Check(c.evidence.nonce, c.body.attester, c.policy->selection, c.now_ms,
                                                settings_.challenge_lifetime_ms);
  if (challenge.fault != attest::ChallengeFault::kNone) {
    refusal = ChallengeRefusal(challenge);
    return false;
  }
  c.challenge_age_ms = challenge.age_ms;
  const attest::QuoteExpectation expected{
      .key = &c.aik->key,
      .scheme = c.aik->aik.scheme,
      .extra_data = ExtraData(QuoteTag::kEvidence, c.evidence.nonce, Sha256(c.evidence.body), *request.channel_binding),
      .selection = c.policy->selection};
  const attest::QuoteCheck check = attest::CheckQuote(c.evidence, expected);
  if (check.fault != attest::QuoteFault::kNone) {
    refusal = QuoteRefusal(check.fault);
    return false;
  }
  c.clock = check.attest.clock;
  c.state = deps_.fence.Peek(c.host());
  c.freshness = attest::JudgeFreshness({.challenge_age_ms = c.challenge_age_ms,
                                        .now_ms = c.now_ms,
                                        .quoted = c.clock,
                                        .anchor = c.state.anchor,
                                        .always_ask = c.policy->freshness_asked});
  return true;
}

// The evidence is genuine but not provably recent, or continues a log we do not know: one more round trip, no verdict.
bool Attestation::AskAgain(Case& c, const Responder& respond) {
  if (const PcrValue* pcr14 = c.evidence.pcrs.Find(kRuntimeLogPcr)) {
    c.replay = appraisal::ReplayRuntimeLog(c.body.runtime, ToDigest(pcr14->value).value(), c.clock, c.state.runtime);
    if (c.replay.state == appraisal::RuntimeLog::kReplays && c.body.runtime.log_from == 0 &&
        !c.policy->AcceptsPcr14Base(c.body.runtime.log_base)) {
      c.replay.state = appraisal::RuntimeLog::kBadBase;
    }
  }
  if (c.freshness != attest::Freshness::kAskAgain && !c.replay.resend_from_start) return false;
  AttestReply reply;
  reply.outcome = AttestReply::Outcome::kFreshChallengeNeeded;
  reply.next = NextChallenge(c.body.attester, *c.policy, c.state);
  if (c.replay.resend_from_start) reply.next.runtime_from = 0;
  counts_.asked_again.Add();
  respond(CborResponse(200, EncodeAttestReply(reply)));
  return true;
}

bool Attestation::PassFence(Case& c, const Responder& respond) {
  attest::FenceAttempt attempt{
      .generation = c.aik->aik.generation, .clock = c.clock, .new_anchor = {}, .runtime = c.replay.known};
  if (c.freshness == attest::Freshness::kYoung) attempt.new_anchor = attest::Anchor{c.now_ms, c.clock};
  const attest::FenceOutcome outcome = deps_.fence.Pass(c.host(), attempt);
  if (outcome == attest::FenceOutcome::kPassed || outcome == attest::FenceOutcome::kPassedUnsafe) {
    c.clock_unsafe = outcome == attest::FenceOutcome::kPassedUnsafe;
    return true;
  }
  if (deps_.fence.CountRefusal(c.host(), c.now_ms) == attest::RefusalBudget::kSpent) {
    // The same bytes cost their sender nothing to repeat: beyond the budget they are counted, and fill no disk.
    Refuse(respond, 429,
           {"too_many_refusals", "this host's evidence was refused too often within a minute",
            "take a fresh quote for a fresh challenge, and wait a minute"});
    return false;
  }
  // A genuine signature was refused: that is an event of this host, so it is recorded before it is answered.
  FenceRefusal refused = RefusalOf(outcome);
  counts_.refused.Add();
  AttestRecord record{.outcome = refused.outcome,
                      .host = c.host(),
                      .attester = c.body.attester,
                      .generation = c.aik->aik.generation,
                      .clock = c.clock,
                      .challenge_age_ms = c.challenge_age_ms,
                      .policy = c.policy->digest,
                      .at_ms = c.now_ms};
  store::VerdictRow row{.host_id = c.host(),
                        .audit_sequence = 0,
                        .at_ms = static_cast<std::int64_t>(c.now_ms),
                        .outcome = std::string(refused.outcome),
                        .tier = Tier::kNone,
                        .reasons_json = "[]",
                        .clock = {}};
  Buffer body = EncodeErrorReply(refused.reply);
  const Status queued = deps_.audit.Append(
      EncodeRecord(record),
      [this, respond, row = std::move(row), body = std::move(body)](Result<std::uint64_t> sequence) mutable {
        if (!sequence.ok()) {
          counts_.audit_failures.Add();
          return respond(CborResponse(
              503, EncodeErrorReply({"audit_unavailable", "the refusal could not be recorded", "try again later"})));
        }
        row.audit_sequence = *sequence;
        deps_.verdicts.Put(std::move(row));
        respond(CborResponse(403, std::move(body)));
      });
  if (!queued.ok()) {
    counts_.audit_failures.Add();
    respond(CborResponse(503, EncodeErrorReply({"audit_unavailable", queued.error().detail, "try again later"})));
  }
  return false;
}

void Attestation::JudgeAndReply(Case& c, Responder respond) {
  appraisal::Facts facts;
  for (std::size_t i = 0; i < c.evidence.pcrs.count; ++i) {
    const PcrValue& item = c.evidence.pcrs.items[i];
    facts.pcrs[item.pcr] = ToDigest(item.value).value();
  }
  facts.clock_unsafe = c.clock_unsafe;
  facts.runtime_log = c.replay.state;
  facts.released = c.replay.known.released;
  facts.resumed = c.replay.known.resumed;
  facts.agents = c.replay.known.agents;
  facts.ek_chain = c.aik->host.ek_class == store::EkClass::kChain;
  facts.weak_device_id = c.aik->host.weak_device_id;
  facts.runtime = &c.body.runtime;
  facts.platform = &c.body.platform;
  facts.anchor = RuntimeAnchor::kSelfReported;  // boot appraisal that could prove more is not part of this build
  appraisal::Verdict verdict = appraisal::Judge(facts, *c.policy);

  AttestReply reply;
  reply.tier = verdict.tier;
  reply.next_in_ms = settings_.reattest_interval_ms;
  attest::HostState after = c.state;
  after.runtime = c.replay.known;
  reply.next = NextChallenge(c.body.attester, *c.policy, after);
  if (c.body.request) {
    // Nobody but the gate measures a caller. Without it, or while nothing anchors what the gate reports, such a claim is
    // only the sender's word: it counts where a policy opts in by name.
    const GateState gate = c.body.runtime.gate;
    const bool anchored = facts.anchor == RuntimeAnchor::kMeasured || c.policy->self_reported_may_affirm;
    if (gate == GateState::kAbsent || gate == GateState::kBroken || !anchored) c.body.request->caller = {};
    const auto title = token::ResultIssuer::Authorise(*c.body.request, *c.policy);
    if (const auto* refusal = std::get_if<ErrorReply>(&title)) {
      reply.token_refusal = *refusal;
    } else {
      const token::ResultSubject subject{
          .ek_spki_digest = c.aik->host.ek_spki_digest,
          .weak_device_id = c.aik->host.weak_device_id,
          .attester = c.body.attester,
          .aik_spki = c.aik->spki,
          .aik_scheme = c.aik->aik.scheme,
          .policy = c.policy->digest,
          .clock = c.clock,
          .now = static_cast<std::int64_t>(c.now_ms / 1000),
          .next_attestation = static_cast<std::int64_t>((c.now_ms + settings_.reattest_interval_ms) / 1000)};
      auto issued =
          deps_.issuer.Issue(*std::get<const config::Title*>(title), *c.body.request, verdict, facts, subject);
      if (issued.ok()) {
        reply.result_token = std::move(issued->token);
        counts_.tokens.Add();
      } else {
        reply.token_refusal = ErrorReply{"token_unavailable", issued.error().detail, "try again later"};
      }
    }
  }
  reply.reasons = std::move(verdict.reasons);
  Record(c, std::move(reply), std::move(respond));
}

void Attestation::Record(Case& c, AttestReply reply, Responder respond) {
  AttestRecord record{.outcome = "judged",
                      .host = c.host(),
                      .attester = c.body.attester,
                      .generation = c.aik->aik.generation,
                      .clock = c.clock,
                      .challenge_age_ms = c.challenge_age_ms,
                      .policy = c.policy->digest,
                      .at_ms = c.now_ms};
  record.tier = reply.tier;
  record.reasons = &reply.reasons;
  record.request = c.body.request ? &*c.body.request : nullptr;
  record.token_issued = !reply.result_token.empty();
  store::VerdictRow row{.host_id = c.host(),
                        .audit_sequence = 0,
                        .at_ms = static_cast<std::int64_t>(c.now_ms),
                        .outcome = "judged",
                        .tier = reply.tier,
                        .reasons_json = ReasonsJson(reply.reasons),
                        .clock = {.host_id = c.host(),
                                  .reset_count = c.clock.reset_count,
                                  .restart_count = c.clock.restart_count,
                                  .clock_ms = c.clock.clock,
                                  .audit_sequence = 0,
                                  .runtime_index = c.replay.known.next_index,
                                  .pcr14 = c.replay.known.pcr14}};
  std::string line = EncodeRecord(record);
  const Responder on_failure = respond;
  respond = AfterConsent(c, std::move(respond));
  const Status queued = deps_.audit.Append(std::move(line), [this, respond = std::move(respond),
                                                             reply = std::move(reply), row = std::move(row)](
                                                                Result<std::uint64_t> sequence) mutable {
    if (!sequence.ok()) {
      counts_.audit_failures.Add();
      return respond(CborResponse(
          503, EncodeErrorReply({"audit_unavailable", "the verdict could not be recorded: " + sequence.error().detail,
                                 "the operator must restore the audit trail's disk"})));
    }
    switch (reply.tier) {
      case Tier::kAffirming: counts_.judged_affirming.Add(); break;
      case Tier::kWarning: counts_.judged_warning.Add(); break;
      default: counts_.judged_contraindicated.Add(); break;
    }
    row.audit_sequence = *sequence;
    row.clock.audit_sequence = *sequence;
    reply.audit_sequence = *sequence;
    deps_.verdicts.Put(std::move(row));
    respond(CborResponse(200, EncodeAttestReply(reply)));
  });
  if (!queued.ok()) {
    counts_.audit_failures.Add();
    on_failure(CborResponse(503, EncodeErrorReply({"audit_unavailable", queued.error().detail, "try again later"})));
  }
}

// The reply waits until the store has forgotten a consent that this quote used up.
Responder Attestation::AfterConsent(const Case& c, Responder respond) const {
  if (!c.state.reset_accepted) return respond;
  return [this, host = c.host(), respond = std::move(respond)](Response response) {
    deps_.consent_used(host, [respond, response = std::move(response)] { respond(response); });
  };
}

void Attestation::HandleAttest(Request request, Responder respond) {
  Case c;
  c.bytes = std::move(request.body);
  ErrorReply refusal;
  unsigned status = 400;
  if (!Open(request, c, refusal, status) || !CheckIt(request, c, refusal, status))
    return Refuse(respond, status, std::move(refusal));
  if (AskAgain(c, respond)) return;
  if (!PassFence(c, respond)) return;
  JudgeAndReply(c, std::move(respond));
}

std::optional<ProvenQuote> Attestation::Prove(Request request, Responder& respond) {
  Case c;
  c.bytes = std::move(request.body);
  ErrorReply refusal;
  unsigned status = 400;
  if (!Open(request, c, refusal, status) || !CheckIt(request, c, refusal, status)) {
    Refuse(respond, status, std::move(refusal));
    return std::nullopt;
  }
  if (c.freshness == attest::Freshness::kAskAgain) {
    Refuse(respond, 403,
           {"challenge_expired", "a renewal needs a challenge younger than 5 s", "ask for a fresh challenge"});
    return std::nullopt;
  }
  c.replay.known = c.state.runtime;  // a renewal says nothing of the runtime log
  if (!PassFence(c, respond)) return std::nullopt;
  respond = AfterConsent(c, std::move(respond));
  return ProvenQuote{c.aik, c.clock};
}

}  // namespace assay::server
