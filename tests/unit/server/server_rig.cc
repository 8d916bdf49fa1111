// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/server/server_rig.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <csignal>

namespace assay::server {

Response TextResponse(std::string text, unsigned status) {
  Response response;
  response.status = status;
  response.content_type = "text/plain";
  response.body = ToBuffer(AsBytes(text));
  return response;
}

std::vector<Route> BasicRoutes() {
  std::vector<Route> routes;
  const auto hello = [](Request, Responder respond) { respond(TextResponse("hello")); };
  const auto echo = [](Request request, Responder respond) {
    respond(TextResponse(std::string(AsText(request.body))));
  };
  const auto length = [](Request request, Responder respond) {
    respond(TextResponse(std::to_string(request.body.size())));
  };
  const auto who = [](Request request, Responder respond) {
    std::string text = request.source + "|" + (request.channel_binding ? ToHex(*request.channel_binding) : "none") +
                       "|" + std::to_string(request.peer_uid) + "|";
    for (const auto gid : request.peer_gids) text += std::to_string(gid) + ",";
    respond(TextResponse(text));
  };
  for (const Listener listener : {Listener::kNetwork, Listener::kOperator}) {
    routes.push_back({"GET", "/hello", listener, 64U << 10, hello});
    routes.push_back({"POST", "/echo", listener, 1000, echo});
    routes.push_back({"POST", "/large", listener, 4U << 20, length});
    routes.push_back({"GET", "/who", listener, 64U << 10, who});
  }
  return routes;
}

Rig::Rig(std::function<void(TransportSettings&)> adjust, std::vector<Route> routes) {
  files = test::MakeCertificate(dir, "server", "DNS:localhost,IP:127.0.0.1");
  settings.tls_certificate = files.certificate;
  settings.tls_key = files.key;
  settings.threads = 2;
  if (adjust) adjust(settings);
  auto all = BasicRoutes();
  for (auto& route : routes) all.push_back(std::move(route));
  transport = Transport::Start(settings, std::move(all)).value();
}

net::HttpsClient Rig::Client(std::function<void(net::HttpsOptions&)> adjust) const {
  net::HttpsOptions options;
  options.host = "127.0.0.1";
  options.port = transport->port();
  options.ca_file = files.certificate;
  if (adjust) adjust(options);
  return net::HttpsClient::Create(options).value();
}

Fd Rig::Dial() const {
  Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(transport->port());
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const timeval patience{10, 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) std::abort();
  return fd;
}

RawTls::RawTls(Fd fd) : fd_(std::move(fd)), context_(SSL_CTX_new(TLS_client_method())), ssl_(SSL_new(context_.get())) {
  std::signal(SIGPIPE, SIG_IGN);  // the library's own socket BIO uses write()
  SSL_set_fd(ssl_.get(), fd_.get());
  connected_ = SSL_connect(ssl_.get()) == 1;
}

void RawTls::Send(std::string_view text) { (void)SSL_write(ssl_.get(), text.data(), static_cast<int>(text.size())); }

std::string RawTls::ReadSome() {
  std::array<char, 4096> chunk{};
  const int count = SSL_read(ssl_.get(), chunk.data(), static_cast<int>(chunk.size()));
  return count <= 0 ? std::string() : std::string(chunk.data(), static_cast<std::size_t>(count));
}

std::string RawTls::ReadAll() {
  std::string all;
  for (std::string some = ReadSome(); !some.empty(); some = ReadSome()) all += some;
  return all;
}

void SendRaw(const Fd& fd, Bytes bytes) { (void)::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL); }

std::string ReadUntilClosed(const Fd& fd) {
  std::string all;
  std::array<char, 4096> chunk{};
  for (;;) {
    const ssize_t count = ::recv(fd.get(), chunk.data(), chunk.size(), 0);
    if (count <= 0) return all;
    all.append(chunk.data(), static_cast<std::size_t>(count));
  }
}

bool ClosedWithin(const Fd& fd, std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
    if (left <= 0) return false;
    pollfd entry{fd.get(), POLLIN, 0};
    if (::poll(&entry, 1, static_cast<int>(left)) <= 0) continue;
    std::array<char, 4096> chunk{};
    if (::recv(fd.get(), chunk.data(), chunk.size(), 0) <= 0) return true;
  }
}

}  // namespace assay::server
