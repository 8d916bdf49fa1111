// SPDX-License-Identifier: Apache-2.0
// Writes the segment that grows: prepared with zeros so that a batch changes no metadata, written in place, made
// durable by one fdatasync. Owned by the log's writer thread (and by Open before that thread starts). After any Error
// the object must not be used again: nothing is retried.
#pragma once

#include <memory>
#include <string>

#include "verifier/audit/chain.h"
#include "verifier/audit/io.h"

namespace assay::audit {

struct SegmentPlace {
  std::uint64_t number = 0;
  std::uint64_t bytes = 0;   // the file's size
  std::uint64_t offset = 0;  // where the next line goes
  std::uint64_t lines = 0;   // in the file so far
  std::uint64_t first = 0;   // sequence of its header
};

class SegmentWriter {
 public:
  // Both outlive the writer. `segment_bytes`: size of segments made from here on.
  SegmentWriter(Directory& directory, const AuditKeys& keys, std::uint64_t segment_bytes)
      : directory_(directory), keys_(keys), segment_bytes_(segment_bytes) {}

  Status Start(ChainState& state);  // makes segment 1
  Status Resume(const SegmentPlace& place);
  // Bytes that still fit, the seal's left free.
  std::uint64_t Room() const noexcept;
  // `bytes`: whole lines that fit. Durable when it returns. `zeros`: so many bytes behind them are cleared as well.
  Status Write(Bytes bytes, std::uint64_t lines, std::uint64_t zeros = 0);
  // Makes the next segment, seals this one. `state` moves behind the new header. Everything before is durable already.
  Status Rotate(ChainState& state);
  // kDenied when the segment's name no longer leads to the file that is being written.
  Status CheckPinned();
  const SegmentPlace& place() const noexcept { return place_; }

 private:
  Result<std::unique_ptr<File>> Prepare();
  Status Publish(File& file, Bytes header, const std::string& name);
  Directory& directory_;
  const AuditKeys& keys_;
  const std::uint64_t segment_bytes_;
  SegmentPlace place_;
  std::unique_ptr<File> file_;
};

// Writes the seal that a crash left out.
Status FinishRotation(Directory& directory, std::uint64_t segment, std::uint64_t offset, Bytes seal);

}  // namespace assay::audit
