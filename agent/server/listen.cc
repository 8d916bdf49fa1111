// SPDX-License-Identifier: Apache-2.0
// Making the agent's listening socket.
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>

#include "agent/server/server.h"
#include "sdk/config/files.h"

namespace assay::agent {
namespace {

constexpr int kBacklog = 128;
constexpr mode_t kAnyUser = 0666;  // who may ask for what is the request table's matter
constexpr mode_t kDirectory = 0755;

Error SocketError(const std::string& what) { return MakeError(Code::kIo, what, static_cast<std::uint32_t>(errno)); }

// A file left by an agent that died is removed; one that answers is not ours to take.
Status RemoveStale(const std::string& path, const sockaddr_un& address) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return Ok();
  if (!S_ISSOCK(info.st_mode))
    return MakeError(Code::kConflict, path + " exists and is no socket: remove it or configure another path");
  const Fd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!probe.valid()) return SocketError("cannot make a socket");
  if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 || errno == EAGAIN) {
    return MakeError(Code::kConflict, "another agent answers at " + path + ": stop it first");
  }
  if (::unlink(path.c_str()) != 0) return SocketError("cannot remove the stale socket " + path);
  return Ok();
}

}  // namespace

Result<Fd> ListenAt(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path)
    return MakeError(Code::kConfig, "the socket's path is empty or too long");
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const std::size_t slash = path.rfind('/');
  if (slash != std::string::npos && slash > 0) ASSAY_CHECK_OK(config::MakeDirectory(path.substr(0, slash), kDirectory));
  ASSAY_CHECK_OK(RemoveStale(path, address));
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return SocketError("cannot make a socket");
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return SocketError("cannot bind " + path);
  if (::chmod(path.c_str(), kAnyUser) != 0) return SocketError("cannot set the mode of " + path);
  if (::listen(fd.get(), kBacklog) != 0) return SocketError("cannot listen at " + path);
  return fd;
}

}  // namespace assay::agent
