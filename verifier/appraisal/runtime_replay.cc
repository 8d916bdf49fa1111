// SPDX-License-Identifier: Apache-2.0
#include "verifier/appraisal/runtime_replay.h"

#include <algorithm>

#include "sdk/core/runtime_log.h"

namespace assay::appraisal {
namespace {

constexpr std::size_t kMaxAgents = 16;  // distinct agents of one boot worth remembering

void Note(attest::RuntimeKnown& known, const RuntimeEntry& entry) {
  if (entry.kind == EntryKind::kRelease) known.released = true;
  if (entry.kind != EntryKind::kIdentity) return;
  if (entry.predecessor != entry.index) known.resumed = true;  // the agent had entries that these registers do not know
  std::erase(known.agents, entry.agent);
  if (known.agents.size() == kMaxAgents) known.agents.erase(known.agents.begin());
  known.agents.push_back(entry.agent);
}

}  // namespace

RuntimeReplay ReplayRuntimeLog(const RuntimeEvidence& runtime, const Digest& pcr14, const tpm::ClockInfo& clock,
                               const attest::RuntimeKnown& before) {
  RuntimeReplay replay;
  if (runtime.log_from > 0) {
    const bool continues = before.reset_count == clock.reset_count && before.next_index == runtime.log_from &&
                           before.pcr14 == runtime.log_base;
    if (!continues) {
      replay.resend_from_start = true;
      return replay;
    }
    replay.known = before;
  }
  replay.known.reset_count = clock.reset_count;
  Digest value = runtime.log_base;
  std::uint64_t index = runtime.log_from;
  for (const Bytes encoded : runtime.log) {
    const auto entry = DecodeRuntimeEntry(encoded);
    if (!entry.ok() || entry->index != index) {
      replay.state = RuntimeLog::kMalformed;
      return replay;
    }
    value = ExtendWithEntry(value, encoded);
    Note(replay.known, *entry);
    ++index;
  }
  replay.known.next_index = index;
  replay.known.pcr14 = value;
  replay.state = value == pcr14 ? RuntimeLog::kReplays : RuntimeLog::kMismatch;
  if (replay.state == RuntimeLog::kMismatch) replay.known.next_index = 0;  // trust nothing of it next time
  return replay;
}

}  // namespace assay::appraisal
