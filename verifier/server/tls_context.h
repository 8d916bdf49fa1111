// SPDX-License-Identifier: Apache-2.0
// The server's TLS 1.3 context. Boost stays behind this and transport.cc.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <optional>
#include <string>

#include "sdk/core/bytes.h"
#include "sdk/core/result.h"

namespace assay::server {

// TLS 1.3 only, no tickets (each connection has its own exporter and its own handshake cost is bounded), P-256 key.
Result<boost::asio::ssl::context> MakeTlsContext(const std::string& certificate_file, const std::string& key_file);

// RFC 9266: exporter "EXPORTER-Channel-Binding", no context, 32 bytes. Nothing before the handshake is done.
std::optional<Digest> ChannelBinding(SSL* ssl) noexcept;

}  // namespace assay::server
