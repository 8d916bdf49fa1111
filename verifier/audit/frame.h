// SPDX-License-Identifier: Apache-2.0
// One record as it stands on disk: a line of JSON whose head has fixed width, so that it is found, cut and checked
// without a JSON parser, and so that zeros, a torn write or recycled bytes can't read as a record:
//   {"mac":"<64>","len":"<8>","epoch":"<8>","seq":"<16>","ack":"<16>","kind":"<1>","rec":<json>}\n
// Numbers are decimal, the MAC is lower-case hexadecimal. len: bytes of the whole line. seq: +1 a line over the whole trail. ack: the
// highest sequence that was durable when the line was written. The MAC covers every byte after the mac member's digits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sdk/core/bytes.h"

namespace assay::audit {

enum class Kind : char {
  kHeader = 'h',   // first line of a segment: log id, key id, segment, previous MAC
  kRecord = 'r',   // what Append was given
  kControl = 'c',  // written by the log about itself: opened, recovered, stopped
  kSeal = 's',     // last line of a full segment
};

struct Line {
  Digest mac{};
  std::uint32_t length = 0;
  std::uint32_t epoch = 0;
  std::uint64_t sequence = 0;
  std::uint64_t acknowledged = 0;
  Kind kind = Kind::kRecord;
  Bytes covered;  // what the MAC covers: views into the segment
  Bytes record;   // the JSON object
};

inline constexpr std::size_t kMacAt = 8;  // after {"mac":"
inline constexpr std::size_t kCoveredAt = kMacAt + 64;
inline constexpr std::size_t kHeadSize = 177;                 // up to and with "rec":
inline constexpr std::size_t kFrameOverhead = kHeadSize + 2;  // and }\n

struct LineFields {
  std::uint32_t epoch = 0;
  std::uint64_t sequence = 0;
  std::uint64_t acknowledged = 0;
  Kind kind = Kind::kRecord;
};
// Appends the line to `out` with the MAC left as zeros; the offset of the line in `out`.
std::size_t AppendLine(Buffer& out, const LineFields& fields, std::string_view json);
// Fills in the MAC of the line that ends `out`.
void PutMac(Buffer& out, std::size_t line_offset, const Digest& mac);

// The line at the start of `bytes`, which may go on. Null when there is none, and `why` says what is wrong there.
std::optional<Line> ParseLine(Bytes bytes, std::size_t max_record, const char*& why);

// What Append may be given: an object on one line, without control characters, at most `max_record` bytes.
const char* RefuseRecord(std::string_view json) noexcept;  // null: fine

}  // namespace assay::audit
