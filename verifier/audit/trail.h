// SPDX-License-Identifier: Apache-2.0
// Walks all segments of a directory in order. Only reads; shared by start-up and by the verifying reader.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "verifier/audit/io.h"
#include "verifier/audit/segment_reader.h"

namespace assay::audit {

inline constexpr std::size_t kMaxSegmentBytes = 1U << 30;

// A rotation that a crash cut short: the successor is there with nothing but its header, which proves the seal that
// the segment before still lacks.
struct UnfinishedRotation {
  std::uint64_t segment = 0;  // to be sealed
  std::uint64_t offset = 0;   // where the seal goes
  Buffer seal;                // the exact line
};

struct TrailResult {
  FaultList faults;
  std::uint64_t segments = 0, lines = 0, records = 0, bytes = 0;  // lines and records: verified ones
  std::uint64_t last_segment = 0;                                 // 0: the directory holds none
  SegmentResult last;
  Buffer last_content;  // of the last segment, as it was judged
  ChainState end;       // after the last verified line in front of the first fault
  std::optional<UnfinishedRotation> rotation;
};

// An Error only when the directory can't be listed; a segment that can't be read is a fault.
Result<TrailResult> WalkTrail(Directory& directory, const AuditKeys& keys, const RecordVisitor& visit);

}  // namespace assay::audit
