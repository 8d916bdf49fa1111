// SPDX-License-Identifier: Apache-2.0
// Non-blocking AF_UNIX stream with poll before every step. A frame is a 32-bit little-endian size and the bytes.
#include "sdk/client/exchange.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>

#include "sdk/core/handle.h"
#include "sdk/core/limits.h"

namespace assay::sdk {
namespace {

constexpr std::size_t kFrameHead = 4;
constexpr std::size_t kMaxReply = limits::kOtherBody + 4096;  // a client's replies: a token or the status

assay_code Wait(int fd, short events, const Deadline& deadline) noexcept {
  for (;;) {
    const int left = deadline.LeftMs();
    if (left == 0) return ASSAY_E_TIMEOUT;
    pollfd entry{.fd = fd, .events = events, .revents = 0};
    const int rc = ::poll(&entry, 1, left);
    if (rc > 0) return ASSAY_OK;
    if (rc < 0 && errno != EINTR) return ASSAY_E_IO;
  }
}

bool TryAgain(int fault) noexcept { return fault == EAGAIN || fault == EWOULDBLOCK || fault == EINTR; }

// A full backlog gives EAGAIN on AF_UNIX, with nothing to poll for: wait a little and try again.
assay_code Connect(int fd, const std::string& path, const Deadline& deadline) noexcept {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return ASSAY_E_ARGUMENT;
  std::copy(path.begin(), path.end(), address.sun_path);
  constexpr int kRetryMs = 5;
  for (;;) {
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) return ASSAY_OK;
    if (!TryAgain(errno)) return ASSAY_E_UNAVAILABLE;
    const int left = deadline.LeftMs();
    if (left == 0) return ASSAY_E_TIMEOUT;
    (void)::poll(nullptr, 0, std::min(left, kRetryMs));
  }
}

assay_code Send(int fd, Bytes data, const Deadline& deadline) noexcept {
  while (!data.empty()) {
    if (const assay_code code = Wait(fd, POLLOUT, deadline); code != ASSAY_OK) return code;
    const ssize_t sent = ::send(fd, data.data(), data.size(), MSG_NOSIGNAL);
    if (sent < 0 && !TryAgain(errno)) return ASSAY_E_IO;
    if (sent > 0) data = data.subspan(static_cast<std::size_t>(sent));
  }
  return ASSAY_OK;
}

assay_code Receive(int fd, MutableBytes out, const Deadline& deadline) noexcept {
  while (!out.empty()) {
    if (const assay_code code = Wait(fd, POLLIN, deadline); code != ASSAY_OK) return code;
    const ssize_t got = ::recv(fd, out.data(), out.size(), 0);
    if (got == 0) return ASSAY_E_PROTOCOL;  // closed within a frame, or without an answer
    if (got < 0 && !TryAgain(errno)) return ASSAY_E_IO;
    if (got > 0) out = out.subspan(static_cast<std::size_t>(got));
  }
  return ASSAY_OK;
}

}  // namespace

int Deadline::LeftMs() const noexcept {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(end_ - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1 << 30));
}

assay_code Exchange(const std::string& path, Bytes request, const Deadline& deadline, Buffer& reply) {
  const Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return ASSAY_E_IO;
  if (const assay_code code = Connect(fd.get(), path, deadline); code != ASSAY_OK) return code;
  Writer frame(kFrameHead + request.size());
  frame.U32Le(static_cast<std::uint32_t>(request.size()));
  frame.Put(request);
  if (const assay_code code = Send(fd.get(), frame.buffer(), deadline); code != ASSAY_OK) return code;
  std::array<std::uint8_t, kFrameHead> head{};
  if (const assay_code code = Receive(fd.get(), head, deadline); code != ASSAY_OK) return code;
  const std::size_t size = Reader(head).U32Le();
  if (size == 0 || size > kMaxReply) return ASSAY_E_PROTOCOL;
  reply.resize(size);
  return Receive(fd.get(), reply, deadline);
}

}  // namespace assay::sdk
