// SPDX-License-Identifier: Apache-2.0
// A connected, non-blocking stream socket without encryption. Internal to sdk/net.
#pragma once

#include "sdk/core/handle.h"
#include "sdk/net/stream.h"

namespace assay::net {

class SocketStream final : public Stream {
 public:
  explicit SocketStream(Fd fd) noexcept : fd_(std::move(fd)) {}
  Result<std::size_t> Read(MutableBytes out, Deadline deadline) override;
  Status Write(Bytes bytes, Deadline deadline) override;
  bool Quiet() noexcept override;

 private:
  Fd fd_;
};

}  // namespace assay::net
