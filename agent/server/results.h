// SPDX-License-Identifier: Apache-2.0
// What the agent remembers of the verifier's answers: the last verdict for status, the relay's state, and what each
// user's host tokens have to refer to. It judges nothing: a verdict here is hearsay from the relay. One thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "agent/quoter/quoter.h"
#include "sdk/core/protocol.h"

namespace assay::agent {

struct LastVerdict {
  std::uint64_t at_ms = 0;
  AttestReply reply;  // without its token
};
struct LastFailure {
  std::uint64_t at_ms = 0;
  ErrorReply error;
};

class Results {
 public:
  static constexpr std::size_t kMaxBases = 256;

  void SetRelayState(std::string state, std::uint64_t now_ms);
  // Evidence left for the verifier over this relay connection: its answer will refer to this basis.
  void OnEvidence(std::uint64_t relay, const ResultBasis& basis);
  void OnVerdict(std::uint64_t relay, AttestReply reply, std::uint64_t now_ms);
  void OnFailure(ErrorReply error, std::uint64_t now_ms);
  // A result token went to this user for this audience, out of the last verdict on that connection.
  void OnToken(uid_t uid, const std::string& audience);
  void OnRelayClosed(std::uint64_t relay) { in_flight_.erase(relay); }

  // What a host token of this user for this audience refers to: the token's verdict, else the last verdict.
  const ResultBasis* BasisFor(uid_t uid, const std::string& audience) const;

  const std::string& relay_state() const noexcept { return relay_state_; }
  std::uint64_t relay_seen_ms() const noexcept { return relay_seen_ms_; }
  const std::optional<LastVerdict>& verdict() const noexcept { return verdict_; }
  const std::optional<LastFailure>& failure() const noexcept { return failure_; }

 private:
  struct TokenBasis {
    uid_t uid;
    std::string audience;
    ResultBasis basis;
  };
  std::string relay_state_ = "agent_has_no_relay";
  std::uint64_t relay_seen_ms_ = 0;
  std::map<std::uint64_t, ResultBasis> in_flight_;  // by relay connection: one submission each
  std::optional<ResultBasis> last_;
  std::optional<LastVerdict> verdict_;
  std::optional<LastFailure> failure_;
  std::deque<TokenBasis> tokens_;  // newest first, bounded
};

}  // namespace assay::agent
