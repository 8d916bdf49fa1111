// SPDX-License-Identifier: Apache-2.0
// A transport with a certificate and a few routes, and plain or TLS sockets to annoy it with.
#pragma once

#include <openssl/ssl.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sdk/core/handle.h"
#include "sdk/net/https_client.h"
#include "tests/support/test_certificate.h"
#include "verifier/server/transport.h"

namespace assay::server {

struct Rig {
  explicit Rig(std::function<void(TransportSettings&)> adjust = {}, std::vector<Route> routes = {});

  net::HttpsClient Client(std::function<void(net::HttpsOptions&)> adjust = {}) const;
  // A connected TCP socket, blocking, with a receive timeout of 10 s.
  Fd Dial() const;

  test::TempDir dir;
  test::CertificateFiles files;
  TransportSettings settings;
  std::unique_ptr<Transport> transport;
};

// GET /hello; POST /echo (limit 1000); POST /large (4 MiB; answers the body's length); GET /who (source, binding).
std::vector<Route> BasicRoutes();
Response TextResponse(std::string text, unsigned status = 200);

// A client's TLS session over a blocking socket, for bytes that HttpsClient would not send.
class RawTls {
 public:
  explicit RawTls(Fd fd);
  void Send(std::string_view text);
  std::string ReadAll();   // until the server closes
  std::string ReadSome();  // what one read gives; empty at the end
  bool connected() const { return connected_; }

 private:
  Fd fd_;
  Handle<SSL_CTX, SSL_CTX_free> context_;
  Handle<SSL, SSL_free> ssl_;
  bool connected_ = false;
};

void SendRaw(const Fd& fd, Bytes bytes);
// What the peer sends until it closes or resets; gives up after the socket's receive timeout.
std::string ReadUntilClosed(const Fd& fd);
bool ClosedWithin(const Fd& fd, std::chrono::milliseconds limit);

template <typename F>
bool Eventually(F holds, std::chrono::milliseconds limit = std::chrono::seconds(5)) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    ::usleep(2'000);
  }
  return true;
}

}  // namespace assay::server
