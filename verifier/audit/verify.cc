// SPDX-License-Identifier: Apache-2.0
#include "verifier/audit/verify.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace assay::audit {
namespace {

constexpr int kAttempts = 20;
constexpr std::chrono::milliseconds kPause{25};

// A running log's batch may be half written while it is read: such faults are in the last segment and gone a moment
// later. Faults that stay, or stand elsewhere, are reported.
bool MayPass(const TrailResult& walk) {
  const std::uint64_t end = walk.last_segment;
  const auto at_end = [end](const Fault& fault) { return fault.segment + 1 >= end; };
  return walk.rotation.has_value() ||
         (!walk.faults.empty() && std::all_of(walk.faults.faults.begin(), walk.faults.faults.end(), at_end));
}

// Only a writer that holds the lock changes files under us. Readers without the right to lock assume one.
bool WriterRuns(Directory& directory) {
  const Result<std::unique_ptr<File>> lock = directory.Open(kLockName, Access::kRead);
  if (!lock.ok()) return false;
  const Status held = (*lock)->Lock();
  return !held.ok() && held.error().code == Code::kBusy;  // ours is given back when the file closes
}

Result<TrailResult> WalkSettled(Directory& directory, const AuditKeys& keys, const RecordVisitor& visit) {
  for (int attempt = 1;; ++attempt) {
    ASSAY_TRY(TrailResult walk, WalkTrail(directory, keys, visit));
    if (!MayPass(walk) || attempt == kAttempts || !WriterRuns(directory)) return walk;
    std::this_thread::sleep_for(kPause);
  }
}

void AddNotes(Directory& directory, const TrailResult& walk, VerifyReport& report) {
  if (walk.rotation)
    report.notes.push_back("segment " + std::to_string(walk.rotation->segment) +
                           " waits for its seal: a crash cut its rotation short, the next start finishes it");
  const Result<std::vector<std::string>> names = directory.List();
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    if (SegmentNumber(name) || name == kLockName || name == kPreparedName) continue;
    report.notes.push_back(name.starts_with(kQuarantinePrefix) ? name + " holds a torn tail that was cut off"
                                                               : name + " is no part of the trail");
  }
}

}  // namespace

Result<VerifyReport> VerifyTrail(const VerifyOptions& options, const AuditKeys& keys) {
  ASSAY_TRY(const std::unique_ptr<Directory> directory, OpenAnyDirectory(options.directory));
  ASSAY_TRY(TrailResult walk, WalkSettled(*directory, keys, {}));
  if (walk.segments == 0) return MakeError(Code::kNotFound, options.directory + " holds no segment of an audit trail");
  VerifyReport report{.directory = options.directory,
                      .log_id = keys.log_id(),
                      .key_id = keys.key_id(),
                      .segments = walk.segments,
                      .lines = walk.lines,
                      .records = walk.records,
                      .bytes = walk.bytes,
                      .last_sequence = walk.end.next - 1,
                      .last_mac = walk.end.previous,
                      .faults = {},
                      .faults_left_off = 0,
                      .notes = {}};
  if (walk.faults.empty() && report.last_sequence < options.at_least) {
    walk.faults.Add({FaultClass::kBehind, walk.last_segment, walk.end.next, walk.last.end,
                     "the trail ends at record " + std::to_string(report.last_sequence) + ", record " +
                         std::to_string(options.at_least) + " was acknowledged"});
  }
  AddNotes(*directory, walk, report);
  report.faults = std::move(walk.faults.faults);
  report.faults_left_off = walk.faults.left_off;
  return report;
}

Status VisitRecords(const std::string& directory, const AuditKeys& keys, const RecordRange& range,
                    const RecordVisitor& visit) {
  ASSAY_TRY(const std::unique_ptr<Directory> opened, OpenAnyDirectory(directory));
  std::uint64_t seen = 0;  // a walk that is repeated visits again
  const auto once = [&](const RecordView& record) {
    if (record.sequence <= seen) return;
    seen = record.sequence;
    if (record.sequence >= range.first && record.sequence <= range.last) visit(record);
  };
  ASSAY_TRY(const TrailResult walk, WalkSettled(*opened, keys, once));
  if (walk.segments == 0) return MakeError(Code::kNotFound, directory + " holds no segment of an audit trail");
  if (!walk.faults.empty() && walk.end.next <= range.last)
    return MakeError(Code::kMalformed, "audit trail: " + walk.faults.faults.front().ToString());
  return Ok();
}

Status ReplayRecords(const std::string& directory, const AuditKeys& keys, const RecordVisitor& visit) {
  ASSAY_TRY(const std::unique_ptr<Directory> opened, OpenAnyDirectory(directory));
  ASSAY_TRY(const TrailResult walk, WalkTrail(*opened, keys, visit));
  if (!walk.faults.empty()) return MakeError(Code::kMalformed, "audit trail: " + walk.faults.faults.front().ToString());
  return Ok();
}

}  // namespace assay::audit
