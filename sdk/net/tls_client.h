// SPDX-License-Identifier: Apache-2.0
// The client's side of TLS 1.3 over a non-blocking socket. Internal to sdk/net.
#pragma once

#include <openssl/ssl.h>

#include <memory>

#include "sdk/core/crypto.h"
#include "sdk/core/handle.h"
#include "sdk/net/https_client.h"
#include "sdk/net/stream.h"

namespace assay::net {

using SslCtx = Handle<SSL_CTX, SSL_CTX_free>;
using Ssl = Handle<SSL, SSL_free>;

// TLS 1.3 only, the named roots or the pin only, the client's certificate when there is one. kConfig.
Result<SslCtx> MakeClientContext(const HttpsOptions& options);

class TlsStream final : public Stream {
 public:
  // Dials and shakes hands. kDenied when the server's certificate is not the expected one.
  static Result<std::unique_ptr<TlsStream>> Connect(SSL_CTX* context, const HttpsOptions& options, Deadline deadline);
  ~TlsStream() override;

  Result<std::size_t> Read(MutableBytes out, Deadline deadline) override;
  Status Write(Bytes bytes, Deadline deadline) override;
  bool Quiet() noexcept override;
  // RFC 9266, section 4.2. Computed once a connection.
  const Digest& channel_binding() const noexcept { return binding_; }

 private:
  TlsStream(Fd fd, Ssl ssl) : fd_(std::move(fd)), ssl_(std::move(ssl)) {}
  Status Handshake(const HttpsOptions& options, Deadline deadline);
  Status CheckPin(const Digest& pin) const;
  // Waits as the library asks after `result`, or says what broke.
  Status AfterCall(int result, Deadline deadline);

  Fd fd_;
  Ssl ssl_;
  Digest binding_{};
  bool usable_ = false;  // no fatal error so far: a close_notify may be sent
};

}  // namespace assay::net
