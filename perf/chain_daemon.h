// SPDX-License-Identifier: Apache-2.0
// assay-verifier as a process of its own, whose CPU time is read from outside, and kept-alive TLS connections to it
// that write all their requests before they read a reply, so that many are in flight.
#pragma once

#include <openssl/ssl.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "perf/chain_world.h"
#include "sdk/core/handle.h"

namespace assay::perf {

// Owner: the bench. The child dies with the thread that started it.
class Daemon {
 public:
  explicit Daemon(const Site& site);
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  std::uint16_t port() const { return port_; }
  double CpuNanoseconds() const;  // user and system, all its threads

 private:
  pid_t pid_ = -1;
  clockid_t clock_{};
  std::uint16_t port_ = 0;
};

class Connection {
 public:
  Connection(std::uint16_t port, SSL_CTX* context);
  const Digest& channel() const { return channel_; }
  void Send(std::string_view path, Bytes body);
  Buffer Receive();  // the body of a 200

 private:
  Fd fd_;
  Handle<SSL, SSL_free> ssl_;
  Digest channel_{};
  std::string rest_;  // read past the last reply
};

Handle<SSL_CTX, SSL_CTX_free> TrustOnly(const std::string& ca_file);

}  // namespace assay::perf
