// SPDX-License-Identifier: Apache-2.0
#include "agent/local/client.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>

#include "sdk/core/limits.h"

namespace assay::local {
namespace {

using SteadyClock = std::chrono::steady_clock;

Status WaitFor(int fd, short events, SteadyClock::time_point deadline) {
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - SteadyClock::now()).count();
    if (left <= 0) return MakeError(Code::kTimeout, "the agent did not answer in time");
    pollfd item{fd, events, 0};
    const int ready = ::poll(&item, 1, static_cast<int>(std::min<std::int64_t>(left, 60'000)));
    if (ready > 0) return Ok();
    if (ready < 0 && errno != EINTR)
      return MakeError(Code::kIo, "poll on the agent's socket failed", static_cast<std::uint32_t>(errno));
  }
}

Status SendAll(int fd, Bytes bytes, SteadyClock::time_point deadline) {
  while (!bytes.empty()) {
    ASSAY_CHECK_OK(WaitFor(fd, POLLOUT, deadline));
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (sent <= 0)
      return MakeError(Code::kUnavailable, "the agent closed the connection", static_cast<std::uint32_t>(errno));
    bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
  return Ok();
}

Result<Buffer> ReceiveFrame(int fd, SteadyClock::time_point deadline) {
  FrameReader reader(limits::kLocalReply);
  std::array<std::uint8_t, 16U << 10> buffer;
  while (!reader.complete()) {
    ASSAY_CHECK_OK(WaitFor(fd, POLLIN, deadline));
    const ssize_t size = ::recv(fd, buffer.data(), std::min(buffer.size(), reader.Wanted()), 0);
    if (size < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (size <= 0) return MakeError(Code::kUnavailable, "the agent closed the connection");
    ASSAY_CHECK_OK(reader.Feed(Bytes(buffer).first(static_cast<std::size_t>(size))));
  }
  return reader.Take();
}

}  // namespace

Result<Client> Client::Connect(const std::string& socket_path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_path.empty() || socket_path.size() >= sizeof address.sun_path)
    return MakeError(Code::kConfig, "the agent's socket path is empty or too long");
  socket_path.copy(address.sun_path, sizeof address.sun_path - 1);
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return MakeError(Code::kIo, "cannot make a socket", static_cast<std::uint32_t>(errno));
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return MakeError(Code::kUnavailable,
                     "no agent answers at " + socket_path + ": start assay-agent, or name its socket",
                     static_cast<std::uint32_t>(errno));
  }
  return Client(std::move(fd));
}

Result<Reply> Client::Call(const Request& request, std::uint64_t timeout_ms) {
  const auto deadline = SteadyClock::now() + std::chrono::milliseconds(timeout_ms);
  if (!fd_.valid()) return MakeError(Code::kUnavailable, "the connection to the agent is closed");
  const auto once = [&]() -> Result<Reply> {
    ASSAY_CHECK_OK(SendAll(fd_.get(), Frame(EncodeRequest(request)), deadline));
    ASSAY_TRY(const Buffer frame, ReceiveFrame(fd_.get(), deadline));
    return DecodeReply(frame);
  };
  auto reply = once();
  if (!reply.ok()) fd_ = Fd();  // an answer that comes late must not be taken for the next one's
  return reply;
}

}  // namespace assay::local
