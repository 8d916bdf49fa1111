// SPDX-License-Identifier: Apache-2.0
// What the relay talks to, as seams: the agent's socket on one side, the verifier's HTTPS on the other.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "sdk/config/relay_config.h"
#include "sdk/core/agent_protocol.h"
#include "sdk/core/bytes.h"
#include "sdk/core/result.h"

namespace assay::relay {

class AgentLink {
 public:
  virtual ~AgentLink() = default;
  // Connects when there is no connection. kUnavailable or kTimeout when the agent does not answer.
  virtual Result<local::Reply> Call(const local::Request& request, std::uint64_t timeout_ms) = 0;
};

struct VerifierAnswer {
  unsigned status = 0;
  Buffer body;
  std::optional<std::uint64_t> retry_after_s;
};

class VerifierLink {
 public:
  virtual ~VerifierLink() = default;
  virtual Result<VerifierAnswer> Post(std::string_view path, Bytes body) = 0;
  // Connects when needed; RFC 9266 tls-exporter of the connection that is up.
  virtual Result<Digest> ChannelBinding() = 0;
  // Only over the connection whose binding was read last: kConflict when it is gone, and nothing was sent.
  virtual Result<VerifierAnswer> PostBound(std::string_view path, Bytes body) = 0;
};

std::unique_ptr<AgentLink> MakeAgentLink(std::string socket_path);
Result<std::unique_ptr<VerifierLink>> MakeVerifierLink(const config::RelayConfig& config);

}  // namespace assay::relay
