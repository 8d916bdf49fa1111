// SPDX-License-Identifier: Apache-2.0
// The running agent: builds its parts in order, serves until a signal, and leaves a clean stop in the log.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "agent/gate.h"
#include "sdk/config/agent_config.h"
#include "sdk/tpm/device.h"

namespace assay::agent {

struct DaemonParts {
  config::AgentConfig config;
  std::string config_path;  // read again on SIGHUP
  std::unique_ptr<tpm::Device> device;
  std::unique_ptr<Gate> gate;
  std::function<void(const std::string&)> log;  // one line each
};

// Blocks SIGTERM, SIGINT and SIGHUP in this and all later threads and takes them itself: call before any thread is
// made. Returns after SIGTERM or SIGINT, with everything closed.
Status RunDaemon(DaemonParts parts);

}  // namespace assay::agent
