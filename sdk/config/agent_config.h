// SPDX-License-Identifier: Apache-2.0
// The agent's configuration file (default /etc/assay/agent.toml). Every key has a default; unknown keys are errors.
#pragma once

#include <cstdint>
#include <string>

#include "sdk/config/enrollment.h"
#include "sdk/core/bytes.h"
#include "sdk/core/result.h"

namespace assay::config {

inline constexpr char kDefaultAgentConfig[] = "/etc/assay/agent.toml";
inline constexpr char kDefaultAgentSocket[] = "/run/assay/agent.sock";

// Quotes a minute and how many may come at once.
struct QuoteBudget {
  std::uint64_t per_minute = 0;
  std::uint64_t burst = 0;
};

struct AgentConfig {
  // [tpm]
  std::string tcti = "device:/dev/tpmrm0";
  bool allow_developer_tcti = false;  // TCTIs that leave this machine or start programs
  std::uint8_t pcr = 14;              // the register of the agent's own log
  std::string firmware_log;           // empty: none is sent
  // [agent]
  std::string socket = kDefaultAgentSocket;
  std::string state_dir = kDefaultStateDir;
  std::string relay_user = "assay-relay";  // name or number
  std::uint64_t max_connections = 256;
  std::uint64_t max_connections_per_user = 32;
  std::uint64_t io_timeout_ms = 10'000;  // for the rest of a frame begun, and for a reply to be read
  // [budget]
  QuoteBudget relay{1200, 120};
  QuoteBudget user{240, 30};
  QuoteBudget connection{120, 20};

  Digest digest{};  // SHA-256 of the file's bytes, zeros when defaults were used: goes into the identity entry
};

// TPM simulators and network TCTIs need allow_developer_tcti; "swtpm:path=..." and "device:/dev/..." do not.
Status CheckTcti(const std::string& tcti, bool allow_developer);

Result<AgentConfig> ParseAgentConfig(std::string_view text, std::string name);
// An absent file at the default path means defaults; any other absent file is an error.
Result<AgentConfig> LoadAgentConfig(const std::string& path);

}  // namespace assay::config
