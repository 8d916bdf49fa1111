// SPDX-License-Identifier: Apache-2.0
// Facts and a policy to a verdict: pure, deterministic, every reason listed with a code, a sentence and the fix.
// Reads no clock, no store, no network. Never raises a tier: it starts at affirming and reasons lower it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "sdk/config/policy.h"
#include "sdk/core/evidence.h"
#include "sdk/core/protocol.h"
#include "sdk/core/token.h"

namespace assay::appraisal {

enum class RuntimeLog : std::uint8_t {
  kReplays,    // base and entries give the quoted PCR 14
  kMismatch,   // they do not: a stranger extended it, or entries were dropped
  kMalformed,  // an entry does not decode, or indices have gaps
  kBadBase,    // the log's first value is none that the policy accepts
};

// What CheckQuote, the fence and enrollment established, and what the agent claims beside it.
struct Facts {
  // Bound by the quote
  std::array<std::optional<Digest>, limits::kPcrs> pcrs{};  // of the policy's selection
  bool clock_unsafe = false;
  RuntimeLog runtime_log = RuntimeLog::kReplays;
  bool released = false;       // a release entry stands in this boot's log
  bool resumed = false;        // registers were reset under a running agent
  std::vector<Digest> agents;  // agents that this boot's identity entries name, newest last
  // From enrollment
  bool ek_chain = false;  // EK certificate to a configured root, else a bare key
  bool weak_device_id = false;
  // Claims of the agent, as good as runtime_anchor
  const RuntimeEvidence* runtime = nullptr;
  const PlatformEvidence* platform = nullptr;
  RuntimeAnchor anchor = RuntimeAnchor::kSelfReported;  // what the verifier accepted, not what was claimed
};

struct Verdict {
  Tier tier = Tier::kNone;
  TrustVector vector;
  std::vector<Reason> reasons;  // worst first
};

Verdict Judge(const Facts& facts, const config::Policy& policy);

}  // namespace assay::appraisal
