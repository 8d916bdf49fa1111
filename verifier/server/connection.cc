// SPDX-License-Identifier: Apache-2.0
// The way of a connection to its first request. With connection_session.h the only file that includes Boost.Beast on the
// server's side.
#include "verifier/server/connection.h"

#include <sys/socket.h>

#include <array>
#include <boost/asio/read.hpp>

#include "verifier/server/connection_session.h"
#include "verifier/server/proxy_protocol.h"
#include "verifier/server/tls_context.h"

namespace assay::server {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using Failure = boost::system::error_code;
using Tcp = asio::ip::tcp;
using Local = asio::local::stream_protocol;

// A network connection before its first request: PROXY header from balancers, then TLS, all within one deadline. Owned
// by the handler of its pending operation.
class Opening : public std::enable_shared_from_this<Opening> {
 public:
  Opening(ConnectionShared& shared, Tcp::socket socket)
      : shared_(shared),
        hold_(shared.counts.connections),
        handshake_hold_(shared.counts.handshakes),
        executor_(socket.get_executor()),
        stream_(std::move(socket)) {}
  ~Opening() {
    if (admitted_) shared_.sources.Leave(LimitKey(source_));
    if (id_ != 0) shared_.handshakes.Leave(id_);
  }

  // On the acceptor's thread, so that the table's order is the order of arrival.
  void Register() {
    id_ = shared_.handshakes.Enter([weak = weak_from_this(), executor = executor_] {
      auto self = weak.lock();
      if (self != nullptr) asio::post(executor, [self = std::move(self)] { self->Lowest().close(); });
    });
    if (const std::size_t dropped = shared_.handshakes.Trim(shared_.settings.max_handshakes))
      shared_.counts.refused_handshakes.Add(dropped);
  }
  // All else runs on the connection's own loop.
  void Start() {
    Failure failed;
    const auto peer = stream_.socket().remote_endpoint(failed);
    if (failed) return;
    source_ = PlainAddress(peer.address().to_string());
    stream_.socket().set_option(Tcp::no_delay(true), failed);
    stream_.expires_after(Ms(shared_.settings.handshake_timeout_ms));
    if (shared_.balancers.Holds(source_)) return ReadProxyHeader();
    Handshake();
  }

 private:
  beast::tcp_stream& Lowest() { return tls_ ? beast::get_lowest_layer(*tls_) : stream_; }

  void ReadProxyHeader() {
    asio::async_read(stream_, asio::buffer(fixed_), [self = shared_from_this()](Failure failed, std::size_t) {
      if (failed) return self->shared_.counts.proxy_failures.Add();
      const Result<std::size_t> size = ProxyBodySize(self->fixed_);
      if (!size.ok()) return self->shared_.counts.proxy_failures.Add();
      self->ReadProxyBody(*size);
    });
  }
  void ReadProxyBody(std::size_t size) {
    body_.resize(size);
    asio::async_read(stream_, asio::buffer(body_), [self = shared_from_this()](Failure failed, std::size_t) {
      if (failed) return self->shared_.counts.proxy_failures.Add();
      const Result<std::string> source = ProxySource(self->fixed_, self->body_);
      if (!source.ok()) return self->shared_.counts.proxy_failures.Add();
      if (!source->empty()) self->source_ = PlainAddress(*source);  // else the balancer speaks for itself
      self->Handshake();
    });
  }

  void Handshake() {
    admitted_ = shared_.sources.Enter(LimitKey(source_),
                                      {shared_.settings.max_connections, shared_.settings.max_connections_per_source});
    if (!admitted_) return shared_.counts.refused_source.Add();
    tls_.emplace(std::move(stream_), shared_.tls);  // keeps the deadline
    tls_->async_handshake(asio::ssl::stream_base::server, [self = shared_from_this()](Failure failed) {
      if (failed) return self->OnFailure(failed);
      self->Open();
    });
  }

  void OnFailure(Failure failed) {
    if (failed == beast::error::timeout) shared_.counts.timeouts.Add();
    shared_.counts.handshake_failures.Add();
  }

  void Open() {
    Peer peer;
    peer.source = source_;
    peer.channel_binding = ChannelBinding(tls_->native_handle());
    auto session = std::make_shared<Session<TlsStream>>(shared_, std::move(*tls_), std::move(peer), std::move(hold_));
    admitted_ = false;  // the session's to give back now
    session->Start();
  }

  ConnectionShared& shared_;
  GaugeHold hold_;
  GaugeHold handshake_hold_;
  const Tcp::socket::executor_type executor_;
  beast::tcp_stream stream_;
  std::optional<TlsStream> tls_;
  std::string source_;
  std::array<std::uint8_t, kProxyFixed> fixed_{};
  Buffer body_;
  std::uint64_t id_ = 0;
  bool admitted_ = false;
};

std::vector<std::uint32_t> GroupsOf(int fd, gid_t primary) {
  constexpr std::size_t kMaxGroups = 65536;  // NGROUPS_MAX
  std::vector<std::uint32_t> gids(256);
  socklen_t size = static_cast<socklen_t>(gids.size() * sizeof(gid_t));
  int failed = ::getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, gids.data(), &size);
  if (failed != 0 && errno == ERANGE && size <= kMaxGroups * sizeof(gid_t)) {
    gids.resize(size / sizeof(gid_t));
    failed = ::getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, gids.data(), &size);
  }
  gids.resize(failed == 0 ? size / sizeof(gid_t) : 0);
  if (std::find(gids.begin(), gids.end(), primary) == gids.end()) gids.insert(gids.begin(), primary);
  return gids;
}

}  // namespace

void StartNetworkConnection(ConnectionShared& shared, Tcp::socket socket) {
  shared.counts.accepted.Add();
  if (shared.counts.connections.value() >= static_cast<std::int64_t>(shared.settings.max_connections))
    return shared.counts.refused_limit.Add();
  auto executor = socket.get_executor();
  auto opening = std::make_shared<Opening>(shared, std::move(socket));  // by its pending operation
  opening->Register();
  asio::post(executor, [opening = std::move(opening)] { opening->Start(); });
}

void StartOperatorConnection(ConnectionShared& shared, Local::socket socket) {
  const auto limit = static_cast<std::int64_t>(shared.settings.max_operator_connections);
  if (shared.counts.operator_connections.value() >= limit) return shared.counts.refused_limit.Add();
  ucred credentials{};
  socklen_t size = sizeof(credentials);
  if (::getsockopt(socket.native_handle(), SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return;
  Peer peer{Listener::kOperator, "local", std::nullopt, credentials.uid,
            GroupsOf(socket.native_handle(), credentials.gid)};
  auto executor = socket.get_executor();
  auto session = std::make_shared<Session<LocalStream>>(
      shared, LocalStream(std::move(socket)), std::move(peer),
      GaugeHold(shared.counts.operator_connections));  // by its pending operation
  asio::post(executor, [session = std::move(session)] { session->Start(); });
}

}  // namespace assay::server
