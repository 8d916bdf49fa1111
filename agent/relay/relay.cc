// SPDX-License-Identifier: Apache-2.0
#include "agent/relay/relay.h"

#include <algorithm>
#include <utility>

#include "sdk/core/limits.h"

namespace assay::relay {
namespace {

constexpr std::uint64_t kAgentTimeoutMs = 60'000;  // a slow TPM with a queue before it
constexpr std::uint64_t kMaxWaitMs = 50'000;       // under the agent's own bound for waiting
constexpr std::uint64_t kWaitGraceMs = 10'000;
constexpr std::uint64_t kMinIntervalMs = 100;
constexpr int kBindingAttempts = 3;
constexpr unsigned kHttpOk = 200;
constexpr unsigned kHttpTooMany = 429;
constexpr unsigned kHttpServerError = 500;
constexpr std::uint64_t kDaySeconds = 86'400;

Round Failure(State state, ErrorReply error) {
  Round round;
  round.state = state;
  round.error = std::move(error);
  return round;
}

}  // namespace

std::string_view StateName(State state) noexcept {
  switch (state) {
    case State::kConnected: return "connected";
    case State::kBackingOff: return "backing_off";
    case State::kRefused: return "refused";
    case State::kAgentUnavailable: return "agent_unavailable";
    case State::kVerifierUnavailable: return "verifier_unavailable";
  }
  return "unknown";
}

Relay::Relay(Parts parts)
    : parts_(std::move(parts)), backoff_(parts_.config.first_backoff_ms, parts_.config.max_backoff_ms) {}

Round Relay::AgentFailed(const Error& error) {
  return Failure(State::kAgentUnavailable, {"agent_unavailable", error.detail,
                                            "start assay-agent and check agent_socket in the relay's configuration"});
}

Round Relay::AgentRefused(const ErrorReply& error) { return Failure(State::kBackingOff, error); }

Round Relay::VerifierFailed(const Error& error) {
  const bool wrong_peer = error.code == Code::kDenied;
  return Failure(
      wrong_peer ? State::kRefused : State::kVerifierUnavailable,
      {wrong_peer ? "verifier_certificate" : "verifier_unavailable", error.ToString().substr(0, limits::kReasonText),
       wrong_peer ? "check ca and server_name in the relay's configuration"
                  : "check the network and the verifier's address"});
}

Round Relay::Refused(const VerifierAnswer& answer) {
  const bool busy = answer.status == kHttpTooMany || answer.status >= kHttpServerError;
  const auto error = DecodeErrorReply(answer.body);
  Round round = Failure(busy ? State::kVerifierUnavailable : State::kRefused,
                        error.ok() ? *error
                                   : ErrorReply{"http_" + std::to_string(answer.status),
                                                "the verifier answered " + std::to_string(answer.status), ""});
  round.retry_after_ms = std::min<std::uint64_t>(answer.retry_after_s.value_or(0), kDaySeconds) * 1000;
  return round;
}

// A challenge to answer: the one that rode on the last answer, or one asked for now.
std::optional<Round> Relay::EnsureChallenge() {
  if (challenge_) return std::nullopt;
  const auto reply = parts_.agent->Call(local::AttesterRequest{}, kAgentTimeoutMs);
  if (!reply.ok()) return AgentFailed(reply.error());
  if (!reply->ok) return AgentRefused(reply->error);
  const auto attester = local::DecodeAttesterReply(reply->payload);
  if (!attester.ok()) return AgentFailed(attester.error());
  NoteRenewal(*attester);
  const auto answer = parts_.verifier->Post(route::kChallenge, EncodeChallengeRequest({attester->attester}));
  if (!answer.ok()) return VerifierFailed(answer.error());
  if (answer->status != kHttpOk) return Refused(*answer);
  auto challenge = DecodeChallenge(answer->body);
  if (!challenge.ok()) return VerifierFailed(challenge.error());
  challenge_ = std::move(challenge).value();
  return std::nullopt;
}

Round Relay::OnAnswer(const VerifierAnswer& answer) {
  if (answer.status != kHttpOk) return Refused(answer);
  auto reply = DecodeAttestReply(answer.body);
  if (!reply.ok()) return VerifierFailed(reply.error());
  challenge_ = reply->next;
  Round round;
  round.reply = std::move(reply).value();
  return round;
}

// Evidence over one challenge, sent over the connection that it is bound to.
Round Relay::Submit(const Challenge& challenge, std::uint64_t work) {
  for (int attempt = 0; attempt < kBindingAttempts; ++attempt) {
    const auto binding = parts_.verifier->ChannelBinding();
    if (!binding.ok()) return VerifierFailed(binding.error());
    local::EvidenceRequest request;
    request.challenge = challenge;
    request.channel_binding = ToBuffer(*binding);
    request.work = work;
    const auto evidence = parts_.agent->Call(request, kAgentTimeoutMs);
    if (!evidence.ok()) return AgentFailed(evidence.error());
    if (!evidence->ok) return AgentRefused(evidence->error);
    const auto answer = parts_.verifier->PostBound(route::kAttest, evidence->payload);
    if (answer.ok()) return OnAnswer(*answer);
    // The connection went away while the TPM worked: nothing was sent, so bind to the new one.
    if (answer.error().code != Code::kConflict) return VerifierFailed(answer.error());
  }
  return Failure(
      State::kVerifierUnavailable,
      {"verifier_unavailable", "the verifier closes each connection before evidence can be sent over it", ""});
}

// At most three submissions: one on a challenge that rode along and turned out stale, one on a fresh one, and one more
// when the verifier asks for it.
Round Relay::Attempt(std::uint64_t work) {
  bool retried = false;
  bool asked_again = false;
  for (;;) {
    const bool rode_along = challenge_.has_value();
    if (auto failed = EnsureChallenge()) return *failed;
    const Challenge challenge = *challenge_;
    challenge_.reset();  // answered once, whatever comes of it
    Round round = Submit(challenge, work);
    if (round.state == State::kRefused && rode_along && !retried && !asked_again) {
      retried = true;  // a verifier that started anew knows none of its old challenges
      continue;
    }
    if (round.reply && round.reply->outcome == AttestReply::Outcome::kFreshChallengeNeeded) {
      if (!asked_again) {
        asked_again = true;
        continue;
      }
      return Failure(State::kRefused, {"not_fresh", "the verifier keeps asking for a fresh challenge",
                                       "check that the TPM's clock advances: assay-agent doctor"});
    }
    return round;
  }
}

Round Relay::AttestOnce(std::uint64_t work) {
  Round round = Attempt(work);
  if (round.error.code == "work_gone") round = Attempt(0);  // the client left; the machine is attested all the same
  Deliver(round, work);
  SetState(round);
  return round;
}

void Relay::Deliver(const Round& round, std::uint64_t work) {
  if (round.state == State::kAgentUnavailable) return;
  local::DeliverRequest request;
  request.work = work;
  request.relay_state = StateName(round.state);
  if (round.reply) request.reply = EncodeAttestReply(*round.reply);
  else request.error = EncodeErrorReply(round.error);
  const auto reply = parts_.agent->Call(request, kAgentTimeoutMs);
  if (!reply.ok()) parts_.log("the agent did not take the answer: " + reply.error().ToString());
  else if (!reply->ok) parts_.log("the agent refused the answer: " + reply->error.detail);
}

void Relay::SetState(const Round& round) {
  if (started_ && round.state == state_) return;
  started_ = true;
  state_ = round.state;
  std::string line(StateName(state_));
  if (round.state != State::kConnected)
    line +=
        ": " + round.error.code + ": " + round.error.detail + (round.error.fix.empty() ? "" : "; " + round.error.fix);
  parts_.log(line);
}

void Relay::NoteRenewal(const local::AttesterReply& attester) {
  const std::uint64_t now = parts_.unix_now();
  if (attester.renew_after == 0 || now < attester.renew_after || now - renewal_noted_ < kDaySeconds) return;
  renewal_noted_ = now;
  parts_.log("the AIK certificate is due for renewal: run assay-enroll renew");
}

void Relay::Turn() {
  const std::uint64_t work = std::exchange(work_, 0);
  const Round round = AttestOnce(work);
  if (round.reply) {
    backoff_.Reset();
    WaitForWork(std::clamp(round.reply->next_in_ms, kMinIntervalMs, parts_.config.max_interval_ms));
    return;
  }
  parts_.sleep_ms(backoff_.Next(parts_.random(), round.retry_after_ms));
}

// Until evidence is due. An answer before that, with or without work, means: attest now.
void Relay::WaitForWork(std::uint64_t interval_ms) {
  const std::uint64_t due = parts_.now_ms() + interval_ms;
  for (std::uint64_t now = parts_.now_ms(); now < due; now = parts_.now_ms()) {
    const std::uint64_t wait = std::min(due - now, kMaxWaitMs);
    const auto reply = parts_.agent->Call(local::WaitWorkRequest{wait}, wait + kWaitGraceMs);
    if (!reply.ok() || !reply->ok) {
      SetState(reply.ok() ? AgentRefused(reply->error) : AgentFailed(reply.error()));
      parts_.sleep_ms(backoff_.Next(parts_.random(), 0));
      continue;
    }
    const auto work = local::DecodeWorkReply(reply->payload);
    if (!work.ok()) continue;
    work_ = *work;
    if (work_ != 0 || parts_.now_ms() - now < wait) return;
  }
}

}  // namespace assay::relay
