// SPDX-License-Identifier: Apache-2.0
#include "verifier/audit/trail.h"

#include <algorithm>

#include "verifier/audit/audit_log.h"

namespace assay::audit {
namespace {

class TrailWalk {
 public:
  TrailWalk(Directory& directory, const AuditKeys& keys, const RecordVisitor& visit)
      : directory_(directory), keys_(keys), visit_(visit) {}

  Result<TrailResult> Run() {
    ASSAY_TRY(const std::vector<std::string> names, directory_.List());
    for (const std::string& name : names) {
      if (const auto number = SegmentNumber(name)) numbers_.push_back(*number);
    }
    std::sort(numbers_.begin(), numbers_.end());
    result_.segments = numbers_.size();
    for (std::size_t i = 0; i < numbers_.size() && !result_.rotation; ++i) Segment(i);
    if (!numbers_.empty() && result_.last.sealed) {
      result_.faults.Add(
          {FaultClass::kMissingSegment, result_.last_segment + 1, chain_.next, 0,
           "segment " + std::to_string(result_.last_segment) + " is sealed, its successor is not there"});
    }
    return std::move(result_);
  }

 private:
  std::optional<Buffer> Read(std::uint64_t number) {
    const std::string name = SegmentName(number);
    Result<std::unique_ptr<File>> file = directory_.Open(name, Access::kRead);
    Result<Buffer> content = file.ok() ? ReadWhole(**file, name, kMaxSegmentBytes) : Result<Buffer>(file.error());
    if (content.ok()) return std::move(content).value();
    result_.faults.Add({FaultClass::kUnreadable, number, chain_.next, 0, content.error().ToString()});
    chain_.known = false;
    return std::nullopt;
  }

  void Segment(std::size_t index) {
    const std::uint64_t number = numbers_[index];
    const std::uint64_t expected = index == 0 ? 1 : numbers_[index - 1] + 1;
    if (number != expected) {
      result_.faults.Add(
          {FaultClass::kMissingSegment, expected, chain_.next, 0,
           "segments " + std::to_string(expected) + " to " + std::to_string(number - 1) + " are not there"});
      chain_.known = false;
    }
    std::optional<Buffer> content = Read(number);
    const bool last = index + 1 == numbers_.size();
    result_.last_segment = number;
    result_.last = {};
    result_.last_content.clear();
    if (!content) return;
    result_.bytes += content->size();
    const bool second_last = index + 2 == numbers_.size() && numbers_[index + 1] == number + 1;
    // With clean bytes so far, the segment may be one whose rotation was cut short: first judged as if it were the last.
    if (second_last && result_.faults.empty() && FindRotation(number, *content)) return;
    const bool clean = result_.faults.empty();
    result_.last = CheckSegment({keys_, number, *content, last}, chain_, result_.faults, visit_);
    if (clean) result_.end = result_.last.at_end;
    result_.lines += result_.last.lines;
    result_.records += result_.last.records;
    result_.last_content = std::move(*content);
  }

  bool FindRotation(std::uint64_t number, const Buffer& content) {
    FaultList trial;
    ChainState chain = chain_;
    const SegmentResult judged = CheckSegment({keys_, number, content, true}, chain, trial, {});
    if (judged.sealed || !judged.header_ok) return false;
    const bool torn_seal = trial.faults.size() == 1 && trial.faults[0].kind == FaultClass::kTornTail;
    if (!trial.empty() && !torn_seal) return false;
    const auto successor = Read(number + 1);
    const char* why = nullptr;
    const std::optional<Line> line = successor ? ParseLine(*successor, kMaxRecord, why) : std::nullopt;
    const std::optional<SegmentHeader> header = line ? ParseHeader(line->record) : std::nullopt;
    if (!header ||
        std::any_of(successor->begin() + line->length, successor->end(), [](std::uint8_t b) { return b != 0; }))
      return false;
    ChainState state = judged.at_end;
    state.epoch = line->epoch;  // a rotation within a start already has the start's epoch
    UnfinishedRotation rotation{number, judged.end, {}};
    AppendChained(rotation.seal, keys_, state, {number, Kind::kSeal, state.next - 1},
                  EncodeSeal({number, judged.lines, judged.first, judged.at_end.next - 1}));
    if (state.previous != header->previous) return false;
    FaultList torn;  // the same fault again, behind the records that are visited now
    result_.last = CheckSegment({keys_, number, content, true}, chain_, torn, visit_);
    result_.faults = std::move(torn);
    result_.end = result_.last.at_end;
    result_.lines += result_.last.lines;
    result_.records += result_.last.records;
    result_.last_content = content;
    result_.rotation = std::move(rotation);
    return true;
  }

  Directory& directory_;
  const AuditKeys& keys_;
  const RecordVisitor& visit_;
  std::vector<std::uint64_t> numbers_;
  ChainState chain_;
  TrailResult result_;
};

}  // namespace

Result<TrailResult> WalkTrail(Directory& directory, const AuditKeys& keys, const RecordVisitor& visit) {
  return TrailWalk(directory, keys, visit).Run();
}

}  // namespace assay::audit
