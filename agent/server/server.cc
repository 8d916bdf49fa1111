// SPDX-License-Identifier: Apache-2.0
#include "agent/server/server.h"

#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <vector>

#include "sdk/core/cbor.h"

namespace assay::agent {
namespace {

constexpr std::uint64_t kListenerId = 1;
constexpr std::uint64_t kInboxId = 2;
constexpr std::uint64_t kSignalsId = 3;
constexpr std::uint64_t kMaxSleepMs = 60'000;
constexpr std::size_t kReserved = 8;
constexpr std::size_t kReadSize = 16U << 10;

Status AddToEpoll(int epoll, int fd, std::uint64_t id) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = id;
  if (::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0)
    return MakeError(Code::kIo, "epoll_ctl failed", static_cast<std::uint32_t>(errno));
  return Ok();
}

}  // namespace

std::uint64_t MonotonicMs() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000 + static_cast<std::uint64_t>(now.tv_nsec) / 1'000'000;
}

local::Reply ErrorReplyOf(const Error& error) {
  local::Reply reply;
  reply.error.code = CodeName(error.code);
  reply.error.detail = error.detail.substr(0, limits::kReasonText);
  while (!reply.error.detail.empty() && !IsUtf8(reply.error.detail))
    reply.error.detail.pop_back();  // cut inside a character
  return reply;
}

Server::Server(Fd listener, Options options, Gate& gate, Inbox& inbox)
    : listener_(std::move(listener)),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      options_(std::move(options)),
      gate_(gate),
      inbox_(inbox) {}

Server::~Server() = default;

Status Server::Run(int signals, const std::function<void(int)>& on_signal) {
  ASSAY_CHECK_OK(AddToEpoll(epoll_.get(), listener_.get(), kListenerId));
  ASSAY_CHECK_OK(AddToEpoll(epoll_.get(), inbox_.fd(), kInboxId));
  if (signals >= 0) ASSAY_CHECK_OK(AddToEpoll(epoll_.get(), signals, kSignalsId));
  std::array<epoll_event, 64> events;
  while (!stop_) {
    const std::uint64_t now = MonotonicMs();
    const std::uint64_t next = std::min(handler_->OnTick(now), CloseStalled(now));
    const std::uint64_t sleep = next <= now ? 0 : std::min(next - now, kMaxSleepMs);
    const int count =
        ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), static_cast<int>(sleep));
    if (count < 0 && errno != EINTR)
      return MakeError(Code::kIo, "epoll_wait failed", static_cast<std::uint32_t>(errno));
    for (int i = 0; i < count; ++i) {
      const std::uint64_t id = events[static_cast<std::size_t>(i)].data.u64;
      if (id == kListenerId) {
        Accept();
      } else if (id == kInboxId) {
        inbox_.Drain();
      } else if (id == kSignalsId) {
        signalfd_siginfo info{};
        while (::read(signals, &info, sizeof info) == static_cast<ssize_t>(sizeof info))
          on_signal(static_cast<int>(info.ssi_signo));
      } else {
        Handle(id, events[static_cast<std::size_t>(i)].events);
      }
    }
  }
  return Ok();
}

// The last places are kept for the relay and root, so that a crowd of users cannot keep evidence from being made.
bool Server::HasRoomFor(uid_t uid) const {
  const bool reserved = uid == 0 || options_.is_relay(uid);
  const std::size_t room =
      options_.max_connections - (reserved ? 0 : std::min(kReserved, options_.max_connections / 2));
  if (connections_.size() >= room) return false;
  const auto same = std::count_if(connections_.begin(), connections_.end(),
                                  [uid](const auto& item) { return item.second->caller.uid == uid; });
  return static_cast<std::size_t>(same) < options_.max_connections_per_user;
}

void Server::Accept() {
  for (int burst = 0; burst < 64; ++burst) {
    Fd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd.valid()) return;
    ucred peer{};
    socklen_t size = sizeof peer;
    if (::getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || size != sizeof peer) continue;
    if (!HasRoomFor(peer.uid)) continue;  // closed: others keep their places
    auto connection = std::make_unique<Connection>();
    connection->fd = std::move(fd);
    connection->caller.connection = next_id_++;
    connection->caller.uid = peer.uid;
    connection->caller.gid = peer.gid;
    connection->caller.pid = peer.pid;
    connection->caller.relay = options_.is_relay(peer.uid);
    connection->caller.identity = gate_.CallerOf(connection->fd.get());
    connection->in = local::FrameReader(FrameLimit(connection->caller));
    Connection& added = *connection;
    connections_.emplace(added.caller.connection, std::move(connection));
    Watch(added);
  }
}

void Server::Watch(Connection& connection) {
  std::uint32_t wanted = EPOLLRDHUP;
  const bool writing = connection.sent < connection.out.size();
  if (writing) wanted |= EPOLLOUT;
  else if (!connection.waiting) wanted |= EPOLLIN;
  if (wanted == connection.watched) return;
  epoll_event event{};
  event.events = wanted;
  event.data.u64 = connection.caller.connection;
  (void)::epoll_ctl(epoll_.get(), connection.watched == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, connection.fd.get(), &event);
  connection.watched = wanted;
}

void Server::Handle(std::uint64_t id, std::uint32_t events) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;  // closed by an event before this one
  Connection& connection = *found->second;
  if ((events & EPOLLIN) != 0 && !connection.waiting) {
    OnReadable(connection);
    return;
  }
  if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) {
    Close(id);
    return;
  }
  if ((events & EPOLLOUT) != 0) Flush(connection);
}

void Server::OnReadable(Connection& connection) {
  std::array<std::uint8_t, kReadSize> buffer;
  const ssize_t size = ::recv(connection.fd.get(), buffer.data(), std::min(buffer.size(), connection.in.Wanted()), 0);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (size <= 0) {
    Close(connection.caller.connection);
    return;
  }
  if (!connection.in.started()) connection.deadline = MonotonicMs() + options_.io_timeout_ms;
  const Status fed = connection.in.Feed(Bytes(buffer).first(static_cast<std::size_t>(size)));
  if (!fed.ok()) {
    connection.close_after_write = true;
    Refuse(connection, fed.error());
    return;
  }
  if (!connection.in.complete()) return;
  connection.deadline = 0;
  connection.waiting = true;
  const Buffer frame = connection.in.Take();
  Watch(connection);
  OnFrame(connection, frame);
}

// One request: decoded, its row found, the caller's permit and the row's size checked, and only then handled.
void Server::OnFrame(Connection& connection, Bytes frame) {
  auto request = local::DecodeRequest(frame);
  if (!request.ok()) {
    connection.close_after_write = true;
    Refuse(connection, request.error());
    return;
  }
  const RequestRow* row = FindRow(local::KindOf(*request));
  if (row == nullptr || !IsPermitted(*row, connection.caller)) {
    const bool relays = row != nullptr && row->permit == Permit::kRelay;
    Refuse(connection, MakeError(Code::kDenied,
                                 "this request is not for user " + std::to_string(connection.caller.uid) +
                                     (relays ? ": it is for the user that relay_user in the agent's configuration names"
                                             : ": it is for root")));
    return;
  }
  if (frame.size() > row->max_size) {
    Refuse(connection, MakeError(Code::kLimit, "a " + std::string(row->name) + " request may take " +
                                                   std::to_string(row->max_size) + " bytes"));
    return;
  }
  const Caller caller = connection.caller;  // the handler may reply at once, and the connection may close in it
  handler_->OnRequest(caller, std::move(request).value());
}

void Server::Refuse(Connection& connection, const Error& error) {
  connection.waiting = true;
  Reply(connection.caller.connection, ErrorReplyOf(error));
}

void Server::Reply(std::uint64_t id, const local::Reply& reply) {
  const auto found = connections_.find(id);
  if (found == connections_.end() || !found->second->waiting) return;
  Connection& connection = *found->second;
  connection.out = local::Frame(local::EncodeReply(reply));
  connection.sent = 0;
  connection.waiting = false;
  connection.deadline = MonotonicMs() + options_.io_timeout_ms;
  Flush(connection);
}

void Server::Flush(Connection& connection) {
  while (connection.sent < connection.out.size()) {
    const Bytes rest = Bytes(connection.out).subspan(connection.sent);
    const ssize_t size = ::send(connection.fd.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) {
      Watch(connection);
      return;
    }
    if (size <= 0) {
      Close(connection.caller.connection);
      return;
    }
    connection.sent += static_cast<std::size_t>(size);
  }
  connection.out.clear();
  connection.out.shrink_to_fit();
  connection.sent = 0;
  connection.deadline = 0;
  if (connection.close_after_write) {
    Close(connection.caller.connection);
    return;
  }
  Watch(connection);
}

void Server::Close(std::uint64_t id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  const Caller caller = found->second->caller;
  connections_.erase(found);  // closing the descriptor removes it from epoll
  handler_->OnClosed(caller);
}

std::uint64_t Server::CloseStalled(std::uint64_t now_ms) {
  std::uint64_t next = now_ms + kMaxSleepMs;
  std::vector<std::uint64_t> stalled;
  for (const auto& [id, connection] : connections_) {
    if (connection->deadline == 0) continue;
    if (connection->deadline <= now_ms) stalled.push_back(id);
    else next = std::min(next, connection->deadline);
  }
  for (const std::uint64_t id : stalled) Close(id);
  return next;
}

}  // namespace assay::agent
