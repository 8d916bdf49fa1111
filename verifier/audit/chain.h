// SPDX-License-Identifier: Apache-2.0
// What each line's MAC covers, and the lines that the log writes by itself. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "verifier/audit/frame.h"
#include "verifier/audit/keys.h"

namespace assay::audit {

// MAC = HMAC-SHA-256(key, "assay/audit/1" | log id | key id | segment (8, big-endian) | previous MAC | covered bytes).
// Epoch and sequence are among the covered bytes. The previous MAC of the very first line is zeros.
struct MacInput {
  const AuditKeys& keys;
  std::uint64_t segment = 0;
  Digest previous{};
  Bytes covered;
};
Digest ComputeMac(const MacInput& input) noexcept;

// Where the chain stands between two lines.
struct ChainState {
  bool known = true;       // false: the line before could not be checked, the next one is taken as it is (readers only)
  Digest previous{};       // MAC of the line before
  std::uint64_t next = 1;  // sequence of the next line
  std::uint32_t epoch = 0;  // of the line before; raised by each opening of the log
};
struct NewLine {
  std::uint64_t segment = 0;
  Kind kind = Kind::kRecord;
  std::uint64_t acknowledged = 0;
};
// Appends the line that continues `state`, and moves `state` behind it.
void AppendChained(Buffer& out, const AuditKeys& keys, ChainState& state, const NewLine& line, std::string_view json);

struct SegmentHeader {
  LogId log_id{};
  KeyId key_id{};
  std::uint64_t segment = 0;
  std::uint64_t bytes = 0;  // the file's size until it is sealed
  Digest previous{};        // MAC of the line before: the seal of the segment before
};
std::string EncodeHeader(const SegmentHeader& header);
std::optional<SegmentHeader> ParseHeader(Bytes record);  // only what EncodeHeader makes

struct SealContent {
  std::uint64_t segment = 0;
  std::uint64_t lines = 0;
  std::uint64_t first = 0;
  std::uint64_t last = 0;
};  // lines without the seal
std::string EncodeSeal(const SealContent& seal);
inline constexpr std::size_t kMaxSealLine = kFrameOverhead + 192;  // bytes kept free for it

std::string SegmentName(std::uint64_t segment);                       // "segment-00000001.log"
std::optional<std::uint64_t> SegmentNumber(const std::string& name);  // of exactly such a name
inline constexpr char kPreparedName[] = "prepared.new";
inline constexpr char kLockName[] = "lock";
inline constexpr char kQuarantinePrefix[] = "quarantine-";

}  // namespace assay::audit
