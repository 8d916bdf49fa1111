// SPDX-License-Identifier: Apache-2.0
// `assayctl audit tail` and `export`: verified records of a trail, without a verifier. Nothing that did not verify is
// shown; what follows the first fault is not either.
#include <deque>

#include "verifier/audit/keys.h"
#include "verifier/audit/verify.h"
#include "verifier/ctl/commands.h"

namespace assay::ctl {
namespace {

// Where the verifier keeps it when nothing else is configured: beside the trail.
Result<audit::AuditKeys> LoadKeys(const AuditSource& source) {
  return audit::AuditKeys::Load(source.key_file.empty() ? source.directory + "/../keys/audit.key" : source.key_file,
                                audit::AuditKeys::Owner::kAnyone);
}

Failure FailureOf(const Error& error) {
  if (error.code == Code::kMalformed)
    return {Exit::kCheckFailed, "audit_damaged", error.detail, "assayctl audit verify lists every fault"};
  return {error.code == Code::kNotFound ? Exit::kNotFound : Exit::kInternal, "audit_not_read", error.detail,
          "check the directory (audit/ in the verifier's state_dir) and --key"};
}

// The record goes in as the bytes that were verified.
std::string LineOf(const audit::RecordView& record) {
  return "{\"seq\":" + std::to_string(record.sequence) + ",\"segment\":" + std::to_string(record.segment) +
         ",\"rec\":" + std::string(record.json) + "}\n";
}

}  // namespace

Outcome<Shown> AuditExport(const AuditSource& source, const audit::RecordRange& range, const Sink& sink) {
  if (range.first > range.last) return Failure{Exit::kUsage, "range_empty", "--from is above --to", ""};
  const Result<audit::AuditKeys> keys = LoadKeys(source);
  if (!keys.ok()) return FailureOf(keys.error());
  bool written = true;
  const Status read = audit::VisitRecords(source.directory, *keys, range, [&](const audit::RecordView& record) {
    written = written && sink(LineOf(record));
  });
  if (!written)
    return Failure{Exit::kInternal, "output_failed", "the records could not all be written",
                   "free the disk, or read from a pipe that stays open"};
  if (!read.ok()) return FailureOf(read.error());
  return Shown{};
}

Outcome<Shown> AuditTail(const AuditSource& source, std::size_t count) {
  const Result<audit::AuditKeys> keys = LoadKeys(source);
  if (!keys.ok()) return FailureOf(keys.error());
  std::deque<std::string> lines;
  const Status read = audit::VisitRecords(source.directory, *keys, {}, [&](const audit::RecordView& record) {
    lines.push_back(LineOf(record));
    if (lines.size() > count) lines.pop_front();
  });
  if (!read.ok()) return FailureOf(read.error());
  Shown shown{{{"records", Json::array()}}, {}};
  for (const std::string& line : lines) {
    shown.json["records"].push_back(Json::parse(line, nullptr, false));
    shown.text += line;
  }
  return shown;
}

}  // namespace assay::ctl
