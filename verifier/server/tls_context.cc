// SPDX-License-Identifier: Apache-2.0
#include "verifier/server/tls_context.h"

#include <openssl/ssl.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <string_view>

#include "sdk/config/files.h"
#include "sdk/core/crypto.h"
#include "sdk/core/secret.h"

namespace assay::server {
namespace {

namespace ssl = boost::asio::ssl;
constexpr std::size_t kMaxChain = 256U << 10, kMaxKey = 16U << 10;
constexpr char kExporterLabel[] = "EXPORTER-Channel-Binding";

Error TlsError(const std::string& what) { return MakeError(Code::kConfig, what + " (" + OpenSslErrorText() + ")"); }

bool IsP256(const EVP_PKEY* key) noexcept {
  std::array<char, 32> group{};
  std::size_t size = 0;
  if (key == nullptr || EVP_PKEY_get_base_id(key) != EVP_PKEY_EC) return false;
  return EVP_PKEY_get_group_name(key, group.data(), group.size(), &size) == 1 &&
         std::string_view(group.data(), size) == "prime256v1";
}

}  // namespace

Result<ssl::context> MakeTlsContext(const std::string& certificate_file, const std::string& key_file) {
  ssl::context context(ssl::context::tls_server);
  SSL_CTX* raw = context.native_handle();
  if (SSL_CTX_set_min_proto_version(raw, TLS1_3_VERSION) != 1 ||
      SSL_CTX_set_max_proto_version(raw, TLS1_3_VERSION) != 1)
    return TlsError("TLS 1.3 is not available");
  SSL_CTX_set_num_tickets(raw, 0);
  SSL_CTX_set_session_cache_mode(raw, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(raw, SSL_MODE_RELEASE_BUFFERS);
  ASSAY_TRY(const std::string chain, config::ReadTextFile(certificate_file, kMaxChain));
  ASSAY_TRY(const Secret key, config::ReadSecretFile(key_file, kMaxKey));
  boost::system::error_code failed;
  context.use_certificate_chain(boost::asio::buffer(chain), failed);
  if (failed)
    return MakeError(Code::kConfig, certificate_file + ": holds no PEM certificate chain: " + failed.message());
  context.use_private_key(boost::asio::buffer(key.view().data(), key.view().size()), ssl::context::pem, failed);
  if (failed)
    return MakeError(Code::kConfig, key_file + ": is not the PEM key of " + certificate_file + ": " + failed.message());
  if (SSL_CTX_check_private_key(raw) != 1) return TlsError(key_file + ": is not the key of " + certificate_file);
  if (!IsP256(SSL_CTX_get0_privatekey(raw)))
    return MakeError(Code::kConfig, certificate_file + ": the key must be on the curve P-256");
  return context;
}

std::optional<Digest> ChannelBinding(SSL* tls) noexcept {
  Digest out{};
  if (SSL_export_keying_material(tls, out.data(), out.size(), kExporterLabel, sizeof(kExporterLabel) - 1, nullptr, 0,
                                 0) != 1)
    return std::nullopt;
  return out;
}

}  // namespace assay::server
