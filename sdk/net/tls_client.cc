// SPDX-License-Identifier: Apache-2.0
#include "sdk/net/tls_client.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "sdk/net/dial.h"

namespace assay::net {
namespace {

constexpr std::string_view kBindingLabel = "EXPORTER-Channel-Binding";  // RFC 9266, section 2

// A socket BIO that never raises SIGPIPE: the library's own uses write(). The descriptor stays the stream's.
int DescriptorOf(BIO* bio) noexcept { return *static_cast<const int*>(BIO_get_data(bio)); }

int SocketWrite(BIO* bio, const char* data, int size) noexcept {
  BIO_clear_retry_flags(bio);
  const ssize_t count = ::send(DescriptorOf(bio), data, static_cast<std::size_t>(size), MSG_NOSIGNAL);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_write(bio);
  return static_cast<int>(count);
}

int SocketRead(BIO* bio, char* data, int size) noexcept {
  BIO_clear_retry_flags(bio);
  const ssize_t count = ::recv(DescriptorOf(bio), data, static_cast<std::size_t>(size), 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_read(bio);
  return static_cast<int>(count);
}

long SocketControl(BIO* bio, int command, long number, void* pointer) noexcept {
  (void)bio;
  (void)number;
  (void)pointer;
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

using BioMethod = Handle<BIO_METHOD, BIO_meth_free>;

const BIO_METHOD* SocketMethod() {
  static const BioMethod method = [] {
    BioMethod made(BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "assay socket"));
    if (made == nullptr) return made;
    BIO_meth_set_write(made.get(), SocketWrite);
    BIO_meth_set_read(made.get(), SocketRead);
    BIO_meth_set_ctrl(made.get(), SocketControl);
    return made;
  }();
  return method.get();
}

bool IsAddress(const std::string& name) noexcept {
  in6_addr v6{};
  in_addr v4{};
  return ::inet_pton(AF_INET, name.c_str(), &v4) == 1 || ::inet_pton(AF_INET6, name.c_str(), &v6) == 1;
}

Status SetExpectedName(SSL* ssl, const std::string& name) {
  X509_VERIFY_PARAM* rules = SSL_get0_param(ssl);
  if (IsAddress(name)) {
    if (X509_VERIFY_PARAM_set1_ip_asc(rules, name.c_str()) == 1) return Ok();
  } else {
    X509_VERIFY_PARAM_set_hostflags(rules, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    const bool set = X509_VERIFY_PARAM_set1_host(rules, name.data(), name.size()) == 1;
    if (set && SSL_set_tlsext_host_name(ssl, name.c_str()) == 1) return Ok();
  }
  return MakeError(Code::kConfig, "\"" + name + "\" is no server name: " + OpenSslErrorText());
}

Status LoadClientIdentity(SSL_CTX* context, const HttpsOptions& options) {
  if (options.client_certificate.empty() != options.client_key.empty()) {
    return MakeError(Code::kConfig, "a client certificate and its key go together: one of the two files is not named");
  }
  if (options.client_certificate.empty()) return Ok();
  if (SSL_CTX_use_certificate_chain_file(context, options.client_certificate.c_str()) != 1) {
    return MakeError(Code::kConfig, options.client_certificate + ": no PEM certificate: " + OpenSslErrorText());
  }
  if (SSL_CTX_use_PrivateKey_file(context, options.client_key.c_str(), SSL_FILETYPE_PEM) != 1) {
    return MakeError(Code::kConfig,
                     options.client_key + ": not the key of " + options.client_certificate + ": " + OpenSslErrorText());
  }
  return Ok();
}

}  // namespace

Result<SslCtx> MakeClientContext(const HttpsOptions& options) {
  SslCtx context(SSL_CTX_new(TLS_client_method()));
  if (context == nullptr) return MakeError(Code::kCrypto, "no TLS context: " + OpenSslErrorText());
  if (SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION) != 1 ||
      SSL_CTX_set_max_proto_version(context.get(), TLS1_3_VERSION) != 1) {
    return MakeError(Code::kCrypto, "this OpenSSL has no TLS 1.3");
  }
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  if (options.pinned_spki) {
    if (!options.ca_file.empty())
      return MakeError(Code::kConfig, "a pinned key and a CA file exclude each other: name one");
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_NONE, nullptr);  // CheckPin judges instead, before anything is sent
  } else {
    if (options.ca_file.empty())
      return MakeError(Code::kConfig, "no CA file is named: the server's certificate could not be checked");
    if (SSL_CTX_load_verify_file(context.get(), options.ca_file.c_str()) != 1) {
      return MakeError(Code::kConfig, options.ca_file + ": holds no PEM certificate: " + OpenSslErrorText());
    }
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  }
  ASSAY_CHECK_OK(LoadClientIdentity(context.get(), options));
  return context;
}

Result<std::unique_ptr<TlsStream>> TlsStream::Connect(SSL_CTX* context, const HttpsOptions& options,
                                                      Deadline deadline) {
  ASSAY_TRY(Fd fd, DialTcp(options.host, options.port, deadline));
  Ssl ssl(SSL_new(context));
  if (ssl == nullptr || SocketMethod() == nullptr)
    return MakeError(Code::kCrypto, "no TLS connection: " + OpenSslErrorText());
  std::unique_ptr<TlsStream> stream(new TlsStream(std::move(fd), std::move(ssl)));
  BIO* bio = BIO_new(SocketMethod());
  if (bio == nullptr) return MakeError(Code::kCrypto, "no TLS connection: " + OpenSslErrorText());
  BIO_set_data(bio, &stream->fd_);
  BIO_set_init(bio, 1);
  SSL_set_bio(stream->ssl_.get(), bio, bio);
  ASSAY_CHECK_OK(stream->Handshake(options, deadline));
  return stream;
}

TlsStream::~TlsStream() {
  if (usable_) (void)SSL_shutdown(ssl_.get());  // best effort: the peer learns that nothing more comes
  ERR_clear_error();
}

Status TlsStream::Handshake(const HttpsOptions& options, Deadline deadline) {
  const std::string& name = options.server_name.empty() ? options.host : options.server_name;
  ASSAY_CHECK_OK(SetExpectedName(ssl_.get(), name));
  for (;;) {
    ERR_clear_error();
    const int result = SSL_connect(ssl_.get());
    if (result == 1) break;
    const long verdict = SSL_get_verify_result(ssl_.get());
    if (!options.pinned_spki && verdict != X509_V_OK) {
      return MakeError(Code::kDenied, "the certificate of " + name +
                                          " is not accepted: " + X509_verify_cert_error_string(verdict) +
                                          "; check the CA file and the server name");
    }
    ASSAY_CHECK_OK(AfterCall(result, deadline));
  }
  if (options.pinned_spki) ASSAY_CHECK_OK(CheckPin(*options.pinned_spki));
  const int exported = SSL_export_keying_material(ssl_.get(), binding_.data(), binding_.size(), kBindingLabel.data(),
                                                  kBindingLabel.size(), nullptr, 0, 0);
  if (exported != 1) return MakeError(Code::kCrypto, "no channel binding: " + OpenSslErrorText());
  usable_ = true;
  return Ok();
}

Status TlsStream::CheckPin(const Digest& pin) const {
  X509* certificate = SSL_get0_peer_certificate(ssl_.get());
  EVP_PKEY* key = certificate == nullptr ? nullptr : X509_get0_pubkey(certificate);
  if (key == nullptr || EVP_PKEY_up_ref(key) != 1) return MakeError(Code::kDenied, "the server showed no certificate");
  ASSAY_TRY(const PublicKey shown, PublicKey::FromEvp(EvpPkey(key)));
  if (shown.SpkiDigest() == pin) return Ok();
  return MakeError(Code::kDenied,
                   "the server's key is sha256:" + ToHex(shown.SpkiDigest()) + ", pinned is sha256:" + ToHex(pin));
}

Status TlsStream::AfterCall(int result, Deadline deadline) {
  const int why = SSL_get_error(ssl_.get(), result);
  if (why == SSL_ERROR_WANT_READ) return WaitFor(fd_.get(), POLLIN, deadline);
  if (why == SSL_ERROR_WANT_WRITE) return WaitFor(fd_.get(), POLLOUT, deadline);
  const int number = errno;
  usable_ = false;
  if (why == SSL_ERROR_SYSCALL && number != 0) {
    return MakeError(Code::kUnavailable, std::string("the connection broke: ") + std::strerror(number),
                     static_cast<std::uint32_t>(number));
  }
  const std::string text = OpenSslErrorText();
  return MakeError(Code::kUnavailable,
                   text.empty() ? "the server closed the connection" : "the TLS connection broke: " + text);
}

Result<std::size_t> TlsStream::Read(MutableBytes out, Deadline deadline) {
  for (;;) {
    ERR_clear_error();
    errno = 0;
    std::size_t count = 0;
    const int result = SSL_read_ex(ssl_.get(), out.data(), out.size(), &count);
    if (result == 1) return count;
    if (SSL_get_error(ssl_.get(), result) == SSL_ERROR_ZERO_RETURN)
      return std::size_t{0};  // only a signed end counts as one
    ASSAY_CHECK_OK(AfterCall(result, deadline));
  }
}

Status TlsStream::Write(Bytes bytes, Deadline deadline) {
  while (!bytes.empty()) {
    ERR_clear_error();
    errno = 0;
    std::size_t count = 0;
    const int result = SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &count);
    if (result == 1) bytes = bytes.subspan(count);
    else ASSAY_CHECK_OK(AfterCall(result, deadline));
  }
  return Ok();
}

bool TlsStream::Quiet() noexcept {
  // Session tickets and key updates may have arrived: the library takes them; application data or an end must not.
  ERR_clear_error();
  std::uint8_t byte = 0;
  std::size_t count = 0;
  const int result = SSL_peek_ex(ssl_.get(), &byte, 1, &count);
  const bool quiet = result != 1 && SSL_get_error(ssl_.get(), result) == SSL_ERROR_WANT_READ;
  if (!quiet && result != 1) usable_ = false;
  ERR_clear_error();
  return quiet;
}

}  // namespace assay::net
