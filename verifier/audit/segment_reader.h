// SPDX-License-Identifier: Apache-2.0
// Checks the bytes of one segment against the chain and says of every fault what and where it is. Pure: used by the
// verifying reader, by start-up and by the fuzz target. After a fault it finds the next line and goes on, so that one
// changed byte is one fault and not a thousand.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "verifier/audit/chain.h"

namespace assay::audit {

enum class FaultClass : std::uint8_t {
  kMalformed,  // bytes that are no record where one must be
  kAltered,    // a record whose MAC is wrong
  kMissing,    // records are not there
  kRepeated,   // a record again, or in the wrong place
  kForeign,    // a segment of another log
  kWrongKey,   // a segment made with another key
  kMisplaced,  // a segment of this log under another's name
  kTruncated,  // a segment ends before its end
  kTornTail,   // the end of the last segment is no record: a crash while writing, or damage
  kMissingSegment,
  kUnreadable,  // a file could not be read
  kBehind,      // the trail ends before a sequence that is known to have been acknowledged
};
std::string_view FaultName(FaultClass kind) noexcept;

struct Fault {
  FaultClass kind = FaultClass::kMalformed;
  std::uint64_t segment = 0;
  std::uint64_t record = 0;  // sequence expected at this place
  std::uint64_t offset = 0;  // byte within the segment's file
  std::string detail;
  std::string ToString() const;
};

// A verified record of the application.
struct RecordView {
  std::uint64_t sequence = 0;
  std::uint64_t segment = 0;
  std::uint64_t offset = 0;
  std::string_view json;
};
using RecordVisitor = std::function<void(const RecordView&)>;

struct SegmentInput {
  const AuditKeys& keys;
  std::uint64_t number = 0;
  Bytes content;
  bool last = false;  // may end without a seal
};

struct SegmentResult {
  bool header_ok = false;
  SegmentHeader header;
  bool sealed = false;
  std::uint64_t lines = 0;    // verified, header and seal included
  std::uint64_t records = 0;  // of the application, verified
  std::uint64_t first = 0;    // sequence of the header
  std::uint64_t end = 0;      // byte after the last verified line in front of the first fault
  ChainState at_end;          // there
};

constexpr std::size_t kMaxFaults = 1000;  // kept of one walk; more are counted

struct FaultList {
  std::vector<Fault> faults;
  std::uint64_t left_off = 0;
  bool empty() const noexcept { return faults.empty(); }
  void Add(Fault fault);
};

// Moves `chain` over the segment. `visit` (may be empty) sees records as long as no fault was found anywhere.
SegmentResult CheckSegment(const SegmentInput& input, ChainState& chain, FaultList& faults, const RecordVisitor& visit);

// Of the lines that can still be read in a damaged tail: the highest `acknowledged` that one of them states, checked or
// not. A torn write can't hold a line of a later batch, so a tail that does was once whole. 0: no such line.
std::uint64_t AcknowledgedInTail(Bytes tail);

}  // namespace assay::audit
