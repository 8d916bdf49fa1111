// SPDX-License-Identifier: Apache-2.0
// Start-up of the log: checks what is there, finishes what a crash cut short, refuses what a crash can't explain.
// Under the lock, before the writer's thread exists.
#pragma once

#include "verifier/audit/segment_writer.h"
#include "verifier/audit/trail.h"

namespace assay::audit {

struct RecoveryInput {
  Directory& directory;
  const AuditKeys& keys;
  SegmentWriter& writer;
  std::uint64_t acknowledged = 0;  // highest sequence known to have been acknowledged; 0: not known
  const RecordVisitor& visit;      // sees every verified record, in order
};
struct Recovered {
  ChainState state;
  std::uint64_t cut_bytes = 0;  // of a torn tail, now in `quarantine`
  std::string quarantine;
};

// Leaves `writer` at the end of the trail, behind a control line with a new epoch that is durable. Errors name segment,
// record and byte.
Result<Recovered> Recover(const RecoveryInput& input);

// {"audit":"opened",...}: the log's own lines.
std::string OpenedLine(std::uint32_t epoch);
std::string StoppedLine();

}  // namespace assay::audit
