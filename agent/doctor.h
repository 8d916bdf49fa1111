// SPDX-License-Identifier: Apache-2.0
// Checks of what the agent stands on. Each finding is fine, or names cause and fix. Runs on the TPM thread of a
// running agent, or in `assay-agent doctor` itself when none runs.
#pragma once

#include <string>
#include <vector>

#include "agent/quoter/quoter.h"
#include "sdk/config/agent_config.h"
#include "sdk/tpm/device.h"

namespace assay::agent {

struct Finding {
  std::string check;  // stable: "tpm", "lockout", "clock", "pcr_bank", "log", "aik", "firmware_log"
  bool fine = false;
  std::string detail;
  std::string fix;  // empty when fine
};

struct DoctorInput {
  tpm::Device* device = nullptr;
  config::AgentConfig config;
  Quoter* quoter = nullptr;  // of a running agent; null: the log is looked at on disk, and not changed
  Digest boot_id{};
};
std::vector<Finding> Examine(const DoctorInput& input);

std::string FindingsJson(const std::vector<Finding>& findings);
bool AllFine(const std::vector<Finding>& findings) noexcept;

}  // namespace assay::agent
