// SPDX-License-Identifier: Apache-2.0
// One connection from accept to close: PROXY header, TLS, requests one after another. Inside the transport only.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/ssl/context.hpp>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "verifier/server/router.h"
#include "verifier/server/transport.h"

namespace assay::server {

// Connections by source, bounded by the number of connections there are.
class SourceTable {
 public:
  // False when the source holds `limit` already.
  bool Enter(const std::string& source, std::size_t limit);
  void Leave(const std::string& source);

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::size_t> counts_;
};

// The key of limits: an IPv4 address, or the /64 of an IPv6 address.
std::string LimitKey(const std::string& address);

// Every open connection, so that a drain can reach them. `quit` is called on any thread and posts to the
// connection's loop: close when idle, else finish the request first; `now` closes at once.
class OpenConnections {
 public:
  using Quit = std::function<void(bool now)>;
  std::uint64_t Enter(Quit quit);
  void Leave(std::uint64_t id);
  bool draining() const;
  void Drain(std::chrono::milliseconds patience);

 private:
  mutable std::mutex mutex_;
  std::condition_variable empty_;
  std::map<std::uint64_t, Quit> quits_;
  std::uint64_t next_ = 1;
  bool draining_ = false;
};

// What all connections share; owned by the transport, outlives them.
struct ConnectionShared {
  TransportSettings settings;
  Router router;
  boost::asio::ssl::context tls;
  TransportCounts counts;
  SourceTable sources;
  OpenConnections open;
};

void StartNetworkConnection(ConnectionShared& shared, boost::asio::ip::tcp::socket socket);
void StartOperatorConnection(ConnectionShared& shared, boost::asio::local::stream_protocol::socket socket);

}  // namespace assay::server
