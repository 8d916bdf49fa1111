// SPDX-License-Identifier: Apache-2.0
// Frames of the local socket: a little-endian 32-bit size and that many bytes. Reads what arrives in pieces, keeps
// at most one frame, refuses an empty or larger one before any of it is stored.
#pragma once

#include <cstddef>

#include "sdk/core/bytes.h"
#include "sdk/core/result.h"

namespace assay::local {

inline constexpr std::size_t kFrameHead = 4;

Buffer Frame(Bytes message);

class FrameReader {
 public:
  explicit FrameReader(std::size_t limit) : limit_(limit) {}
  // How many bytes may be read now: never past the end of the frame in hand.
  std::size_t Wanted() const noexcept;
  // At most Wanted() bytes. kMalformed for an empty frame, kLimit for one over the limit: close the connection.
  Status Feed(Bytes bytes);
  bool complete() const noexcept { return sized_ && body_.size() == size_; }
  bool started() const noexcept { return head_.size() > 0; }  // some bytes of a frame are here
  Buffer Take();                                              // the complete frame; the next one begins

 private:
  std::size_t limit_;
  Buffer head_;
  Buffer body_;
  std::size_t size_ = 0;
  bool sized_ = false;
};

}  // namespace assay::local
