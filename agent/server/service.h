// SPDX-License-Identifier: Apache-2.0
// Answers requests on the server's thread; whatever needs the TPM goes through the queue and comes back by the
// inbox. Holds the only copy of what is pending.
#pragma once

#include <string>
#include <unordered_map>

#include "agent/quoter/budget.h"
#include "agent/quoter/quoter.h"
#include "agent/quoter/tpm_queue.h"
#include "agent/server/results.h"
#include "agent/server/server.h"
#include "agent/server/work_book.h"
#include "sdk/config/agent_config.h"

namespace assay::agent {

class Service final : public RequestHandler {
 public:
  struct Parts {
    Server* server;  // all outlive the service
    Inbox* inbox;
    TpmQueue* queue;
    Quoter* quoter;       // used on the TPM thread only
    tpm::Device* device;  // used on the TPM thread only, for doctor
    config::AgentConfig config;
  };
  explicit Service(Parts parts);

  void OnRequest(const Caller& caller, local::Request request) override;
  void OnClosed(const Caller& caller) override;
  std::uint64_t OnTick(std::uint64_t now_ms) override;

  void SetBudgets(const config::AgentConfig& config);
  void WakeRelay();  // the gate changed: evidence is wanted at once

 private:
  struct Waiter {
    std::uint64_t connection;
    std::uint64_t deadline_ms;
  };
  struct StatusWaiter {
    std::uint64_t ticket;
    Caller caller;
    std::uint64_t asked_ms;
  };

  void On(const Caller& caller, const local::StatusRequest& request);
  void On(const Caller& caller, const local::WaitWorkRequest& request);
  void On(const Caller& caller, const local::EvidenceRequest& request);
  void On(const Caller& caller, const local::DeliverRequest& request);
  void On(const Caller& caller, const local::ResultTokenRequest& request);
  void On(const Caller& caller, const local::HostTokenRequest& request);
  void On(const Caller& caller, const local::ShowEvidenceRequest& request);
  void On(const Caller& caller, const local::AttesterRequest& request);
  void On(const Caller& caller, const local::DoctorRequest& request);

  bool TakeBudget(const Caller& caller);
  void AnswerStatus(std::uint64_t ticket);  // once: a ticket answered or left is forgotten
  std::uint64_t AnswerLateStatus(std::uint64_t now_ms);
  void Answer(std::uint64_t connection, Buffer payload);
  void Refuse(std::uint64_t connection, ErrorReply error);
  void RefuseWith(std::uint64_t connection, const Error& error);
  // Runs `make` on the TPM thread and `done` with its result on the server's.
  template <typename T>
  void OnTpm(Priority priority, std::uint64_t connection, std::function<Result<T>()> make,
             std::function<void(Result<T>)> done);
  void OfferWork();
  void FinishWork(std::uint64_t relay, const local::DeliverRequest& request, const AttestReply* reply);

  Parts parts_;
  std::uint64_t started_ms_;
  WorkBook works_;
  Results results_;
  std::vector<Waiter> waiters_;
  std::vector<StatusWaiter> status_waiters_;
  std::uint64_t next_ticket_ = 1;
  QuoterFacts facts_;  // the last that the TPM thread told
  UserBudgets users_;
  Bucket relay_budget_;
  std::unordered_map<std::uint64_t, Bucket> connection_budgets_;
};

}  // namespace assay::agent
