// SPDX-License-Identifier: Apache-2.0
// The agent's local socket in test mode: answers status, result-token and host-token requests with what a SoftAttester
// makes, everything else with a refusal. One connection after the other, so that a stalled client holds up the next
// for at most kStallMs. For developers and tests; it judges nobody.
#pragma once

#include <atomic>
#include <string>

#include "sdk/core/agent_protocol.h"
#include "sdk/core/handle.h"
#include "sdk/tools/soft_attester.h"

namespace assay::tools {

inline constexpr int kStallMs = 2000;

struct FakeAgentOptions {
  std::string issuer;
  std::int64_t lifetime_s = 120;
  Tier tier = Tier::kAffirming;
  bool host_tokens = true;
};

class FakeAgent {
 public:
  FakeAgent(SoftAttester attester, FakeAgentOptions options)
      : attester_(std::move(attester)), options_(std::move(options)) {}

  local::Reply Answer(const local::Request& request, std::int64_t now_ms) const;
  // Serves until `stop` is set (looked at every 100 ms at least).
  Status Serve(const Fd& listener, const std::atomic<bool>& stop) const;

 private:
  void ServeOne(const Fd& peer) const;
  SoftAttester attester_;
  FakeAgentOptions options_;
};

Result<Fd> ListenUnix(const std::string& path);  // mode 0600; an existing file at the path is an error

}  // namespace assay::tools
