// SPDX-License-Identifier: Apache-2.0
// `assayctl audit verify`: the trail's own distrustful reader over a directory, without a verifier.
#include "verifier/audit/keys.h"
#include "verifier/audit/verify.h"
#include "verifier/ctl/commands.h"
#include "verifier/ctl/table.h"

namespace assay::ctl {
namespace {

Failure NotJudged(const Error& error, std::string fix) {
  const Exit exit = error.code == Code::kNotFound ? Exit::kNotFound : Exit::kInternal;
  return {exit, "audit_not_judged", error.detail, std::move(fix)};
}

}  // namespace

Outcome<Shown> AuditVerify(const std::string& directory, const std::string& key_file) {
  // Where the verifier keeps it when nothing else is configured: beside the trail.
  const std::string path = key_file.empty() ? directory + "/../keys/audit.key" : key_file;
  const Result<audit::AuditKeys> keys = audit::AuditKeys::Load(path, audit::AuditKeys::Owner::kAnyone);
  if (!keys.ok())
    return NotJudged(keys.error(),
                     "give the trail's key with --key FILE: the verifier's keys_dir holds it as audit.key");
  const Result<audit::VerifyReport> report = audit::VerifyTrail({directory, 0}, *keys);
  if (!report.ok()) return NotJudged(report.error(), "check the directory: audit/ in the verifier's state_dir");
  Shown shown{Json::parse(audit::ReportJson(*report), nullptr, false), audit::ReportText(*report)};
  shown.exit = report->ok() ? Exit::kDone : Exit::kCheckFailed;
  return shown;
}

}  // namespace assay::ctl
