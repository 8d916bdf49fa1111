// SPDX-License-Identifier: Apache-2.0
#include <poll.h>

#include <algorithm>
#include <cerrno>

#include "sdk/net/stream.h"

namespace assay::net {
namespace {

constexpr long long kLongestWait = 60'000;  // milliseconds of one poll; the loop goes on

}  // namespace

Deadline After(std::uint64_t milliseconds) noexcept {
  return std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
}

Status WaitFor(int fd, short events, Deadline deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    if (left <= 0) return MakeError(Code::kTimeout, "the peer did not answer in time");
    pollfd entry{fd, events, 0};
    const int ready = ::poll(&entry, 1, static_cast<int>(std::min<long long>(left, kLongestWait)));
    if (ready > 0) return Ok();
    if (ready < 0 && errno != EINTR) return MakeError(Code::kIo, "poll failed", static_cast<std::uint32_t>(errno));
  }
}

}  // namespace assay::net
