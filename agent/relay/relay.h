// SPDX-License-Identifier: Apache-2.0
// The relay: carries challenges, evidence and answers between the agent and the verifier. One submission is in
// flight; the next challenge rides on each answer, so that steady state is one round trip. It judges nothing and
// holds no key: what passes through it is bound by the TPM's quote and by the agent's own checks.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "agent/relay/backoff.h"
#include "agent/relay/links.h"
#include "sdk/core/protocol.h"

namespace assay::relay {

enum class State : std::uint8_t {
  kConnected,   // the last submission was judged
  kBackingOff,  // the agent could not make evidence
  kRefused,     // the verifier answered, and not with a verdict
  kAgentUnavailable,
  kVerifierUnavailable,
};
std::string_view StateName(State state) noexcept;  // "connected", "backing_off", ...

// What one attestation came to.
struct Round {
  State state = State::kConnected;
  std::optional<AttestReply> reply;  // kConnected only
  ErrorReply error;                  // otherwise
  std::uint64_t retry_after_ms = 0;  // asked for by the verifier
};

class Relay {
 public:
  struct Parts {
    AgentLink* agent;  // all outlive the relay
    VerifierLink* verifier;
    config::RelayConfig config;
    std::function<void(const std::string&)> log;
    std::function<std::uint64_t()> now_ms;  // monotonic
    std::function<void(std::uint64_t)> sleep_ms;
    std::function<std::uint64_t()> random;
    std::function<std::uint64_t()> unix_now;  // seconds since the epoch
  };
  explicit Relay(Parts parts);

  // One attestation for a client's request (work) or routine (0), delivered to the agent whatever came of it.
  Round AttestOnce(std::uint64_t work);
  // One turn of the endless loop: attest, then wait until it is due or a client asks, or back off.
  void Turn();
  State state() const noexcept { return state_; }

 private:
  Round Attempt(std::uint64_t work);
  Round Submit(const Challenge& challenge, std::uint64_t work);
  std::optional<Round> EnsureChallenge();
  Round OnAnswer(const VerifierAnswer& answer);
  Round AgentFailed(const Error& error);
  Round AgentRefused(const ErrorReply& error);
  Round VerifierFailed(const Error& error);
  Round Refused(const VerifierAnswer& answer);
  void Deliver(const Round& round, std::uint64_t work);
  void WaitForWork(std::uint64_t interval_ms);
  void SetState(const Round& round);
  void NoteRenewal(const local::AttesterReply& attester);

  Parts parts_;
  Backoff backoff_;
  State state_ = State::kBackingOff;
  bool started_ = false;                // a state was reported
  std::optional<Challenge> challenge_;  // the next one
  std::uint64_t work_ = 0;              // a client's request taken up, or 0
  std::uint64_t renewal_noted_ = 0;
};

}  // namespace assay::relay
