// SPDX-License-Identifier: Apache-2.0
// The agent's local socket: accepts, reads frames, checks each request against the table, hands it to the handler,
// and writes the reply when there is one. Never waits for a client: everything is non-blocking, every buffer is
// bounded, and who stalls is closed. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "agent/gate.h"
#include "agent/local/frame.h"
#include "agent/server/inbox.h"
#include "agent/server/request_table.h"
#include "sdk/core/handle.h"
#include "sdk/core/result.h"

namespace assay::agent {

std::uint64_t MonotonicMs() noexcept;

// Binds and listens; kConflict when another agent answers there. The socket may be used by every local user.
Result<Fd> ListenAt(const std::string& path);

class RequestHandler {
 public:
  virtual ~RequestHandler() = default;
  // Permitted by the table. Answer with Server::Reply now or later, once.
  virtual void OnRequest(const Caller& caller, local::Request request) = 0;
  virtual void OnClosed(const Caller& caller) = 0;
  virtual std::uint64_t OnTick(std::uint64_t now_ms) = 0;  // expires what is due; when to be asked again
};

class Server {
 public:
  struct Options {
    std::size_t max_connections = 256;
    std::size_t max_connections_per_user = 32;
    std::uint64_t io_timeout_ms = 10'000;
    std::function<bool(uid_t)> is_relay;
  };
  Server(Fd listener, Options options, Gate& gate, Inbox& inbox);
  ~Server();
  void SetHandler(RequestHandler& handler) { handler_ = &handler; }
  void SetOptions(Options options) { options_ = std::move(options); }

  // Also watches `signals` (a signalfd) and calls `on_signal` with what arrived. Returns after Stop().
  Status Run(int signals, const std::function<void(int)>& on_signal);
  void Stop() noexcept { stop_ = true; }

  void Reply(std::uint64_t connection, const local::Reply& reply);  // unknown connections are ignored: they left
  bool IsOpen(std::uint64_t connection) const { return connections_.contains(connection); }
  std::size_t connections() const noexcept { return connections_.size(); }

 private:
  struct Connection {
    Fd fd;
    Caller caller;
    local::FrameReader in{0};
    Buffer out;
    std::size_t sent = 0;
    bool waiting = false;  // a request is with the handler: nothing is read meanwhile
    bool close_after_write = false;
    std::uint64_t deadline = 0;  // of the frame begun or the reply to be read; 0: none
    std::uint32_t watched = 0;   // epoll events asked for
  };
  void Accept();
  bool HasRoomFor(uid_t uid) const;
  void OnReadable(Connection& connection);
  void OnFrame(Connection& connection, Bytes frame);
  void Flush(Connection& connection);
  void Watch(Connection& connection);
  void Close(std::uint64_t id);
  void Refuse(Connection& connection, const Error& error);
  std::uint64_t CloseStalled(std::uint64_t now_ms);
  void Handle(std::uint64_t id, std::uint32_t events);

  Fd listener_;
  Fd epoll_;
  Options options_;
  Gate& gate_;
  Inbox& inbox_;
  RequestHandler* handler_ = nullptr;
  std::map<std::uint64_t, std::unique_ptr<Connection>> connections_;
  std::uint64_t next_id_ = 16;  // smaller ids name the listener, the inbox and the signals
  bool stop_ = false;
};

// How an Error reaches a client: stable code, detail, fix.
local::Reply ErrorReplyOf(const Error& error);

}  // namespace assay::agent
