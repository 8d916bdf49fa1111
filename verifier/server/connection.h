// SPDX-License-Identifier: Apache-2.0
// One connection from accept to close: PROXY header, TLS, requests one after another. Inside the transport only.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/ssl/context.hpp>

#include "verifier/server/connection_tables.h"
#include "verifier/server/router.h"
#include "verifier/server/transport.h"

namespace assay::server {

// What all connections share; owned by the transport, outlives them.
struct ConnectionShared {
  TransportSettings settings;
  Router router;
  BalancerList balancers;
  boost::asio::ssl::context tls;
  TransportCounts counts{};
  SourceTable sources{};
  SourceTable large_bodies{};
  HandshakeTable handshakes{};
  OpenConnections open{};
};

void StartNetworkConnection(ConnectionShared& shared, boost::asio::ip::tcp::socket socket);
void StartOperatorConnection(ConnectionShared& shared, boost::asio::local::stream_protocol::socket socket);

}  // namespace assay::server
