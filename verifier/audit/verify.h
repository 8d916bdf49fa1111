// SPDX-License-Identifier: Apache-2.0
// The reader that does not trust the writer: walks a trail's directory and reports every fault by class, segment,
// record and byte. Safe beside a running log. What it can't show without a checkpoint kept elsewhere: that records at
// the very end were cut off and the cut was filled with zeros, and what a holder of the key rewrote.
#pragma once

#include <string>
#include <vector>

#include "verifier/audit/trail.h"

namespace assay::audit {

struct VerifyOptions {
  std::string directory;
  std::uint64_t at_least = 0;  // a sequence known to have been acknowledged: a trail that ends below it is a fault
};

struct VerifyReport {
  std::string directory;
  LogId log_id{};
  KeyId key_id{};
  std::uint64_t segments = 0, lines = 0, records = 0, bytes = 0;  // lines and records: those that verified
  std::uint64_t last_sequence = 0;                                // of the last line before the first fault
  Digest last_mac{};  // its MAC: note it elsewhere, and a later cut or rewrite shows
  std::vector<Fault> faults;
  std::uint64_t faults_left_off = 0;  // beyond kMaxFaults
  std::vector<std::string> notes;     // what is no fault but worth knowing
  bool ok() const noexcept { return faults.empty() && segments > 0; }
};

// An Error when nothing could be judged: no such directory, not readable, no segment in it (kNotFound).
Result<VerifyReport> VerifyTrail(const VerifyOptions& options, const AuditKeys& keys);
std::string ReportJson(const VerifyReport& report);  // one object on one line
std::string ReportText(const VerifyReport& report);

// Verified records in order, by sequence, both ends included. Beside a running log: up to what it has written, of which
// the last batch may not be acknowledged yet. An Error at the first fault anywhere in front of the end of the range,
// naming it, after the records before it were visited.
struct RecordRange {
  std::uint64_t first = 1;
  std::uint64_t last = UINT64_MAX;
};
Status VisitRecords(const std::string& directory, const AuditKeys& keys, const RecordRange& range,
                    const RecordVisitor& visit);

// Every verified record in order; an Error at the first fault, naming it, after the records before it were visited.
Status ReplayRecords(const std::string& directory, const AuditKeys& keys, const RecordVisitor& visit);

}  // namespace assay::audit
