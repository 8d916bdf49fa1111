// SPDX-License-Identifier: Apache-2.0
#include "agent/server/service.h"

#include <algorithm>
#include <ctime>

#include "agent/doctor.h"
#include "agent/server/status.h"

namespace assay::agent {
namespace {

constexpr std::uint64_t kMaxWaitMs = 60'000;
constexpr std::uint64_t kDefaultDeadlineMs = 10'000;
constexpr std::uint64_t kEarlyMs = 200;
constexpr std::uint64_t kStatusWaitMs = 3'000;

std::uint64_t UnixNow() noexcept { return static_cast<std::uint64_t>(std::time(nullptr)); }

// Errors of the quoter as clients branch on them.
ErrorReply ToReply(const Error& error) {
  ErrorReply reply = ErrorReplyOf(error).error;
  if (error.code == Code::kNotFound) reply = {"not_enrolled", error.detail, "run assay-enroll enroll"};
  return reply;
}

Buffer TextPayload(const std::string& text) { return ToBuffer(AsBytes(text)); }

}  // namespace

Service::Service(Parts parts) : parts_(std::move(parts)), started_ms_(MonotonicMs()), users_(parts_.config.user) {
  facts_.attester_problem = "the TPM has not answered yet";
}

void Service::SetBudgets(const config::AgentConfig& config) {
  parts_.config.relay = config.relay;
  parts_.config.connection = config.connection;
  parts_.config.user = config.user;
  users_ = UserBudgets(config.user);
}

void Service::OnRequest(const Caller& caller, local::Request request) {
  const RequestRow* row = FindRow(local::KindOf(request));
  if (row->quotes && !TakeBudget(caller)) {
    Refuse(caller.connection, {"busy", "this caller used up its budget of quotes",
                               "ask less often; see [budget] in the agent's configuration"});
    return;
  }
  std::visit([&](const auto& one) { On(caller, one); }, request);
}

bool Service::TakeBudget(const Caller& caller) {
  const std::uint64_t now = MonotonicMs();
  if (caller.relay) return relay_budget_.Take(parts_.config.relay, now);
  return connection_budgets_[caller.connection].Take(parts_.config.connection, now) && users_.Take(caller.uid, now);
}

void Service::Answer(std::uint64_t connection, Buffer payload) {
  local::Reply reply;
  reply.ok = true;
  reply.payload = std::move(payload);
  parts_.server->Reply(connection, reply);
}

void Service::Refuse(std::uint64_t connection, ErrorReply error) {
  local::Reply reply;
  reply.error = std::move(error);
  parts_.server->Reply(connection, reply);
}

void Service::RefuseWith(std::uint64_t connection, const Error& error) { Refuse(connection, ToReply(error)); }

template <typename T>
void Service::OnTpm(Priority priority, std::uint64_t connection, std::function<Result<T>()> make,
                    std::function<void(Result<T>)> done) {
  Inbox* inbox = parts_.inbox;
  const Status queued = parts_.queue->Submit(priority, [inbox, make = std::move(make), done = std::move(done)] {
    inbox->Post([done, result = make()]() mutable { done(std::move(result)); });
  });
  if (!queued.ok()) RefuseWith(connection, queued.error());
}

// Facts come from the TPM thread; when a TPM hangs, status is what people look at, so it is answered without them.
void Service::On(const Caller& caller, const local::StatusRequest&) {
  const std::uint64_t ticket = next_ticket_++;
  status_waiters_.push_back({ticket, caller, MonotonicMs()});
  Quoter* quoter = parts_.quoter;
  Inbox* inbox = parts_.inbox;
  const Status queued = parts_.queue->Submit(Priority::kHostToken, [this, inbox, quoter, ticket] {
    inbox->Post([this, ticket, facts = quoter->Facts()] {
      facts_ = facts;
      AnswerStatus(ticket);
    });
  });
  if (!queued.ok()) AnswerStatus(ticket);
}

void Service::AnswerStatus(std::uint64_t ticket) {
  const auto found = std::find_if(status_waiters_.begin(), status_waiters_.end(),
                                  [ticket](const StatusWaiter& one) { return one.ticket == ticket; });
  if (found == status_waiters_.end()) return;
  const StatusWaiter waiter = *found;
  status_waiters_.erase(found);
  StatusInput input;
  input.facts = &facts_;
  input.results = &results_;
  input.tcti = parts_.config.tcti;
  input.pcr = parts_.config.pcr;
  input.now_ms = MonotonicMs();
  input.uptime_ms = input.now_ms - started_ms_;
  input.tpm_silent_ms = input.now_ms - waiter.asked_ms;
  input.unix_now = UnixNow();
  input.connections = parts_.server->connections();
  input.tokens_waiting = works_.size();
  input.quotes_waiting = parts_.queue->waiting();
  input.full = waiter.caller.relay || waiter.caller.uid == 0;
  Answer(waiter.caller.connection, TextPayload(StatusJson(input)));
}

std::uint64_t Service::AnswerLateStatus(std::uint64_t now_ms) {
  std::vector<std::uint64_t> late;
  std::uint64_t next = UINT64_MAX;
  for (const StatusWaiter& waiter : status_waiters_) {
    if (waiter.asked_ms + kStatusWaitMs <= now_ms) late.push_back(waiter.ticket);
    else next = std::min(next, waiter.asked_ms + kStatusWaitMs);
  }
  for (const std::uint64_t ticket : late) AnswerStatus(ticket);
  return next;
}

void Service::On(const Caller& caller, const local::AttesterRequest&) {
  Quoter* quoter = parts_.quoter;
  OnTpm<config::EnrollmentRecord>(
      Priority::kEvidence, caller.connection, [quoter] { return quoter->Attester(); },
      [this, connection = caller.connection](Result<config::EnrollmentRecord> record) {
        if (!record.ok()) return RefuseWith(connection, record.error());
        Answer(connection, local::EncodeAttesterReply({record->attester, record->not_after, record->renew_after}));
      });
}

void Service::On(const Caller& caller, const local::WaitWorkRequest& request) {
  waiters_.push_back({caller.connection, MonotonicMs() + std::min(request.wait_ms, kMaxWaitMs)});
  OfferWork();
}

// Each waiting relay gets the oldest request that nobody has in hand.
void Service::OfferWork() {
  while (!waiters_.empty()) {
    const std::uint64_t relay = waiters_.front().connection;
    const auto work = works_.TakeNext(relay);
    if (!work) return;
    waiters_.erase(waiters_.begin());
    Answer(relay, local::EncodeWorkReply(*work));
  }
}

void Service::WakeRelay() {
  for (const Waiter& waiter : std::exchange(waiters_, {})) Answer(waiter.connection, local::EncodeWorkReply(0));
}

void Service::On(const Caller& caller, const local::EvidenceRequest& request) {
  EvidenceOrder order;
  order.challenge = request.challenge;
  order.channel_binding = request.channel_binding;
  if (request.work != 0) {
    const Work* work = works_.Find(request.work);
    if (work == nullptr || work->taken_by != caller.connection) {
      return Refuse(caller.connection,
                    {"work_gone", "the client that asked for this token left or ran out of time", ""});
    }
    order.token = work->order;
  }
  Quoter* quoter = parts_.quoter;
  OnTpm<MadeEvidence>(
      Priority::kEvidence, caller.connection,
      [quoter, order = std::move(order)] { return quoter->MakeEvidence(order); },
      [this, connection = caller.connection](Result<MadeEvidence> made) {
        if (!made.ok()) return RefuseWith(connection, made.error());
        if (!parts_.server->IsOpen(connection)) return;  // nobody would ever clear it
        results_.OnEvidence(connection, made->basis);
        Answer(connection, std::move(made->evidence));
      });
}

void Service::On(const Caller& caller, const local::DeliverRequest& request) {
  const std::uint64_t now = MonotonicMs();
  results_.SetRelayState(request.relay_state, now);
  std::optional<AttestReply> reply;
  if (!request.reply.empty()) {
    auto decoded = DecodeAttestReply(request.reply);
    if (!decoded.ok()) return RefuseWith(caller.connection, decoded.error());
    reply = std::move(decoded).value();
  }
  if (!request.error.empty()) {
    auto failure = DecodeErrorReply(request.error);
    if (!failure.ok()) return RefuseWith(caller.connection, failure.error());
    results_.OnFailure(std::move(failure).value(), now);
  }
  const bool judged = reply && reply->outcome == AttestReply::Outcome::kJudged;
  if (judged) results_.OnVerdict(caller.connection, *reply, now);
  if (request.work != 0) FinishWork(caller.connection, request, judged ? &*reply : nullptr);
  Answer(caller.connection, {});
}

// A verdict or a failure ends the client's request; a fresh challenge needed keeps it with the relay.
void Service::FinishWork(std::uint64_t relay, const local::DeliverRequest& request, const AttestReply* reply) {
  const Work* found = works_.Find(request.work);
  if (found == nullptr || found->taken_by != relay || (reply == nullptr && request.error.empty())) return;
  const Work work = *works_.Remove(request.work);
  if (reply == nullptr) return Refuse(work.client, results_.failure()->error);
  if (!reply->result_token.empty()) {
    results_.OnToken(work.uid, work.order.audience);
    return Answer(work.client, TextPayload(reply->result_token));
  }
  if (reply->token_refusal) return Refuse(work.client, *reply->token_refusal);
  Refuse(work.client,
         {"no_token", "the verifier judged this machine " + std::string(TierName(reply->tier)) + " and issued no token",
          "run assay-agent status for the reasons"});
}

void Service::On(const Caller& caller, const local::ResultTokenRequest& request) {
  TokenOrder order{request.audience, request.match, request.server_nonce, request.session_key_hash, caller.identity};
  // A little early, so that the client reads why before its own deadline ends the call.
  const std::uint64_t asked = request.deadline_ms == 0 ? kDefaultDeadlineMs : std::min(request.deadline_ms, kMaxWaitMs);
  const std::uint64_t wait = asked - std::min(asked / 10, kEarlyMs);
  const auto work = works_.Add(caller, std::move(order), MonotonicMs() + wait);
  if (!work.ok()) return RefuseWith(caller.connection, work.error());
  OfferWork();
}

void Service::On(const Caller& caller, const local::HostTokenRequest& request) {
  const ResultBasis* basis = results_.BasisFor(caller.uid, request.audience);
  if (basis == nullptr) {
    return Refuse(caller.connection,
                  {"no_result_yet", "a host token never stands alone, and this machine has no result yet",
                   "ask for a result token first"});
  }
  Quoter* quoter = parts_.quoter;
  OnTpm<Buffer>(
      Priority::kHostToken, caller.connection,
      [quoter, request, basis = *basis] { return quoter->MakeHostToken(request, basis); },
      [this, connection = caller.connection](Result<Buffer> token) {
        if (!token.ok()) return RefuseWith(connection, token.error());
        Answer(connection, std::move(token).value());
      });
}

void Service::On(const Caller& caller, const local::ShowEvidenceRequest&) {
  EvidenceOrder order;  // a nonce of zeros is no challenge that any verifier made
  order.challenge.nonce.assign(limits::kChallenge, 0);
  order.challenge.selection = {tpm::Alg::kSha256, 0xFF | (1U << parts_.config.pcr)};
  Quoter* quoter = parts_.quoter;
  OnTpm<MadeEvidence>(
      Priority::kBackground, caller.connection,
      [quoter, order = std::move(order)] { return quoter->MakeEvidence(order); },
      [this, connection = caller.connection](Result<MadeEvidence> made) {
        if (!made.ok()) return RefuseWith(connection, made.error());
        const auto text = EvidenceJson(made->evidence);
        if (!text.ok()) return RefuseWith(connection, text.error());
        Answer(connection, TextPayload(*text));
      });
}

void Service::On(const Caller& caller, const local::DoctorRequest&) {
  DoctorInput input{parts_.device, parts_.config, parts_.quoter, {}};
  OnTpm<std::vector<Finding>>(
      Priority::kHostToken, caller.connection, [input]() -> Result<std::vector<Finding>> { return Examine(input); },
      [this, connection = caller.connection](Result<std::vector<Finding>> findings) {
        if (!findings.ok()) return RefuseWith(connection, findings.error());
        Answer(connection, TextPayload(FindingsJson(*findings)));
      });
}

void Service::OnClosed(const Caller& caller) {
  connection_budgets_.erase(caller.connection);
  std::erase_if(waiters_, [&](const Waiter& waiter) { return waiter.connection == caller.connection; });
  std::erase_if(status_waiters_,
                [&](const StatusWaiter& waiter) { return waiter.caller.connection == caller.connection; });
  results_.OnRelayClosed(caller.connection);
  if (works_.OnClosed(caller.connection)) OfferWork();
}

std::uint64_t Service::OnTick(std::uint64_t now_ms) {
  for (const Work& work : works_.TakeExpired(now_ms)) {
    Refuse(work.client,
           {"timeout", "no answer of the verifier before the deadline; the relay is " + results_.relay_state(),
            "run assay-agent status; give the request more time if the verifier is far"});
  }
  std::uint64_t next = std::min(works_.NextDeadline(), AnswerLateStatus(now_ms));
  std::vector<std::uint64_t> over;
  for (const Waiter& waiter : waiters_) {
    if (waiter.deadline_ms <= now_ms) over.push_back(waiter.connection);
    else next = std::min(next, waiter.deadline_ms);
  }
  std::erase_if(waiters_, [now_ms](const Waiter& waiter) { return waiter.deadline_ms <= now_ms; });
  for (const std::uint64_t connection : over) Answer(connection, local::EncodeWorkReply(0));
  return next;
}

}  // namespace assay::agent
