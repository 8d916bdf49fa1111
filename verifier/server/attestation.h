// SPDX-License-Identifier: Apache-2.0
// One attestation from bytes to reply, in the order of docs/architecture.md: challenge, quote, freshness, runtime
// log, fence, appraisal, token, record, reply. Nothing leaves before its record is durable.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "sdk/core/evidence.h"
#include "sdk/core/protocol.h"
#include "verifier/appraisal/appraise.h"
#include "verifier/attest/challenge.h"
#include "verifier/attest/check_quote.h"
#include "verifier/attest/fence.h"
#include "verifier/audit/audit_log.h"
#include "verifier/server/http.h"
#include "verifier/server/metrics.h"
#include "verifier/server/policy_holder.h"
#include "verifier/server/verdict_writer.h"
#include "verifier/store/aik_cache.h"
#include "verifier/token/result_issuer.h"

namespace assay::server {

struct AttestationSettings {
  std::uint64_t challenge_lifetime_ms = 120'000;  // prefetched challenges: two intervals
  std::uint64_t reattest_interval_ms = 60'000;
  std::function<std::uint64_t()> now_ms;  // wall clock, milliseconds since the epoch
};

// All outlive the Attestation.
struct AttestationDeps {
  store::AikCache& aiks;
  attest::Fence& fence;
  const attest::ChallengeKeeper& challenges;
  audit::AuditLog& audit;
  VerdictWriter& verdicts;
  const PolicyHolder& policy;
  const token::ResultIssuer& issuer;
  // An operator's consent to lower counters was used up: makes that durable, then goes on. Any thread.
  std::function<void(const Digest& host, std::function<void()> then)> consent_used;
};

// What an accepted quote proved, for routes that need only that (renewal of an AIK certificate).
struct ProvenQuote {
  store::AikRecordPtr aik;
  tpm::ClockInfo clock;
};

class Attestation {
 public:
  Attestation(AttestationDeps deps, AttestationSettings settings);

  void HandleChallenge(Request request, Responder respond);
  void HandleAttest(Request request, Responder respond);
  // Challenge, quote, age and fence of an evidence body, without appraisal; for /v1/enroll/renew. Without a value it has
  // answered, or will once the refusal's record is durable. With one, answer through `respond` as it is afterwards: it
  // waits until the store has forgotten an operator's consent that the quote used up.
  std::optional<ProvenQuote> Prove(Request request, Responder& respond);

  struct Counts {
    Counter judged_affirming, judged_warning, judged_contraindicated, refused, asked_again, tokens, audit_failures;
  };
  const Counts& counts() const noexcept { return counts_; }

 private:
  struct Case;
  Challenge NextChallenge(const Digest& attester, const config::Policy& policy, const attest::HostState& state) const;
  void Refuse(const Responder& respond, unsigned status, ErrorReply reply);
  bool Open(const Request& request, Case& c, ErrorReply& refusal, unsigned& status);
  bool CheckIt(const Request& request, Case& c, ErrorReply& refusal, unsigned& status);
  bool AskAgain(Case& c, const Responder& respond);
  bool PassFence(Case& c, const Responder& respond);
  void JudgeAndReply(Case& c, Responder respond);
  void Record(Case& c, AttestReply reply, Responder respond);
  Responder AfterConsent(const Case& c, Responder respond) const;

  AttestationDeps deps_;
  AttestationSettings settings_;
  Counts counts_;
};

}  // namespace assay::server
