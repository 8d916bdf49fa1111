// SPDX-License-Identifier: Apache-2.0
// HTTP/1.1 over TLS 1.3 on the network and over a local socket for operators. One acceptor deals connections to one
// loop a core; everything a stranger can hold is counted, bounded and has a deadline.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sdk/core/result.h"
#include "verifier/server/http.h"
#include "verifier/server/metrics.h"

namespace assay::server {

struct TransportSettings {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;                        // 0: any free one
  std::string tls_certificate;                   // PEM file, chain after the leaf
  std::string tls_key;                           // PEM file, P-256, readable by its owner only
  std::string operator_socket;                   // path; empty: none. Made with mode 0660
  std::string operator_group;                    // its group, empty: unchanged
  std::vector<std::string> balancers;            // addresses or ADDRESS/BITS that must open with a PROXY v2 header
  unsigned threads = 0;                          // 0: one per core
  std::size_t max_connections = 4096;            // from the network, handshakes among them
  std::size_t max_connections_per_source = 256;  // IPv6 by /64
  std::size_t max_handshakes = 512;              // TLS handshakes under way; one more, and the oldest is dropped
  std::size_t max_operator_connections = 64;
  std::size_t max_large_bodies = 64;  // bodies over kSmallBody being read, so at most 64 * 4 MiB
  std::size_t max_large_bodies_per_source = 8;
  std::size_t header_limit = 16U << 10;
  std::uint64_t handshake_timeout_ms = 5'000;  // PROXY header and TLS together
  std::uint64_t header_timeout_ms = 5'000;     // from its first byte
  std::uint64_t body_timeout_ms = 15'000;
  std::uint64_t handler_timeout_ms = 30'000;  // from the whole request to the responder
  std::uint64_t write_timeout_ms = 10'000;
  std::uint64_t idle_timeout_ms = 180'000;  // between requests
};

inline constexpr std::size_t kSmallBody = 64U << 10;

struct TransportCounts {
  Counter accepted, refused_limit, refused_source, refused_handshakes, handshake_failures, proxy_failures, timeouts,
      requests, bad_requests, refused_bodies, handler_failures;
  Gauge connections, handshakes, operator_connections;
  Histogram request_seconds{{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5,
                             10}};  // first byte of the header to the last of the reply
};

class Transport {
 public:
  // Binds and serves at once. Errors name what could not be bound or read.
  static Result<std::unique_ptr<Transport>> Start(TransportSettings settings, std::vector<Route> routes);
  // What Start would refuse in certificate, key, balancers and group. Binds nothing.
  static Status Check(const TransportSettings& settings);
  virtual ~Transport() = default;
  virtual std::uint16_t port() const = 0;
  virtual const TransportCounts& counts() const = 0;
  // No new connections; handshakes and idle connections close at once, requests under way finish until the deadline.
  // Returns when all is closed; a responder that is called later does nothing. Never call it from a handler.
  virtual void Stop(std::uint64_t drain_ms) = 0;
};

// What the transport counts, onto the page; `transport` outlives it.
void AddTransportMetrics(const Transport& transport, MetricsPage& page);

}  // namespace assay::server
