// SPDX-License-Identifier: Apache-2.0
#include "verifier/audit/recovery.h"

#include <algorithm>
#include <chrono>

namespace assay::audit {
namespace {

std::string Now() {
  return std::to_string(
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count());
}

Error Refusal(const TrailResult& walk) {
  const std::uint64_t more = walk.faults.faults.size() - 1 + walk.faults.left_off;
  std::string text = "the audit trail is damaged and is not continued: " + walk.faults.faults.front().ToString();
  if (more > 0) text += " (and " + std::to_string(more) + " more faults)";
  return MakeError(
      Code::kMalformed,
      text + "; see assayctl audit verify, then restore the trail or begin a new directory and keep this one");
}

// What a crash while a batch was being written can leave: faults only in the last segment, behind the last line that
// any surviving line calls acknowledged.
bool IsTornTail(const TrailResult& walk, Bytes tail) {
  if (!walk.last.header_ok || walk.last.sealed || walk.faults.left_off > 0) return false;
  if (walk.last_content.size() != walk.last.header.bytes) return false;
  const auto in_tail = [&](const Fault& fault) {
    return fault.segment == walk.last_segment && fault.offset >= walk.last.end;
  };
  if (!std::all_of(walk.faults.faults.begin(), walk.faults.faults.end(), in_tail)) return false;
  return AcknowledgedInTail(tail) < walk.end.next;
}

Result<std::string> Quarantine(Directory& directory, const TrailResult& walk, Bytes tail) {
  const std::string base = kQuarantinePrefix + std::to_string(walk.last_segment) + "-" + std::to_string(walk.last.end);
  for (int attempt = 1; attempt <= 1000; ++attempt) {
    const std::string name = base + "-" + std::to_string(attempt);
    Result<std::unique_ptr<File>> file = directory.Open(name, Access::kCreate);
    if (!file.ok() && file.error().code == Code::kConflict) continue;
    if (!file.ok()) return Named(file.error(), "creating", name);
    ASSAY_CHECK_OK(WriteAll(**file, name, 0, tail));
    if (const Status synced = (*file)->SyncData(); !synced.ok()) return Named(synced.error(), "syncing", name);
    if (const Status synced = directory.Sync(); !synced.ok())
      return Named(synced.error(), "syncing directory", directory.path());
    return name;
  }
  return MakeError(Code::kLimit, "1000 quarantine files of one place: move them away");
}

// Writes the log's own lines, over `stale` bytes of a torn tail. All before them is durable.
Status WriteOwnLines(const RecoveryInput& input, ChainState& state, const std::vector<std::string>& lines,
                     std::uint64_t stale) {
  const auto encode = [&](Buffer& out) {
    ChainState trial = state;
    for (const std::string& json : lines)
      AppendChained(out, input.keys, trial, {input.writer.place().number, Kind::kControl, state.next - 1}, json);
    return trial;
  };
  Buffer out;
  ChainState moved = encode(out);
  if (out.size() > input.writer.Room()) {
    if (stale > 0) ASSAY_CHECK_OK(input.writer.Write({}, 0, stale));
    stale = 0;
    ASSAY_CHECK_OK(input.writer.Rotate(state));
    out.clear();
    moved = encode(out);
  }
  ASSAY_CHECK_OK(input.writer.Write(out, lines.size(), stale > out.size() ? stale - out.size() : 0));
  state = moved;
  return Ok();
}

// What a killed process left can be read but is perhaps only in the page cache: it becomes durable before it is judged,
// since every line that follows calls it so. A rotation leaves at most the last two segments in doubt, and their names.
Status MakeDurable(Directory& directory) {
  ASSAY_TRY(const std::vector<std::string> names, directory.List());
  int left = 2;
  for (auto name = names.rbegin(); name != names.rend() && left > 0; ++name) {
    if (!SegmentNumber(*name)) continue;
    --left;
    const Result<std::unique_ptr<File>> file = directory.Open(*name, Access::kRead);
    if (!file.ok()) return Named(file.error(), "opening", *name);
    if (const Status synced = (*file)->SyncData(); !synced.ok()) return Named(synced.error(), "syncing", *name);
  }
  if (const Status synced = directory.Sync(); !synced.ok())
    return Named(synced.error(), "syncing directory", directory.path());
  return Ok();
}

Result<TrailResult> WalkAndFinish(const RecoveryInput& input) {
  ASSAY_TRY(TrailResult walk, WalkTrail(input.directory, input.keys, input.visit));
  if (!walk.rotation) return walk;
  ASSAY_CHECK_OK(FinishRotation(input.directory, walk.rotation->segment, walk.rotation->offset, walk.rotation->seal));
  return WalkTrail(input.directory, input.keys, {});  // its records were seen already
}

Error Lost(std::uint64_t end, std::uint64_t acknowledged) {
  return MakeError(Code::kMalformed, "acknowledged_record_lost: the audit trail ends at record " + std::to_string(end) +
                                         ", record " + std::to_string(acknowledged) +
                                         " was acknowledged: restore the newer trail");
}

}  // namespace

std::string OpenedLine(std::uint32_t epoch) {
  return "{\"audit\":\"opened\",\"epoch\":" + std::to_string(epoch) + ",\"at_ms\":" + Now() + "}";
}
std::string StoppedLine() { return "{\"audit\":\"stopped\",\"at_ms\":" + Now() + "}"; }

Result<Recovered> Recover(const RecoveryInput& input) {
  ASSAY_CHECK_OK(MakeDurable(input.directory));
  ASSAY_TRY(const TrailResult walk, WalkAndFinish(input));
  Recovered out;
  std::vector<std::string> lines;
  if (walk.segments == 0) {
    if (input.acknowledged > 0) return Lost(0, input.acknowledged);
    out.state.epoch = 1;
    ASSAY_CHECK_OK(input.writer.Start(out.state));
    ASSAY_CHECK_OK(WriteOwnLines(input, out.state, {OpenedLine(1)}, 0));
    return out;
  }
  out.state = walk.end;
  if (!walk.faults.empty()) {
    if (!walk.last.header_ok || walk.last.end > walk.last_content.size()) return Refusal(walk);
    Bytes tail = Bytes(walk.last_content).subspan(static_cast<std::size_t>(walk.last.end));
    while (!tail.empty() && tail.back() == 0) tail = tail.first(tail.size() - 1);
    if (!IsTornTail(walk, tail)) return Refusal(walk);
    if (input.acknowledged >= walk.end.next) return Lost(walk.end.next - 1, input.acknowledged);
    ASSAY_TRY(out.quarantine, Quarantine(input.directory, walk, tail));
    out.cut_bytes = tail.size();
    lines.push_back("{\"audit\":\"recovered\",\"segment\":" + std::to_string(walk.last_segment) + ",\"offset\":" +
                    std::to_string(walk.last.end) + ",\"bytes\":" + std::to_string(tail.size()) + ",\"sha256\":\"" +
                    ToHex(Sha256(tail)) + "\",\"quarantine\":\"" + out.quarantine + "\",\"at_ms\":" + Now() + "}");
  }
  if (input.acknowledged >= walk.end.next) return Lost(walk.end.next - 1, input.acknowledged);
  ASSAY_CHECK_OK(input.writer.Resume(
      {walk.last_segment, walk.last.header.bytes, walk.last.end, walk.last.lines, walk.last.first}));
  ++out.state.epoch;
  lines.push_back(OpenedLine(out.state.epoch));
  ASSAY_CHECK_OK(WriteOwnLines(input, out.state, lines, out.cut_bytes));
  return out;
}

}  // namespace assay::audit
