// SPDX-License-Identifier: Apache-2.0
#include "agent/doctor.h"

#include <unistd.h>

#include <algorithm>

#include "agent/server/status.h"
#include "sdk/core/json.h"

namespace assay::agent {
namespace {

Finding Fine(std::string check, std::string detail) { return {std::move(check), true, std::move(detail), ""}; }
Finding Bad(std::string check, std::string detail, std::string fix) {
  return {std::move(check), false, std::move(detail), std::move(fix)};
}

Finding CheckTpm(tpm::Device& device, std::vector<std::pair<std::string, std::string>>& facts) {
  auto described = device.Describe();
  if (!described.ok())
    return Bad("tpm", described.error().ToString(),
               "check that the TPM is enabled in the firmware and that the TCTI in the configuration is right");
  facts = std::move(described).value();
  std::string text;
  for (const auto& [name, value] : facts) text += (text.empty() ? "" : ", ") + name + " " + value;
  return Fine("tpm", text);
}

Finding CheckLockout(const std::vector<std::pair<std::string, std::string>>& facts) {
  const auto found =
      std::find_if(facts.begin(), facts.end(), [](const auto& fact) { return fact.first == "in_lockout"; });
  if (found == facts.end()) return Fine("lockout", "the TPM reports no lockout");
  if (found->second == "no" || found->second == "0") return Fine("lockout", "not locked out");
  return Bad(
      "lockout", "the TPM is in dictionary attack lockout",
      "wait for its recovery time or run tpm2_dictionarylockout --clear-lockout; find what fails authorizations");
}

Finding CheckClock(tpm::Device& device) {
  const auto clock = device.ReadClock();
  if (!clock.ok())
    return Bad("clock", clock.error().ToString(),
               "restart the machine; a TPM whose clock cannot be read cannot attest");
  const std::string text = "clock " + std::to_string(clock->clock) + " ms, reset count " +
                           std::to_string(clock->reset_count) + ", restart count " +
                           std::to_string(clock->restart_count);
  if (!clock->safe)
    return Bad(
        "clock", text + ", not safe: the last shutdown was not orderly",
        "a verdict may carry the warning clock_unsafe until the clock passed its last saved value; shut down in order");
  return Fine("clock", text);
}

Finding CheckBank(tpm::Device& device, std::uint8_t pcr, std::optional<Digest>& value) {
  const auto values = device.ReadPcrs({tpm::Alg::kSha256, 1U << pcr});
  if (!values.ok())
    return Bad("pcr_bank", values.error().ToString(), "enable the SHA-256 PCR bank in the firmware's setup");
  if (values->size() != 1)
    return Bad("pcr_bank", "there is no SHA-256 bank", "enable the SHA-256 PCR bank in the firmware's setup");
  value = values->front();
  return Fine("pcr_bank", "SHA-256, PCR " + std::to_string(pcr) + " is " + ToHex(*value));
}

Finding FaultsFound(std::uint32_t faults, const std::string& fine) {
  for (const LogFault fault : kLogFaults) {
    if ((faults & static_cast<std::uint32_t>(fault)) != 0) {
      return Bad("log", std::string(LogFaultCode(fault)) + ": " + std::string(LogFaultText(fault)),
                 std::string(LogFaultFix(fault)));
    }
  }
  return Fine("log", fine);
}

Finding CheckLiveLog(Quoter& quoter, const std::optional<Digest>& value) {
  const QuoterFacts facts = quoter.Facts();
  if (facts.log_faults == 0 && value && *value != facts.log_value) {
    return Bad("log", "the register is " + ToHex(*value) + " but the log explains " + ToHex(facts.log_value),
               std::string(LogFaultFix(LogFault::kForeignExtend)));
  }
  return FaultsFound(facts.log_faults, std::to_string(facts.log_entries) + " entries, and the register matches");
}

Finding CheckLogOnDisk(const DoctorInput& input, const std::optional<Digest>& value) {
  const std::string path = RuntimeLogPath(input.config.state_dir);
  const auto content = LogFile::Load(path);
  if (!content.ok() && content.error().code == Code::kNotFound)
    return Fine("log", "no log yet: the agent did not run in this boot");
  if (!content.ok())
    return Bad("log", content.error().ToString(), "start the agent: it begins a new log and says what was lost");
  const auto clock = input.device->ReadClock();
  if (!clock.ok() || !value) return Bad("log", "the TPM does not answer", "see the findings above");
  if (content->header.reset_count != clock->reset_count)
    return Fine("log", "the log is of an earlier boot: the agent did not run in this one");
  Digest replayed = content->header.base;
  Digest before = replayed;
  for (const Buffer& entry : content->entries) {
    before = replayed;
    replayed = ExtendWithEntry(replayed, entry);
  }
  if (*value != replayed && *value != before) {
    return Bad("log", "the register is " + ToHex(*value) + " but the log explains " + ToHex(replayed),
               std::string(LogFaultFix(LogFault::kForeignExtend)));
  }
  return FaultsFound(content->header.faults,
                     std::to_string(content->entries.size()) + " entries, and the register matches");
}

Finding CheckAik(const DoctorInput& input) {
  const auto record = LoadAttester(input.config.state_dir, *input.device);
  if (record.ok()) return Fine("aik", "attester " + ToHex(record->attester));
  const bool missing = record.error().code == Code::kNotFound;
  return Bad("aik", record.error().detail,
             missing ? "run assay-enroll enroll" : "run assay-enroll status, then enroll or rotate");
}

Finding CheckFirmwareLog(const config::AgentConfig& config) {
  if (config.firmware_log.empty())
    return Fine("firmware_log", "none configured: a verifier can compare PCR values only");
  if (::access(config.firmware_log.c_str(), R_OK) == 0) return Fine("firmware_log", config.firmware_log);
  return Bad("firmware_log", config.firmware_log + " cannot be read",
             "mount securityfs, or set firmware_log = \"\" if the firmware keeps none");
}

}  // namespace

std::vector<Finding> Examine(const DoctorInput& input) {
  std::vector<Finding> findings;
  std::vector<std::pair<std::string, std::string>> facts;
  std::optional<Digest> value;
  findings.push_back(CheckTpm(*input.device, facts));
  if (!findings.back().fine) return findings;  // nothing below can be asked
  findings.push_back(CheckLockout(facts));
  findings.push_back(CheckClock(*input.device));
  findings.push_back(CheckBank(*input.device, input.config.pcr, value));
  findings.push_back(input.quoter != nullptr ? CheckLiveLog(*input.quoter, value) : CheckLogOnDisk(input, value));
  findings.push_back(CheckAik(input));
  findings.push_back(CheckFirmwareLog(input.config));
  return findings;
}

std::string FindingsJson(const std::vector<Finding>& findings) {
  JsonWriter out;
  out.BeginObject();
  out.Name("ok").Bool(AllFine(findings));
  out.Name("findings").BeginArray();
  for (const Finding& finding : findings) {
    out.BeginObject();
    out.Name("check").String(finding.check);
    out.Name("ok").Bool(finding.fine);
    out.Name("detail").String(Printable(finding.detail));
    out.Name("fix").String(Printable(finding.fix));
    out.EndObject();
  }
  out.EndArray();
  out.EndObject();
  return std::move(out).Take();
}

bool AllFine(const std::vector<Finding>& findings) noexcept {
  return std::all_of(findings.begin(), findings.end(), [](const Finding& finding) { return finding.fine; });
}

}  // namespace assay::agent
