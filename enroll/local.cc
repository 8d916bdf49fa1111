// SPDX-License-Identifier: Apache-2.0
#include "enroll/local.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "sdk/core/json.h"

namespace assay::enroll {
namespace {

std::string TimeText(std::uint64_t seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  std::array<char, 32> text{};
  if (gmtime_r(&time, &parts) == nullptr ||
      std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S UTC", &parts) == 0)
    return std::to_string(seconds);
  return text.data();
}

std::string HandleText(std::uint32_t handle) {
  Writer bytes;
  bytes.U32Be(handle);
  return "0x" + ToHex(bytes.buffer());
}

Check RemoveFile(const std::string& path) {
  if (unlink(path.c_str()) == 0 || errno == ENOENT) return std::nullopt;
  return StateFailure(
      MakeError(Code::kIo, path + ": cannot remove: " + std::strerror(errno), static_cast<std::uint32_t>(errno)));
}

}  // namespace

std::string_view CertificateStateName(CertificateState state) noexcept {
  switch (state) {
    case CertificateState::kValid: return "valid";
    case CertificateState::kRenewalDue: return "renewal_due";
    case CertificateState::kExpired: return "expired";
  }
  return "expired";
}

CertificateState StateOf(const config::EnrollmentRecord& record, std::int64_t now) noexcept {
  const std::uint64_t at = now < 0 ? 0 : static_cast<std::uint64_t>(now);
  if (at >= record.not_after) return CertificateState::kExpired;
  return at >= record.renew_after ? CertificateState::kRenewalDue : CertificateState::kValid;
}

Outcome<config::EnrollmentRecord> LoadRecord(const std::string& state_dir) {
  Result<config::EnrollmentRecord> record = config::LoadEnrollment(config::EnrollmentPath(state_dir));
  if (record.ok()) return std::move(*record);
  if (record.error().code == Code::kNotFound)
    return Failure{Exit::kNotEnrolled, "not_enrolled", record.error().detail, "run `assay-enroll enroll`"};
  return StateFailure(record.error());
}

Check Remove(tpm::Device& device, const std::string& state_dir, const std::function<void(std::string_view)>& progress) {
  Outcome<config::EnrollmentRecord> loaded = LoadRecord(state_dir);
  if (auto* failure = std::get_if<Failure>(&loaded)) return std::move(*failure);
  const auto& record = std::get<config::EnrollmentRecord>(loaded);
  progress("removing the AIK at " + HandleText(record.aik_handle));
  const Status removed = device.RemovePersistent(record.aik_handle);
  if (!removed.ok() && removed.error().code != Code::kNotFound) return TpmFailure(removed.error(), "removing the AIK");
  // The record goes last: until then the command can be repeated.
  if (Check failure = RemoveFile(record.certificate_path)) return failure;
  if (Check failure = RemoveFile(config::EnrollmentPath(state_dir))) return failure;
  progress("removed; the verifier still knows the host until an operator runs `assayctl hosts forget`");
  return std::nullopt;
}

std::string RecordText(const config::EnrollmentRecord& record, std::int64_t now) {
  std::string text;
  const auto line = [&](std::string_view name, const std::string& value) {
    text += name;
    text.append(name.size() < 16 ? 16 - name.size() : 1, ' ');
    text += value + "\n";
  };
  line("host", ToHex(record.host_id));
  line("attester", ToHex(record.attester));
  line("device id", record.weak ? "weak: the EK was not proved to be the canonical one" : "strong");
  line("AIK", std::string(config::AikKindName(record.aik_kind)) + " at " + HandleText(record.aik_handle) +
                  ", generation " + std::to_string(record.generation));
  line("verifier", record.verifier_url);
  line("certificate", record.certificate_path + ", " + std::string(CertificateStateName(StateOf(record, now))));
  line("valid until", TimeText(record.not_after));
  line("renew from", TimeText(record.renew_after));
  return text;
}

std::string RecordJson(const config::EnrollmentRecord& record, std::int64_t now) {
  JsonWriter out;
  out.BeginObject();
  out.Name("ok").Bool(true);
  out.Name("host_id").String(ToHex(record.host_id));
  out.Name("attester").String(ToHex(record.attester));
  out.Name("device_id_strength").String(record.weak ? "weak" : "strong");
  out.Name("aik_kind").String(config::AikKindName(record.aik_kind));
  out.Name("aik_handle").String(HandleText(record.aik_handle));
  out.Name("generation").Uint(record.generation);
  out.Name("verifier").String(record.verifier_url);
  out.Name("certificate").String(record.certificate_path);
  out.Name("certificate_state").String(CertificateStateName(StateOf(record, now)));
  out.Name("not_after").Uint(record.not_after);
  out.Name("renew_after").Uint(record.renew_after);
  out.EndObject();
  return std::move(out).Take();
}

std::string FailureText(const Failure& failure) {
  std::string text = "assay-enroll: " + failure.detail + " [" + failure.code + "]";
  if (!failure.fix.empty()) text += "\n  fix: " + failure.fix;
  return text;
}

std::string FailureJson(const Failure& failure) {
  JsonWriter out;
  out.BeginObject();
  out.Name("ok").Bool(false);
  out.Name("code").String(failure.code);
  out.Name("detail").String(failure.detail);
  out.Name("fix").String(failure.fix);
  out.Name("exit").Int(static_cast<int>(failure.exit));
  out.EndObject();
  return std::move(out).Take();
}

}  // namespace assay::enroll
