// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/net/scripted_server.h"

#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>

namespace assay::net {

std::string Peer::ReadSome() {
  std::array<char, 16384> chunk{};
  const ssize_t count = ssl_ != nullptr ? SSL_read(ssl_, chunk.data(), static_cast<int>(chunk.size()))
                                        : ::recv(fd_.get(), chunk.data(), chunk.size(), 0);
  return count <= 0 ? std::string() : std::string(chunk.data(), static_cast<std::size_t>(count));
}

std::string Peer::ReadRequest() {
  std::string text = std::move(pending_);
  pending_.clear();
  for (;;) {
    const std::size_t end = text.find("\r\n\r\n");
    if (end != std::string::npos) {
      const std::size_t at = text.find("Content-Length: ");
      const std::size_t body = at == std::string::npos || at > end ? 0 : std::stoul(text.substr(at + 16));
      if (text.size() >= end + 4 + body) {
        pending_ = text.substr(end + 4 + body);
        return text.substr(0, end + 4 + body);
      }
    }
    const std::string some = ReadSome();
    if (some.empty()) return {};
    text += some;
  }
}

void Peer::Send(std::string_view text) {
  if (ssl_ != nullptr) (void)SSL_write(ssl_, text.data(), static_cast<int>(text.size()));
  else (void)::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL);
}

void Peer::SendReply(std::string_view body, std::string_view more_headers) {
  Send("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n" + std::string(more_headers) +
       "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body));
}

void Peer::Reset() {
  const linger now{1, 0};
  ::setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
  fd_ = Fd();
}

bool Peer::HadClientCertificate() const { return SSL_get0_peer_certificate(ssl_) != nullptr; }

Digest Peer::Binding() const {
  Digest out{};
  const std::string_view label = "EXPORTER-Channel-Binding";
  if (SSL_export_keying_material(ssl_, out.data(), out.size(), label.data(), label.size(), nullptr, 0, 0) != 1)
    std::abort();
  return out;
}

ScriptedServer::ScriptedServer(Options options, std::vector<Script> scripts)
    : options_(std::move(options)), scripts_(std::move(scripts)) {
  if (options_.certificate != nullptr) {
    context_.reset(SSL_CTX_new(TLS_server_method()));
    if (SSL_CTX_use_certificate_chain_file(context_.get(), options_.certificate->certificate.c_str()) != 1)
      std::abort();
    if (SSL_CTX_use_PrivateKey_file(context_.get(), options_.certificate->key.c_str(), SSL_FILETYPE_PEM) != 1)
      std::abort();
    if (options_.highest_version != 0) SSL_CTX_set_max_proto_version(context_.get(), options_.highest_version);
    if (!options_.client_ca.empty()) {
      if (SSL_CTX_load_verify_file(context_.get(), options_.client_ca.c_str()) != 1) std::abort();
      SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
    }
  }
  if (options_.unix_path.empty()) {
    listener_ = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) std::abort();
    ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
  } else {
    listener_ = Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    options_.unix_path.copy(address.sun_path, sizeof address.sun_path - 1);
    if (::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) std::abort();
  }
  if (::listen(listener_.get(), 16) != 0) std::abort();
  thread_ = std::thread([this] { Serve(); });
}

ScriptedServer::~ScriptedServer() {
  ::shutdown(listener_.get(), SHUT_RDWR);  // ends accept()
  thread_.join();
}

void ScriptedServer::Serve() {
  sigset_t pipe;
  ::sigemptyset(&pipe);
  ::sigaddset(&pipe, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &pipe, nullptr);  // this thread's only: the client under test has to avoid it by itself
  for (std::size_t i = 0;; ++i) {
    Fd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!fd.valid()) return;
    ++connections_;
    const timeval patience{5, 0};
    ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ServeOne(std::move(fd), scripts_[std::min(i, scripts_.size() - 1)]);
  }
}

void ScriptedServer::ServeOne(Fd fd, const Script& script) {
  if (context_ == nullptr) {
    Peer peer(std::move(fd), nullptr);
    return script(peer);
  }
  const Handle<SSL, SSL_free> ssl(SSL_new(context_.get()));
  SSL_set_fd(ssl.get(), fd.get());
  if (SSL_accept(ssl.get()) != 1) return;
  Peer peer(std::move(fd), ssl.get());
  script(peer);
}

}  // namespace assay::net
