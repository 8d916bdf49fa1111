// SPDX-License-Identifier: Apache-2.0
#include "agent/local/frame.h"

#include <cstdlib>
#include <utility>

namespace assay::local {

Buffer Frame(Bytes message) {
  Writer out(message.size() + kFrameHead);
  out.U32Le(static_cast<std::uint32_t>(message.size()));
  out.Put(message);
  return std::move(out).Take();
}

std::size_t FrameReader::Wanted() const noexcept { return sized_ ? size_ - body_.size() : kFrameHead - head_.size(); }

Status FrameReader::Feed(Bytes bytes) {
  if (bytes.size() > Wanted()) std::abort();
  if (sized_) {
    body_.insert(body_.end(), bytes.begin(), bytes.end());
    return Ok();
  }
  head_.insert(head_.end(), bytes.begin(), bytes.end());
  if (head_.size() < kFrameHead) return Ok();
  size_ = Reader(head_).U32Le();
  if (size_ == 0) return MakeError(Code::kMalformed, "a frame without content");
  if (size_ > limit_)
    return MakeError(Code::kLimit,
                     "a frame of " + std::to_string(size_) + " bytes; " + std::to_string(limit_) + " are allowed");
  sized_ = true;
  return Ok();
}

Buffer FrameReader::Take() {
  if (!complete()) std::abort();
  head_.clear();
  sized_ = false;
  size_ = 0;
  return std::exchange(body_, {});
}

}  // namespace assay::local
