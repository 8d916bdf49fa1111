// SPDX-License-Identifier: Apache-2.0
#include "agent/events/measured_log.h"

namespace assay::agent {
namespace {

std::uint32_t Bit(LogFault fault) noexcept { return static_cast<std::uint32_t>(fault); }

enum class SameKernel : std::uint8_t { kUnknown, kYes, kNo };

SameKernel CompareBootIds(const Digest& a, const Digest& b) noexcept {
  if (a == Digest{} || b == Digest{}) return SameKernel::kUnknown;
  return a == b ? SameKernel::kYes : SameKernel::kNo;
}

Result<Digest> ReadRegister(tpm::Device& device, std::uint8_t pcr) {
  ASSAY_TRY(const std::vector<Digest> values, device.ReadPcrs({tpm::Alg::kSha256, 1U << pcr}));
  if (values.size() != 1)
    return MakeError(Code::kTpm, "the TPM has no SHA-256 bank for PCR " + std::to_string(pcr) +
                                     ": enable it in the firmware's setup");
  return values[0];
}

}  // namespace

std::string_view LogFaultCode(LogFault fault) noexcept {
  switch (fault) {
    case LogFault::kLost: return "log_lost";
    case LogFault::kForeignExtend: return "log_foreign_extend";
    case LogFault::kHibernated: return "hibernated";
    case LogFault::kKexec: return "kexec";
  }
  return "unknown";
}

std::string_view LogFaultText(LogFault fault) noexcept {
  switch (fault) {
    case LogFault::kLost:
      return "the agent's log of this boot was removed or cut, so the register can no longer be explained";
    case LogFault::kForeignExtend: return "something other than the agent extended the agent's register";
    case LogFault::kHibernated:
      return "the TPM was reset while this kernel lived on, as hibernation does, so the registers no longer tell how "
             "it was started";
    case LogFault::kKexec: return "another kernel was started by kexec, without a reset of the TPM";
  }
  return "unknown";
}

std::string_view LogFaultFix(LogFault fault) noexcept {
  switch (fault) {
    case LogFault::kLost: return "reboot, and keep the agent's state directory on a disk that outlives the agent";
    case LogFault::kForeignExtend:
      return "find what extends this PCR (tpm2-tools scripts, another agent), stop it, and reboot";
    case LogFault::kHibernated:
      return "reboot; disable hibernation (systemctl mask hibernate.target) on machines that attest";
    case LogFault::kKexec: return "reboot through the firmware";
  }
  return "";
}

std::string RuntimeLogPath(const std::string& state_dir) { return state_dir + "/runtime.log"; }

Result<MeasuredLog> MeasuredLog::Open(LogPlace place, tpm::Device& device) {
  MeasuredLog log(std::move(place), device);
  ASSAY_TRY(const tpm::ClockInfo clock, device.ReadClock());
  ASSAY_TRY(const Digest value, ReadRegister(device, log.place_.pcr));
  auto loaded = LogFile::Load(log.place_.path);
  if (loaded.ok()) {
    log.content_ = std::move(loaded).value();
    log.Recompute();
    ASSAY_CHECK_OK(log.MatchExisting(value, clock));
  } else if (loaded.error().code == Code::kIo) {
    return std::move(loaded).error();
  } else {
    ASSAY_CHECK_OK(log.MatchMissing(value, clock));
  }
  return log;
}

Status MeasuredLog::MatchMissing(const Digest& value, const tpm::ClockInfo& clock) {
  const auto mark = LoadBootMark(place_.path + ".boot");
  const bool had_one =
      mark.ok() && mark->reset_count == clock.reset_count && mark->restart_count == clock.restart_count;
  return StartNew(value, clock, had_one ? Bit(LogFault::kLost) | mark->faults : 0);
}

Status MeasuredLog::MatchExisting(const Digest& value, const tpm::ClockInfo& clock) {
  const LogHeader& header = content_.header;
  const SameKernel kernel = CompareBootIds(header.boot_id, place_.boot_id);
  const bool same_reset = header.reset_count == clock.reset_count;
  const std::size_t count = content_.entries.size();
  const bool whole = value == values_[count];
  // A register that was reset looks like a pending first entry, so a pending one needs the same TPM start.
  const bool same_start = same_reset && header.restart_count == clock.restart_count;
  const bool one_pending = same_start && count > 0 && value == values_[count - 1];
  if (same_reset && (whole || one_pending)) {
    pending_ = !whole;
    if (kernel == SameKernel::kNo) {
      content_.header.faults |= Bit(LogFault::kKexec);
      content_.header.boot_id = place_.boot_id;
    }
    content_.header.restart_count = clock.restart_count;
    ASSAY_CHECK_OK(Reopen());
    if (pending_) ASSAY_CHECK_OK(ExtendPending());
    recovered_pending_ = !whole;
    return Ok();
  }
  if (!same_start) {
    // The TPM was started anew. With the same kernel that is hibernation, else a boot.
    return StartNew(value, clock, kernel == SameKernel::kYes ? Bit(LogFault::kHibernated) | header.faults : 0);
  }
  if (content_.damaged > 0) return StartNew(value, clock, Bit(LogFault::kLost) | header.faults);
  content_.header.faults |= Bit(LogFault::kForeignExtend);
  if (kernel == SameKernel::kNo) content_.header.faults |= Bit(LogFault::kKexec);
  return Reopen();
}

Status MeasuredLog::StartNew(const Digest& base, const tpm::ClockInfo& clock, std::uint32_t faults) {
  LogContent fresh;
  fresh.header.reset_count = clock.reset_count;
  fresh.header.restart_count = clock.restart_count;
  fresh.header.boot_id = place_.boot_id;
  fresh.header.base = base;
  fresh.header.faults = faults;
  if (faults != 0) fresh.header.predecessor = content_.header.predecessor + content_.entries.size();
  content_ = std::move(fresh);
  pending_ = false;
  Recompute();
  ASSAY_CHECK_OK(Reopen());
  return SaveBootMark(place_.path + ".boot", content_.header);
}

Status MeasuredLog::Reopen() {
  file_.clear();
  content_.damaged = 0;
  ASSAY_TRY(LogFile file, LogFile::Create(place_.path, content_));
  file_.push_back(std::move(file));
  return Ok();
}

void MeasuredLog::Recompute() {
  values_.assign(1, content_.header.base);
  for (const Buffer& entry : content_.entries) values_.push_back(ExtendWithEntry(values_.back(), entry));
}

Digest MeasuredLog::ValueBefore(std::size_t index) const noexcept {
  return values_[index < values_.size() ? index : values_.size() - 1];
}

Status MeasuredLog::ExtendPending() {
  ASSAY_CHECK_OK(device_->ExtendPcr(place_.pcr, Sha256(content_.entries.back())));
  pending_ = false;
  return Ok();
}

// An extend that failed may have reached the TPM all the same: the register tells.
Status MeasuredLog::ResolvePending() {
  ASSAY_TRY(const Digest value, ReadRegister(*device_, place_.pcr));
  if (value != Value()) return ExtendPending();
  pending_ = false;
  return Ok();
}

Status MeasuredLog::Append(RuntimeEntry entry) {
  if (pending_) ASSAY_CHECK_OK(ResolvePending());
  entry.index = content_.entries.size();
  if (entry.kind == EntryKind::kIdentity) entry.predecessor = content_.header.predecessor + entry.index;
  Buffer encoded = EncodeRuntimeEntry(entry);
  // Step 1: on disk. Step 2: in the register. A crash between them leaves one pending entry, which Open extends.
  ASSAY_CHECK_OK(file_.front().Append(encoded));
  values_.push_back(ExtendWithEntry(values_.back(), encoded));
  content_.entries.push_back(std::move(encoded));
  pending_ = true;
  return ExtendPending();
}

Status MeasuredLog::AppendIdentity(const AgentMeasurements& measurements) {
  RuntimeEntry entry;
  entry.kind = EntryKind::kIdentity;
  entry.agent = measurements.agent;
  entry.bpf_object = measurements.bpf_object;
  entry.config = measurements.config;
  return Append(std::move(entry));
}

Result<MeasuredLog::Observation> MeasuredLog::Observe(const Digest& register_value, const tpm::ClockInfo& clock) {
  if (register_value == Value()) {
    content_.header.restart_count = clock.restart_count;  // suspended and resumed: registers kept
    return Observation::kMatches;
  }
  if (clock.reset_count != content_.header.reset_count || clock.restart_count != content_.header.restart_count) {
    ASSAY_CHECK_OK(StartNew(register_value, clock, content_.header.faults | Bit(LogFault::kHibernated)));
    return Observation::kReset;
  }
  if (!HasFault(LogFault::kForeignExtend)) {
    content_.header.faults |= Bit(LogFault::kForeignExtend);
    ASSAY_CHECK_OK(Reopen());
  }
  return Observation::kForeign;
}

}  // namespace assay::agent
