// SPDX-License-Identifier: Apache-2.0
// The gate as the agent sees it: facts for evidence, digests for the log, and who a caller is. The enforcer
// implements it; until a gate is loaded AbsentGate says so and measures nobody.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sdk/core/bytes.h"
#include "sdk/core/evidence.h"

namespace assay::agent {

struct GateFacts {
  GateState state = GateState::kAbsent;
  RuntimeAnchor anchor = RuntimeAnchor::kSelfReported;
  Digest bpf_object{};
  std::vector<std::string> hooks;
  Digest policy{};
  std::uint64_t policy_version = 0;
  std::string scope = "none";
  std::vector<std::pair<std::string, std::uint64_t>> counters;
  std::uint64_t drops = 0;
};

class Gate {
 public:
  virtual ~Gate() = default;
  virtual GateFacts Facts() = 0;                    // TPM thread, once for each evidence
  virtual std::vector<Digest> TakeFirstSeen() = 0;  // TPM thread: digests first seen in scope since the last call
  virtual CallerIdentity CallerOf(int socket) = 0;  // server thread, once for each connection
};

class AbsentGate final : public Gate {
 public:
  GateFacts Facts() override { return {}; }
  std::vector<Digest> TakeFirstSeen() override { return {}; }
  CallerIdentity CallerOf(int) override { return {}; }
};

}  // namespace assay::agent
