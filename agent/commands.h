// SPDX-License-Identifier: Apache-2.0
// The commands of assay-agent. Each prints for people or as JSON, and returns the program's exit code.
#pragma once

#include <string>

#include "sdk/config/agent_config.h"

namespace assay::agent {

inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitProblem = 3;
inline constexpr int kExitNoAgent = 7;
inline constexpr int kExitNotImplemented = 69;

struct CommandOptions {
  std::string config = config::kDefaultAgentConfig;
  bool json = false;
};

int RunAgent(const CommandOptions& options);
int CheckConfig(const CommandOptions& options);
int ShowStatus(const CommandOptions& options);
int RunDoctor(const CommandOptions& options);
int ShowEvidence(const CommandOptions& options);

}  // namespace assay::agent
