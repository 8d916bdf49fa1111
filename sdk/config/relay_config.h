// SPDX-License-Identifier: Apache-2.0
// The relay's configuration file (default /etc/assay/relay.toml): where the agent and the verifier are.
#pragma once

#include <cstdint>
#include <string>

#include "sdk/config/agent_config.h"
#include "sdk/core/result.h"

namespace assay::config {

inline constexpr char kDefaultRelayConfig[] = "/etc/assay/relay.toml";

struct RelayConfig {
  std::string agent_socket = kDefaultAgentSocket;
  std::string verifier_host;  // from verifier = "https://host:port"
  std::uint16_t verifier_port = 8443;
  std::string ca_file;      // PEM: the only roots that the verifier's certificate may chain to
  std::string server_name;  // expected in the certificate; the host by default
  std::uint64_t request_timeout_ms = 30'000;
  std::uint64_t first_backoff_ms = 1'000;  // doubled each time, full jitter
  std::uint64_t max_backoff_ms = 300'000;
  std::uint64_t max_interval_ms = 3'600'000;  // routine evidence at least this often, whatever the verifier says
};

Result<RelayConfig> ParseRelayConfig(std::string_view text, std::string name);
Result<RelayConfig> LoadRelayConfig(const std::string& path);

// "https://host:port" or "https://[v6]:port"; the port may be left out (8443).
struct VerifierAddress {
  std::string host;
  std::uint16_t port = 8443;
};
Result<VerifierAddress> ParseVerifierUrl(std::string_view url);

}  // namespace assay::config
