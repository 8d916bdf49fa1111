// SPDX-License-Identifier: Apache-2.0
// HTTP/1.1 clients with deadlines: over TLS 1.3 for relay, enroll and assayctl, and over a local socket for assayctl.
// Blocking and synchronous; one thread at a time. Never follows redirects, never falls back to an older TLS.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sdk/core/bytes.h"
#include "sdk/core/result.h"

namespace assay::net {

struct HttpsOptions {
  std::string host;  // DNS name, or an IPv4 or IPv6 address without brackets
  std::uint16_t port = 8443;
  std::string server_name;            // expected in the certificate; empty: host
  std::string ca_file;                // PEM: the only roots that count; the system's are not read
  std::optional<Digest> pinned_spki;  // instead of ca_file: SHA-256 of the certificate's SubjectPublicKeyInfo. The
                                      // key then names the server: neither chain nor host name is looked at
  std::string client_certificate;     // PEM files for mutual TLS: both or neither
  std::string client_key;
  std::uint64_t connect_timeout_ms = 10'000;  // name lookup, TCP and TLS together
  std::uint64_t request_timeout_ms = 30'000;  // from the request's first byte to the reply's last
  std::size_t reply_limit = 1U << 20;         // bytes of a reply's body
};

struct HttpRequest {
  std::string method = "GET";
  std::string path = "/";  // with the query, encoded
  std::string content_type{};
  Bytes body{};                                                // outlives the call
  std::vector<std::pair<std::string, std::string>> headers{};  // more of them, such as Authorization
  bool bound = false;  // only on the connection whose ChannelBinding() was read last
};

// Any status: judging it is the caller's.
struct HttpReply {
  unsigned status = 0;
  std::string content_type;
  Buffer body;
  std::optional<std::uint64_t> retry_after_s;
};

// Errors of a call: kUnavailable (not reached, or the connection broke), kTimeout, kLimit (reply too large), kMalformed
// (not HTTP), kDenied (the server's certificate is not the expected one; nothing was sent), kConflict (bound only: the
// connection was renewed, take evidence again; nothing was sent).
class HttpsClient {
 public:
  // Reads certificate files, reaches for nothing yet. kConfig when a file or an option is wrong.
  static Result<HttpsClient> Create(HttpsOptions options);
  HttpsClient(HttpsClient&&) noexcept;
  HttpsClient& operator=(HttpsClient&&) noexcept;
  ~HttpsClient();

  // Connects unless a live connection is there. Calls do this by themselves, except bound ones.
  Status Connect();
  // RFC 9266 tls-exporter of the connection that is up; kUnavailable without one. Read it, take evidence over it, then
  // call with `bound` set.
  Result<Digest> ChannelBinding();
  void Close() noexcept;

  // A connection kept alive is renewed silently when it was found closed before anything was sent, and once for a GET
  // or HEAD whose reply did not begin. Nothing else is ever sent twice.
  Result<HttpReply> Call(const HttpRequest& request);
  Result<HttpReply> Get(std::string path);
  Result<HttpReply> Post(std::string path, std::string content_type, Bytes body);
  Result<HttpReply> PostBound(std::string path, std::string content_type, Bytes body);
  // After an error: may the server have seen the last request, whole or in part?
  bool MayHaveBeenSent() const noexcept;

 private:
  struct State;
  explicit HttpsClient(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

struct UnixHttpOptions {
  std::string socket_path;
  std::uint64_t connect_timeout_ms = 5'000;
  std::uint64_t request_timeout_ms = 60'000;
  std::size_t reply_limit = 16U << 20;
};

// The same over an AF_UNIX stream socket. `bound` is kUnsupported.
class UnixHttpClient {
 public:
  explicit UnixHttpClient(UnixHttpOptions options);
  UnixHttpClient(UnixHttpClient&&) noexcept;
  UnixHttpClient& operator=(UnixHttpClient&&) noexcept;
  ~UnixHttpClient();

  Result<HttpReply> Call(const HttpRequest& request);
  Result<HttpReply> Get(std::string path);
  Result<HttpReply> Post(std::string path, std::string content_type, Bytes body);
  bool MayHaveBeenSent() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace assay::net
