// SPDX-License-Identifier: Apache-2.0
// The reader of segments: takes any bytes, stays within them, terminates, calls nothing verified that is not, and reads
// each line back to the bytes that the writer would make of it.
#include <cstdlib>

#include "verifier/audit/audit_log.h"
#include "verifier/audit/segment_reader.h"

namespace {

const assay::audit::AuditKeys& Keys() {
  static const assay::audit::AuditKeys keys(assay::audit::LogId{}, assay::Buffer(32, 0x42));
  return keys;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace assay;
  using namespace assay::audit;
  const Bytes input(data, size);
  const char* why = nullptr;
  if (const auto line = ParseLine(input, kMaxRecord, why)) {
    Buffer again;
    const std::size_t at =
        AppendLine(again, {line->epoch, line->sequence, line->acknowledged, line->kind}, AsText(line->record));
    PutMac(again, at, line->mac);
    if (!Equal(again, input.first(line->length))) std::abort();
    if (const auto header = ParseHeader(line->record); header && EncodeHeader(*header) != AsText(line->record))
      std::abort();
  }
  for (const bool last : {true, false}) {
    ChainState chain;
    FaultList faults;
    std::uint64_t seen = 0;
    const SegmentResult result = CheckSegment({Keys(), 1, input, last}, chain, faults, [&](const RecordView& record) {
      if (record.sequence <= seen || record.offset >= size) std::abort();
      seen = record.sequence;
    });
    if (result.end > size) std::abort();
    if (faults.empty() && (!result.header_ok || (!result.sealed && !last))) std::abort();
  }
  (void)AcknowledgedInTail(input);
  return 0;
}
