// SPDX-License-Identifier: Apache-2.0
#include "agent/server/results.h"

#include <algorithm>

namespace assay::agent {

void Results::SetRelayState(std::string state, std::uint64_t now_ms) {
  relay_state_ = std::move(state);
  relay_seen_ms_ = now_ms;
}

void Results::OnEvidence(std::uint64_t relay, const ResultBasis& basis) { in_flight_[relay] = basis; }

void Results::OnVerdict(std::uint64_t relay, AttestReply reply, std::uint64_t now_ms) {
  const auto found = in_flight_.find(relay);
  if (found != in_flight_.end()) {
    last_ = found->second;
    in_flight_.erase(found);
  }
  reply.result_token.clear();
  verdict_ = LastVerdict{now_ms, std::move(reply)};
  failure_.reset();
}

void Results::OnFailure(ErrorReply error, std::uint64_t now_ms) { failure_ = LastFailure{now_ms, std::move(error)}; }

void Results::OnToken(uid_t uid, const std::string& audience) {
  if (!last_) return;
  std::erase_if(tokens_, [&](const TokenBasis& one) { return one.uid == uid && one.audience == audience; });
  tokens_.push_front({uid, audience, *last_});
  if (tokens_.size() > kMaxBases) tokens_.pop_back();
}

const ResultBasis* Results::BasisFor(uid_t uid, const std::string& audience) const {
  const auto found = std::find_if(tokens_.begin(), tokens_.end(),
                                  [&](const TokenBasis& one) { return one.uid == uid && one.audience == audience; });
  if (found != tokens_.end()) return &found->basis;
  return last_ ? &*last_ : nullptr;
}

}  // namespace assay::agent
