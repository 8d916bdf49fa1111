// SPDX-License-Identifier: Apache-2.0
// What an HTTP exchange needs of a connection: bytes in, bytes out, each within a deadline. Internal to sdk/net.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "sdk/core/bytes.h"
#include "sdk/core/result.h"

namespace assay::net {

using Deadline = std::chrono::steady_clock::time_point;
Deadline After(std::uint64_t milliseconds) noexcept;

// Waits until `fd` is ready for `events` (poll's). kTimeout at the deadline; errors of the socket show at its next use.
Status WaitFor(int fd, short events, Deadline deadline);

class Stream {
 public:
  virtual ~Stream() = default;
  // At least one byte; 0 only at the end of the stream. kTimeout, kUnavailable.
  virtual Result<std::size_t> Read(MutableBytes out, Deadline deadline) = 0;
  // All of it.
  virtual Status Write(Bytes bytes, Deadline deadline) = 0;
  // Between exchanges: the peer has neither closed nor sent anything. Never waits.
  virtual bool Quiet() noexcept = 0;
};

}  // namespace assay::net
