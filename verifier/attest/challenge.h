// SPDX-License-Identifier: Apache-2.0
// Challenges without state: nonce = time | random | HMAC(K, attester | selection | time | random). K is drawn at
// start, so a restart voids open challenges and a flood of requests evicts nothing. Immutable; any thread.
#pragma once

#include <cstdint>

#include "sdk/core/bytes.h"
#include "sdk/core/crypto.h"
#include "sdk/core/limits.h"
#include "sdk/core/tpm.h"

namespace assay::attest {

enum class ChallengeFault : std::uint8_t {
  kNone,
  kForeign,  // not made by this verifier since its start, or for another attester or another PCR selection
  kExpired,
  kFuture,  // dated ahead of the verifier's clock: the clock was set back
};

struct ChallengeCheck {
  ChallengeFault fault = ChallengeFault::kForeign;
  std::uint64_t age_ms = 0;  // since issue; only with kNone
};

class ChallengeKeeper {
 public:
  ChallengeKeeper();                                  // draws K
  explicit ChallengeKeeper(Bytes key) : key_(key) {}  // several verifiers, tests

  std::array<std::uint8_t, limits::kChallenge> Issue(const Digest& attester, tpm::PcrSelection selection,
                                                     std::uint64_t now_ms) const noexcept;
  ChallengeCheck Check(Bytes nonce, const Digest& attester, tpm::PcrSelection selection, std::uint64_t now_ms,
                       std::uint64_t lifetime_ms) const noexcept;

 private:
  HmacKey key_;
};

}  // namespace assay::attest
