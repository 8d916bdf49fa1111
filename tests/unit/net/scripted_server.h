// SPDX-License-Identifier: Apache-2.0
// A server that does to each connection what a test's script says, right or wrong. One thread, blocking sockets.
#pragma once

#include <openssl/ssl.h>

#include <atomic>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "sdk/core/bytes.h"
#include "sdk/core/handle.h"
#include "tests/support/test_certificate.h"

namespace assay::net {

// One connection as a script sees it: over TLS when `ssl` is set.
class Peer {
 public:
  Peer(Fd fd, SSL* ssl) : fd_(std::move(fd)), ssl_(ssl) {}
  // A whole request with its Content-Length body; empty when the client went away.
  std::string ReadRequest();
  void Send(std::string_view text);
  void SendReply(std::string_view body, std::string_view more_headers = "");
  void Reset();  // closes so that the client sees a reset
  bool HadClientCertificate() const;
  Digest Binding() const;
  SSL* ssl() const { return ssl_; }

 private:
  std::string ReadSome();
  Fd fd_;
  SSL* ssl_;
  std::string pending_;
};

// What happens to the n-th connection; the last script serves all later ones too.
using Script = std::function<void(Peer&)>;

class ScriptedServer {
 public:
  struct Options {
    const test::CertificateFiles* certificate = nullptr;  // null: no TLS
    std::string client_ca{};                              // PEM: ask for a client certificate
    int highest_version = 0;                              // of TLS; 0: any
    std::string unix_path{};                              // instead of TCP
  };
  ScriptedServer(Options options, std::vector<Script> scripts);
  ~ScriptedServer();
  std::uint16_t port() const { return port_; }
  int connections() const { return connections_; }

 private:
  void Serve();
  void ServeOne(Fd fd, const Script& script);
  Options options_;
  std::vector<Script> scripts_;
  Handle<SSL_CTX, SSL_CTX_free> context_;
  Fd listener_;
  std::uint16_t port_ = 0;
  std::atomic<int> connections_{0};
  std::thread thread_;
};

}  // namespace assay::net
