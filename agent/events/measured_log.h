// SPDX-License-Identifier: Apache-2.0
// The agent's own log behind its PCR: an entry is written and flushed, THEN the register is extended, so after any
// crash the register is either that of the whole log or of the log without its last entry. It never judges: what
// went wrong is a fault bit that evidence, status and doctor carry.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "agent/events/log_file.h"
#include "sdk/core/runtime_log.h"
#include "sdk/tpm/device.h"

namespace assay::agent {

enum class LogFault : std::uint32_t {
  kLost = 1,           // this boot had a log and it is gone or cut
  kForeignExtend = 2,  // the register holds an extend that is not in the log
  kHibernated = 4,     // the registers were reset under a kernel that lived on
  kKexec = 8,          // another kernel took over without a reset
};
inline constexpr LogFault kLogFaults[] = {LogFault::kLost, LogFault::kForeignExtend, LogFault::kHibernated,
                                          LogFault::kKexec};
std::string_view LogFaultCode(LogFault fault) noexcept;  // "log_lost", "log_foreign_extend", "hibernated", "kexec"
std::string_view LogFaultText(LogFault fault) noexcept;  // a sentence
std::string_view LogFaultFix(LogFault fault) noexcept;   // a sentence

std::string RuntimeLogPath(const std::string& state_dir);

// What a start of the agent measures of itself.
struct AgentMeasurements {
  Digest agent{};
  Digest bpf_object{};
  Digest config{};
};

struct LogPlace {
  std::string path;  // the boot mark is kept at path + ".boot"
  std::uint8_t pcr = 14;
  Digest boot_id{};  // zeros: not known (a TPM behind a socket does not follow this kernel)
};

// One owner, one thread: that of the device, which outlives it.
class MeasuredLog {
 public:
  // Matches the log to the register, extends a pending last entry, and starts a new log where there is none for
  // this boot. Error only when disk or TPM fail.
  static Result<MeasuredLog> Open(LogPlace place, tpm::Device& device);

  // Sets index (and, for an identity entry, the predecessor). On an error after the write, the entry stays pending
  // and is extended before the next one.
  Status Append(RuntimeEntry entry);
  Status AppendIdentity(const AgentMeasurements& measurements);

  // Compares the register's value out of a quote with the log. kReset: the registers were reset under this process;
  // the log was begun anew and the caller must append an identity entry and quote again.
  enum class Observation : std::uint8_t { kMatches, kForeign, kReset };
  Result<Observation> Observe(const Digest& register_value, const tpm::ClockInfo& clock);

  const std::vector<Buffer>& entries() const noexcept { return content_.entries; }
  Digest ValueBefore(std::size_t index) const noexcept;  // the register before that entry
  Digest Value() const noexcept { return ValueBefore(content_.entries.size()); }
  const LogHeader& header() const noexcept { return content_.header; }
  bool HasFault(LogFault fault) const noexcept {
    return (content_.header.faults & static_cast<std::uint32_t>(fault)) != 0;
  }
  bool recovered_pending() const noexcept { return recovered_pending_; }

 private:
  MeasuredLog(LogPlace place, tpm::Device& device) : place_(std::move(place)), device_(&device) {}
  Status MatchExisting(const Digest& value, const tpm::ClockInfo& clock);
  Status MatchMissing(const Digest& value, const tpm::ClockInfo& clock);
  Status StartNew(const Digest& base, const tpm::ClockInfo& clock, std::uint32_t faults);
  Status Reopen();
  void Recompute();
  Status ExtendPending();
  Status ResolvePending();

  LogPlace place_;
  tpm::Device* device_;
  LogContent content_;
  std::vector<Digest> values_;  // values_[i]: the register before entry i; one more than entries
  std::vector<LogFile> file_;   // none or one
  bool pending_ = false;        // the last entry is written but not extended
  bool recovered_pending_ = false;
};

}  // namespace assay::agent
