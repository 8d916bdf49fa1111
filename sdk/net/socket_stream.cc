// SPDX-License-Identifier: Apache-2.0
#include "sdk/net/socket_stream.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace assay::net {
namespace {

bool WouldBlock(int number) noexcept { return number == EAGAIN || number == EWOULDBLOCK || number == EINTR; }

Error Broken(int number) {
  return MakeError(Code::kUnavailable, std::string("the connection broke: ") + std::strerror(number),
                   static_cast<std::uint32_t>(number));
}

}  // namespace

Result<std::size_t> SocketStream::Read(MutableBytes out, Deadline deadline) {
  for (;;) {
    const ssize_t count = ::recv(fd_.get(), out.data(), out.size(), 0);
    if (count >= 0) return static_cast<std::size_t>(count);
    if (!WouldBlock(errno)) return Broken(errno);
    ASSAY_CHECK_OK(WaitFor(fd_.get(), POLLIN, deadline));
  }
}

Status SocketStream::Write(Bytes bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(count));
      continue;
    }
    if (!WouldBlock(errno)) return Broken(errno);
    ASSAY_CHECK_OK(WaitFor(fd_.get(), POLLOUT, deadline));
  }
  return Ok();
}

bool SocketStream::Quiet() noexcept {
  std::uint8_t byte = 0;
  const ssize_t count = ::recv(fd_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return count < 0 && WouldBlock(errno);
}

}  // namespace assay::net
