// SPDX-License-Identifier: Apache-2.0
#include "sdk/net/dial.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

namespace assay::net {
namespace {

using Addresses = Handle<addrinfo, freeaddrinfo>;

Error SocketError(const std::string& what, int number) {
  return MakeError(number == ETIMEDOUT ? Code::kTimeout : Code::kUnavailable, what + ": " + std::strerror(number),
                   static_cast<std::uint32_t>(number));
}

struct LookupResult {
  int error = 0;
  Addresses addresses;
};

LookupResult Lookup(const std::string& host, std::uint16_t port, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | flags;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  return {error, Addresses(error == 0 ? found : nullptr)};
}

// getaddrinfo() knows no deadline, so it runs on a thread that may be left behind to end by itself.
struct PendingLookup {
  std::mutex mutex;
  std::condition_variable done_changed;
  bool done = false;
  LookupResult result;
};

Result<Addresses> LookupBy(const std::string& host, std::uint16_t port, Deadline deadline) {
  LookupResult numeric = Lookup(host, port, AI_NUMERICHOST);
  if (numeric.error == 0) return std::move(numeric.addresses);
  const auto pending = std::make_shared<PendingLookup>();  // shared by this call and the thread, whichever ends last
  try {
    std::thread([pending, host, port] {
      LookupResult result = Lookup(host, port, AI_ADDRCONFIG);
      const std::lock_guard lock(pending->mutex);
      pending->result = std::move(result);
      pending->done = true;
      pending->done_changed.notify_one();
    }).detach();
  } catch (const std::system_error& error) {
    return MakeError(Code::kUnavailable, "no thread for the name lookup",
                     static_cast<std::uint32_t>(error.code().value()));
  }
  std::unique_lock lock(pending->mutex);
  if (!pending->done_changed.wait_until(lock, deadline, [&] { return pending->done; })) {
    return MakeError(Code::kTimeout, "the name " + host + " was not resolved in time");
  }
  if (pending->result.error != 0) {
    return MakeError(Code::kUnavailable,
                     "the name " + host + " does not resolve: " + ::gai_strerror(pending->result.error));
  }
  return std::move(pending->result.addresses);
}

Status FinishConnect(int fd, const std::string& name, Deadline deadline) {
  if (Status ready = WaitFor(fd, POLLOUT, deadline); !ready.ok()) {
    if (ready.error().code == Code::kTimeout)
      return MakeError(Code::kTimeout, name + " did not take the connection in time");
    return ready;
  }
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error != 0) return SocketError("cannot connect to " + name, error);
  return Ok();
}

Result<Fd> ConnectOne(const addrinfo& address, const std::string& name, Deadline deadline) {
  Fd fd(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return SocketError("no socket", errno);
  const int on = 1;
  (void)::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);  // latency only
  if (::connect(fd.get(), address.ai_addr, address.ai_addrlen) == 0) return fd;
  if (errno != EINPROGRESS) return SocketError("cannot connect to " + name, errno);
  ASSAY_CHECK_OK(FinishConnect(fd.get(), name, deadline));
  return fd;
}

}  // namespace

Result<Fd> DialTcp(const std::string& host, std::uint16_t port, Deadline deadline) {
  ASSAY_TRY(const Addresses addresses, LookupBy(host, port, deadline));
  const std::string name = (host.find(':') == std::string::npos ? host : "[" + host + "]") + ":" + std::to_string(port);
  Result<Fd> last = MakeError(Code::kUnavailable, name + " has no address");
  for (const addrinfo* at = addresses.get(); at != nullptr; at = at->ai_next) {
    last = ConnectOne(*at, name, deadline);
    if (last.ok() || last.error().code == Code::kTimeout) break;
  }
  return last;
}

Result<Fd> DialUnix(const std::string& path, Deadline deadline) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return MakeError(Code::kConfig, "\"" + path + "\" is no socket path: 1 to " +
                                        std::to_string(sizeof address.sun_path - 1) + " bytes");
  }
  path.copy(address.sun_path, path.size());
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return SocketError("no socket", errno);
  for (;;) {
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return fd;
    if (errno == EACCES || errno == EPERM)
      return MakeError(Code::kDenied, path + ": this user may not connect", static_cast<std::uint32_t>(errno));
    if (errno != EAGAIN) return SocketError("cannot connect to " + path, errno);
    // A full backlog: connect() of AF_UNIX cannot be waited for, so try again shortly.
    if (std::chrono::steady_clock::now() >= deadline)
      return MakeError(Code::kTimeout, path + " did not take the connection in time");
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

}  // namespace assay::net
