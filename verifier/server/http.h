// SPDX-License-Identifier: Apache-2.0
// Requests and responses as route handlers see them; Boost.Beast stays inside the transport.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sdk/core/bytes.h"
#include "sdk/core/result.h"

namespace assay::server {

enum class Listener : std::uint8_t { kNetwork, kOperator };  // TLS, or the local operator socket

struct Request {
  std::string method;  // "GET", "POST", ...
  std::string path;    // without the query
  std::string query;   // after '?', not decoded
  std::string content_type;
  Buffer body;  // within the route's limit
  Listener listener = Listener::kNetwork;
  std::string source;  // peer address for limits: from PROXY protocol v2 when the peer is a configured balancer
  std::optional<Digest> channel_binding;  // RFC 9266 tls-exporter of this connection; none on the operator socket
  std::uint32_t peer_uid = 0;             // operator socket
  std::vector<std::uint32_t> peer_gids;
};

struct Response {
  unsigned status = 200;
  std::string content_type = "application/json";
  Buffer body;
  std::vector<std::pair<std::string, std::string>> headers;
};

// Called exactly once, from any thread; the transport writes on the connection's own loop. A responder whose
// connection is gone does nothing.
using Responder = std::function<void(Response)>;
using Handler = std::function<void(Request, Responder)>;

struct Route {
  std::string method;
  std::string path;  // exact, or a prefix when it ends in "/*"
  Listener listener = Listener::kNetwork;
  std::size_t body_limit = 64U << 10;
  Handler handler;
};

// What a request without a route, over a limit or out of time gets: {code, detail, fix} as JSON or CBOR.
Response ErrorResponse(unsigned status, std::string_view code, std::string_view detail, std::string_view fix,
                       bool cbor);

}  // namespace assay::server
