// SPDX-License-Identifier: Apache-2.0
#include "verifier/audit/segment_reader.h"

#include <algorithm>
#include <array>

#include "verifier/audit/audit_log.h"
#include "verifier/audit/check_mac.h"

namespace assay::audit {
namespace {

std::optional<Line> LineAt(Bytes content, std::size_t offset) {
  const char* why = nullptr;
  return offset < content.size() ? ParseLine(content.subspan(offset), kMaxRecord, why) : std::nullopt;
}

std::size_t FirstNonZero(Bytes content, std::size_t from) {
  const auto at = std::find_if(content.begin() + static_cast<std::ptrdiff_t>(std::min(from, content.size())),
                               content.end(), [](std::uint8_t b) { return b != 0; });
  return static_cast<std::size_t>(at - content.begin());
}

// The next place after `from` where a whole line can be read; content.size() when there is none.
std::size_t NextLine(Bytes content, std::size_t from) {
  static constexpr std::string_view kStart = "{\"mac\":\"";
  const std::string_view text = AsText(content);
  for (std::size_t at = text.find(kStart, from + 1); at != std::string_view::npos; at = text.find(kStart, at + 1)) {
    // A record can quote a line; only after a newline, or after a hole, does one start.
    if ((text[at - 1] == '\n' || text[at - 1] == '\0') && LineAt(content, at)) return at;
  }
  return content.size();
}

// Where the damaged line at `from` ends by its own account, when a line starts there. A newline that was changed hides
// the next line from NextLine.
std::size_t NextByLength(Bytes content, std::size_t from) {
  constexpr std::size_t kLengthAt = kCoveredAt + 9;
  if (content.size() - from < kLengthAt + 8) return content.size();
  std::size_t length = 0;
  for (const std::uint8_t c : content.subspan(from + kLengthAt, 8))
    length = length * 10 + static_cast<std::size_t>(c >= '0' && c <= '9' ? c - '0' : 0);
  const std::size_t end = from + length;
  return length > 0 && end < content.size() && LineAt(content, end) ? end : content.size();
}

// Where to go on behind a damaged line.
std::size_t NextAfter(Bytes content, std::size_t from) {
  return std::min(NextLine(content, from), NextByLength(content, from));
}

class Walk {
 public:
  Walk(const SegmentInput& input, ChainState& chain, FaultList& faults, const RecordVisitor& visit)
      : in_(input), chain_(chain), faults_(faults), visit_(visit) {}

  SegmentResult Run() {
    result_.at_end = chain_;
    if (!TakeHeader()) return result_;
    while (offset_ < in_.content.size() && Step()) {}
    CheckEnd();
    return result_;
  }

 private:
  bool Right(const Line& line, const Digest& previous) const {
    return CheckMac({in_.keys, in_.number, previous, line.covered}, line.mac) == MacCheck::kRight;
  }
  void AddAt(FaultClass kind, std::size_t offset, std::string detail) {
    faults_.Add({kind, in_.number, chain_.next, offset, std::move(detail)});
  }

  void Accept(const Line& line) {
    chain_ = {true, line.mac, line.sequence + 1, line.epoch};
    if (faults_.empty()) {
      if (line.kind == Kind::kRecord && visit_) visit_({line.sequence, in_.number, offset_, AsText(line.record)});
      result_.end = offset_ + line.length;
      result_.at_end = chain_;
    }
    ++result_.lines;
    if (line.kind == Kind::kRecord) ++result_.records;
    if (line.kind == Kind::kSeal) result_.sealed = true;
    offset_ += line.length;
  }
  // Goes on from a line that could not be checked.
  void Adopt(const Line& line, bool known, const Digest& mac) {
    chain_ = {known, mac, line.sequence + 1, line.epoch};
    offset_ += line.length;
    // Its kind may be what was changed: the last line of a segment that others follow was the seal.
    if (!in_.last && FirstNonZero(in_.content, offset_) == in_.content.size()) result_.sealed = true;
  }

  // False: nothing of this segment can be used.
  bool TakeHeader() {
    const std::optional<Line> line = LineAt(in_.content, 0);
    std::optional<SegmentHeader> header;
    if (line && line->kind == Kind::kHeader) header = ParseHeader(line->record);
    if (!header) {
      const std::size_t at = FirstNonZero(in_.content, 0);
      if (at < in_.content.size()) return SkipDamage(at, "the segment's header can't be read");
      AddAt(FaultClass::kTruncated, 0, "the segment holds nothing");
      chain_.known = false;
      return false;
    }
    result_.header = *header;
    result_.first = line->sequence;
    const bool right = line->sequence == chain_.next && chain_.known && Right(*line, chain_.previous);
    const bool own = Right(*line, header->previous) && header->segment == in_.number;
    if (right || (!chain_.known && own)) {
      result_.header_ok = true;
      Accept(*line);
      return true;
    }
    return JudgeHeader(*line, *header, own);
  }

  bool JudgeHeader(const Line& line, const SegmentHeader& header, bool own) {
    const std::optional<Line> after = LineAt(in_.content, line.length);
    Line counted = line;  // its own sequence may be what was changed
    if (after) counted.sequence = after->sequence - 1;
    if (own) {
      AddAt(FaultClass::kMissing, 0,
            "the segment continues from record " + std::to_string(line.sequence - 1) +
                ", the trail before it ends at " + std::to_string(chain_.next - 1));
      Adopt(line, true, line.mac);
      return true;
    }
    if (CheckMac({in_.keys, header.segment, header.previous, line.covered}, line.mac) == MacCheck::kRight) {
      AddAt(FaultClass::kMisplaced, 0, "this file is segment " + std::to_string(header.segment));
    } else if (after && Right(*after, line.mac)) {
      AddAt(FaultClass::kAltered, 0, "the header's MAC does not match its bytes");
      Adopt(counted, true, line.mac);
      return true;
    } else if (header.log_id != in_.keys.log_id()) {
      AddAt(FaultClass::kForeign, 0, "the segment belongs to log " + ToHex(header.log_id));
    } else if (header.key_id != in_.keys.key_id()) {
      AddAt(FaultClass::kWrongKey, 0,
            "the segment was made with key " + ToHex(header.key_id) + ", this is key " + ToHex(in_.keys.key_id()));
    } else {
      AddAt(FaultClass::kAltered, 0, "the header's MAC does not match its bytes");
      const Digest computed =
          ComputeMac({in_.keys, in_.number, chain_.known ? chain_.previous : header.previous, line.covered});
      const bool mac_altered = after && Right(*after, computed);
      Adopt(counted, mac_altered, mac_altered ? computed : line.mac);
      return true;
    }
    chain_.known = false;
    return false;
  }

  bool Step() {
    const std::size_t content_at = FirstNonZero(in_.content, offset_);
    if (content_at == in_.content.size()) return false;
    if (result_.sealed) {
      AddAt(FaultClass::kMalformed, content_at, "bytes after the segment's seal");
      return false;
    }
    const char* why = nullptr;
    const std::optional<Line> line = ParseLine(in_.content.subspan(offset_), kMaxRecord, why);
    if (!line) return SkipDamage(content_at, content_at > offset_ ? "a hole, then bytes" : why);
    if (line->kind == Kind::kHeader) {
      AddAt(FaultClass::kRepeated, offset_, "a header within a segment");
      offset_ += line->length;
    } else if (!chain_.known) {
      if (line->sequence > chain_.next) AddAt(FaultClass::kMissing, offset_, Range(line->sequence));
      Adopt(*line, true, line->mac);
    } else if (line->sequence == chain_.next && Right(*line, chain_.previous)) {
      Accept(*line);
    } else {
      Judge(*line);
    }
    return true;
  }

  std::string Range(std::uint64_t found) const {
    return "records " + std::to_string(chain_.next) + " to " + std::to_string(found - 1) + " are not there: record " +
           std::to_string(found) + " follows";
  }

  // With the sequence expected here in place of its own, the line is the one that was written.
  bool OnlySequenceChanged(const Line& line) const {
    Buffer model;
    AppendLine(model, {line.epoch, chain_.next, line.acknowledged, line.kind}, AsText(line.record));
    return CheckMac({in_.keys, in_.number, chain_.previous, Bytes(model).subspan(kCoveredAt)}, line.mac) ==
           MacCheck::kRight;
  }

  // A line that is well formed but does not continue the chain.
  void Judge(const Line& line) {
    const std::optional<Line> after = LineAt(in_.content, offset_ + line.length);
    const bool in_place =
        line.sequence == chain_.next || (after && after->sequence == chain_.next + 1) || OnlySequenceChanged(line);
    if (in_place) {
      const Digest computed = ComputeMac({in_.keys, in_.number, chain_.previous, line.covered});
      const bool mac_altered = after && !Right(*after, line.mac) && Right(*after, computed);
      const bool linked = after && (mac_altered || Right(*after, line.mac));
      AddAt(FaultClass::kAltered, offset_,
            mac_altered ? "the record's MAC was changed" : "the record's MAC does not match its bytes");
      Line counted = line;
      counted.sequence = chain_.next;
      Adopt(counted, linked, mac_altered ? computed : line.mac);
      return;
    }
    if (line.sequence < chain_.next) {
      AddAt(FaultClass::kRepeated, offset_,
            "record " + std::to_string(line.sequence) + " stands after record " + std::to_string(chain_.next - 1));
      offset_ += line.length;
      return;
    }
    const bool swapped = after && after->sequence == chain_.next;
    AddAt(swapped ? FaultClass::kRepeated : FaultClass::kMissing, offset_,
          swapped ? "record " + std::to_string(line.sequence) + " stands before record " + std::to_string(chain_.next)
                  : Range(line.sequence));
    Adopt(line, true, line.mac);
  }

  bool SkipDamage(std::size_t at, const char* why) {
    const std::size_t next = NextAfter(in_.content, offset_);
    if (next == in_.content.size()) {
      AddAt(in_.last ? FaultClass::kTornTail : FaultClass::kMalformed, at, why);
      offset_ = next;
      damaged_end_ = true;
      return false;
    }
    AddAt(FaultClass::kMalformed, at, why);
    const std::optional<Line> line = LineAt(in_.content, next);
    if (line && chain_.known && line->sequence == chain_.next &&
        Right(*line, chain_.previous)) {  // something was put in between
      offset_ = next;
      return true;
    }
    // The damaged line's MAC digits may be whole: then the next line can still be checked.
    const Bytes digits = next - offset_ >= kCoveredAt ? in_.content.subspan(offset_ + kMacAt, 64) : Bytes();
    const auto stated = FromHex(AsText(digits));
    Digest previous{};
    if (stated.ok() && stated->size() == previous.size()) CopyBytes(*stated, previous);
    chain_ = {line && Right(*line, previous), previous,
              std::max(chain_.next, line ? std::min(line->sequence, chain_.next + 1) : 0), chain_.epoch};
    offset_ = next;
    return true;
  }

  void CheckEnd() {
    if (result_.sealed) return;
    const bool short_file = result_.header_ok && in_.content.size() != result_.header.bytes;
    if (short_file) {
      AddAt(FaultClass::kTruncated, in_.content.size(),
            "the file has " + std::to_string(in_.content.size()) + " bytes, it was made with " +
                std::to_string(result_.header.bytes));
    } else if (!in_.last && !damaged_end_) {
      AddAt(FaultClass::kTruncated, offset_, "the segment ends without its seal, though another follows");
    }
    if (!in_.last) chain_.known = false;
  }

  const SegmentInput& in_;
  ChainState& chain_;
  FaultList& faults_;
  const RecordVisitor& visit_;
  SegmentResult result_;
  std::size_t offset_ = 0;
  bool damaged_end_ = false;
};

}  // namespace

std::string_view FaultName(FaultClass kind) noexcept {
  static constexpr std::array<std::string_view, 12> kNames = {
      "malformed",         "altered",   "missing",   "repeated",        "foreign_segment", "wrong_key",
      "misplaced_segment", "truncated", "torn_tail", "missing_segment", "unreadable",      "acknowledged_record_lost"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string Fault::ToString() const {
  return std::string(FaultName(kind)) + " in segment " + std::to_string(segment) + ", record " +
         std::to_string(record) + ", byte " + std::to_string(offset) + ": " + detail;
}

void FaultList::Add(Fault fault) {
  if (faults.size() < kMaxFaults) faults.push_back(std::move(fault));
  else ++left_off;
}

SegmentResult CheckSegment(const SegmentInput& input, ChainState& chain, FaultList& faults,
                           const RecordVisitor& visit) {
  return Walk(input, chain, faults, visit).Run();
}

std::uint64_t AcknowledgedInTail(Bytes tail) {
  std::uint64_t stated = 0;
  for (std::size_t at = 0; at < tail.size(); at = NextAfter(tail, at)) {
    if (const std::optional<Line> line = LineAt(tail, at)) stated = std::max(stated, line->acknowledged);
  }
  return stated;
}

}  // namespace assay::audit
