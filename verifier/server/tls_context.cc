// SPDX-License-Identifier: Apache-2.0
#include "verifier/server/tls_context.h"

#include <openssl/ssl.h>

#include "sdk/core/crypto.h"

namespace assay::server {
namespace {

namespace ssl = boost::asio::ssl;
constexpr char kExporterLabel[] = "EXPORTER-Channel-Binding";

Error TlsError(const std::string& what) {
  return MakeError(Code::kConfig, what + " (" + OpenSslErrorText() + ")");
}

}  // namespace

Result<ssl::context> MakeTlsContext(const std::string& certificate_file, const std::string& key_file) {
  ssl::context context(ssl::context::tls_server);
  SSL_CTX* raw = context.native_handle();
  if (SSL_CTX_set_min_proto_version(raw, TLS1_3_VERSION) != 1) return TlsError("TLS 1.3 is not available");
  SSL_CTX_set_num_tickets(raw, 0);
  SSL_CTX_set_session_cache_mode(raw, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(raw, SSL_MODE_RELEASE_BUFFERS);
  boost::system::error_code failed;
  context.use_certificate_chain_file(certificate_file, failed);
  if (failed) return MakeError(Code::kConfig, certificate_file + ": no certificate chain: " + failed.message());
  context.use_private_key_file(key_file, ssl::context::pem, failed);
  if (failed) return MakeError(Code::kConfig, key_file + ": no private key: " + failed.message());
  if (SSL_CTX_check_private_key(raw) != 1) return TlsError(key_file + ": is not the key of " + certificate_file);
  return context;
}

std::optional<Digest> ChannelBinding(SSL* tls) noexcept {
  Digest out{};
  if (SSL_export_keying_material(tls, out.data(), out.size(), kExporterLabel, sizeof(kExporterLabel) - 1, nullptr, 0, 0) != 1) return std::nullopt;
  return out;
}

}  // namespace assay::server
