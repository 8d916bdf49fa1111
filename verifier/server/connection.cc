// SPDX-License-Identifier: Apache-2.0
// The only file that includes Boost.Beast on the server's side. Each step has a deadline; every way out closes.
#include "verifier/server/connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <optional>

#include "verifier/server/proxy_protocol.h"
#include "verifier/server/tls_context.h"

namespace assay::server {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using Failure = boost::system::error_code;
using Tcp = asio::ip::tcp;
using Local = asio::local::stream_protocol;
using TlsStream = beast::ssl_stream<beast::tcp_stream>;
using LocalStream = beast::basic_stream<Local, asio::any_io_executor, beast::unlimited_rate_policy>;
using Body = http::vector_body<std::uint8_t>;
using Wire = http::response<Body>;

std::chrono::milliseconds Ms(std::uint64_t ms) { return std::chrono::milliseconds(ms); }

bool IsCborRoute(std::string_view content_type) { return content_type.starts_with("application/cbor"); }

// Requests of one connection over either stream. Lives in a shared_ptr held by the pending operation's handler and,
// while a handler works, by its responder. Everything runs on the stream's own loop.
template <typename Stream>
class Session : public std::enable_shared_from_this<Session<Stream>> {
 public:
  Session(ConnectionShared& shared, Stream stream, Listener listener) : shared_(shared), stream_(std::move(stream)), listener_(listener) {
    shared_.counts.connections.Add(1);
  }
  ~Session() {
    if (!limit_key_.empty()) shared_.sources.Leave(limit_key_);
    if (id_ != 0) shared_.open.Leave(id_);
    shared_.counts.connections.Add(-1);
  }

  void Register() {
    std::weak_ptr<Session> weak = this->shared_from_this();
    id_ = shared_.open.Enter([weak](bool now) {
      if (auto self = weak.lock()) {
        Session* raw = self.get();  // read before `self` moves into the lambda
        asio::post(raw->stream_.get_executor(), [self = std::move(self), now] { self->Quit(now); });
      }
    });
  }
  // False: this source holds too many connections already.
  bool AdmitSource(const std::string& address) {
    std::string key = LimitKey(address);
    if (!shared_.sources.Enter(key, shared_.settings.max_connections_per_source)) {
      shared_.counts.refused_source.Add();
      return false;
    }
    limit_key_ = std::move(key);
    source_ = address;
    return true;
  }
  Stream& stream() { return stream_; }
  ConnectionShared& shared() { return shared_; }
  void set_binding(std::optional<Digest> binding) { binding_ = binding; }
  void set_peer(std::uint32_t uid, std::vector<std::uint32_t> gids) { uid_ = uid; gids_ = std::move(gids); }

  void ReadRequest() {
    if (shared_.open.draining()) return Close();
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(shared_.settings.header_limit));
    parser_->body_limit(boost::none);  // set from the route once the header is here
    idle_ = true;
    if (buffer_.size() > 0) return ReadHeader();
    // Waiting for a request costs nothing; from its first byte on the header has its own deadline.
    beast::get_lowest_layer(stream_).expires_after(Ms(shared_.settings.idle_timeout_ms));
    stream_.async_read_some(buffer_.prepare(kReadSize), [self = this->shared_from_this()](Failure failed, std::size_t size) {
      if (failed) return self->OnReadFailure(failed);
      self->buffer_.commit(size);
      self->ReadHeader();
    });
  }

 private:
  static constexpr std::size_t kReadSize = 4096;
  static constexpr unsigned kHttp11 = 11;

  void ReadHeader() {
    idle_ = false;
    beast::get_lowest_layer(stream_).expires_after(Ms(shared_.settings.header_timeout_ms));
    http::async_read_header(stream_, buffer_, *parser_, [self = this->shared_from_this()](Failure failed, std::size_t) {
      if (failed) return self->OnReadFailure(failed);
      self->OnHeader();
    });
  }

  void OnHeader() {
    const auto& head = parser_->get();
    shared_.counts.requests.Add();
    const std::string_view target(head.target().data(), head.target().size());
    const std::size_t mark = target.find('?');
    request_ = {};
    request_.method = std::string(head.method_string());
    request_.path = std::string(target.substr(0, mark));
    request_.query = mark == std::string_view::npos ? "" : std::string(target.substr(mark + 1));
    request_.content_type = std::string(head[http::field::content_type]);
    const bool cbor = IsCborRoute(request_.content_type);
    const RouteMatch match = shared_.router.Find(request_.method, request_.path, listener_);
    if (match.route == nullptr) {
      // The body is not read, so the connection cannot go on.
      if (match.other_method) return Send(ErrorResponse(405, "method_not_allowed", "this path takes another method", "see docs/openapi.yaml", cbor), false);
      return Send(ErrorResponse(404, "not_found", "there is no such path", "see docs/openapi.yaml", cbor), false);
    }
    route_ = match.route;
    const auto length = parser_->content_length();
    if (length && *length > route_->body_limit) return TooLarge(cbor);
    parser_->body_limit(route_->body_limit);
    beast::get_lowest_layer(stream_).expires_after(Ms(shared_.settings.body_timeout_ms));
    http::async_read(stream_, buffer_, *parser_, [self = this->shared_from_this(), cbor](Failure failed, std::size_t) {
      if (failed == http::error::body_limit) return self->TooLarge(cbor);
      if (failed) return self->OnReadFailure(failed);
      self->Dispatch();
    });
  }

  void TooLarge(bool cbor) {
    Send(ErrorResponse(413, "too_large", "the body is over " + std::to_string(route_->body_limit) + " bytes", "send less: docs/protocol.md lists the limits", cbor), false);
  }

  void OnReadFailure(Failure failed) {
    if (failed == beast::error::timeout) shared_.counts.timeouts.Add();
    else if (failed.category() == http::make_error_code(http::error::bad_method).category() && failed != http::error::end_of_stream &&
             failed != http::error::partial_message) {
      shared_.counts.bad_requests.Add();
      const bool header = failed == http::error::header_limit;
      return Send(ErrorResponse(header ? 431 : 400, header ? "header_too_large" : "bad_request", "the request is no HTTP/1.1: " + failed.message(), "", false), false);
    }
    Close();
  }

  void Dispatch() {
    request_.listener = listener_;
    request_.source = source_;
    request_.channel_binding = binding_;
    request_.peer_uid = uid_;
    request_.peer_gids = gids_;
    auto message = parser_->release();
    keep_alive_ = message.keep_alive();
    request_.body = std::move(message.body());
    working_ = true;
    beast::get_lowest_layer(stream_).expires_never();  // nothing is pending on it; the timer below watches the handler
    const std::uint64_t turn = ++turn_;
    handler_timer_.emplace(stream_.get_executor(), Ms(shared_.settings.handler_timeout_ms));
    handler_timer_->async_wait([weak = std::weak_ptr<Session>(this->shared_from_this()), turn](Failure failed) {
      if (failed) return;
      if (auto self = weak.lock()) self->Answer(turn, ErrorResponse(503, "timeout", "the request took too long", "try again later", true));
    });
    // The responder may be called on any thread, and after the connection is gone.
    route_->handler(std::move(request_), [keep = this->shared_from_this(), turn](Response response) mutable {
      auto self = std::exchange(keep, nullptr);
      if (self == nullptr) return;
      Session* raw = self.get();
      asio::post(raw->stream_.get_executor(), [self = std::move(self), turn, response = std::move(response)]() mutable { self->Answer(turn, std::move(response)); });
    });
  }

  void Answer(std::uint64_t turn, Response response) {
    if (!working_ || turn != turn_) return;  // answered already: by the responder or by its deadline
    working_ = false;
    handler_timer_.reset();
    Send(std::move(response), keep_alive_ && !shared_.open.draining());
  }

  void Send(Response response, bool keep_alive) {
    wire_ = {};
    wire_.version(kHttp11);
    wire_.result(response.status);
    wire_.set(http::field::content_type, response.content_type);
    wire_.set(http::field::cache_control, "no-store");
    for (const auto& [name, value] : response.headers) wire_.set(name, value);
    wire_.body() = std::move(response.body);
    wire_.keep_alive(keep_alive);
    wire_.prepare_payload();
    beast::get_lowest_layer(stream_).expires_after(Ms(shared_.settings.write_timeout_ms));
    http::async_write(stream_, wire_, [self = this->shared_from_this(), keep_alive](Failure failed, std::size_t) {
      if (failed == beast::error::timeout) self->shared_.counts.timeouts.Add();
      if (failed || !keep_alive) return self->Close();
      self->ReadRequest();
    });
  }

  void Quit(bool now) {
    if (now || idle_) Close();  // a request under way is finished; its answer closes
  }

  void Close() {
    if (closed_) return;
    closed_ = true;
    auto& lowest = beast::get_lowest_layer(stream_);
    if constexpr (std::is_same_v<Stream, TlsStream>) {
      // close_notify tells the peer that nothing was cut off; it is not waited for.
      lowest.expires_after(std::chrono::seconds(1));
      stream_.async_shutdown([self = this->shared_from_this()](Failure) { self->CloseSocket(); });
    } else {
      CloseSocket();
    }
  }
  void CloseSocket() {
    Failure ignored;
    auto& socket = beast::get_lowest_layer(stream_).socket();
    socket.shutdown(asio::socket_base::shutdown_both, ignored);
    socket.close(ignored);
  }

  ConnectionShared& shared_;
  Stream stream_;
  const Listener listener_;
  std::uint64_t id_ = 0;
  std::string limit_key_;
  std::string source_;
  std::optional<Digest> binding_;
  std::uint32_t uid_ = 0;
  std::vector<std::uint32_t> gids_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<Body>> parser_;
  const Route* route_ = nullptr;
  Request request_;
  Wire wire_;
  std::optional<asio::steady_timer> handler_timer_;
  std::uint64_t turn_ = 0;
  bool idle_ = false;
  bool working_ = false;
  bool keep_alive_ = false;
  bool closed_ = false;
};

// The way of a network connection to its first request. Owned by its pending operation's handler.
class Opening : public std::enable_shared_from_this<Opening> {
 public:
  Opening(ConnectionShared& shared, Tcp::socket socket) : shared_(shared), stream_(std::move(socket)) { shared_.counts.handshakes.Add(1); }
  ~Opening() { shared_.counts.handshakes.Add(-1); }

  void Start() {
    Failure failed;
    const auto peer = beast::get_lowest_layer(stream_).socket().remote_endpoint(failed);
    if (failed) return;
    source_ = peer.address().to_string();
    beast::get_lowest_layer(stream_).socket().set_option(Tcp::no_delay(true), failed);
    beast::get_lowest_layer(stream_).expires_after(Ms(shared_.settings.handshake_timeout_ms));
    const auto& balancers = shared_.settings.balancers;
    if (std::find(balancers.begin(), balancers.end(), source_) != balancers.end()) return ReadProxyHeader();
    Handshake();
  }

 private:
  void ReadProxyHeader() {
    asio::async_read(beast::get_lowest_layer(stream_), asio::buffer(fixed_), [self = shared_from_this()](Failure failed, std::size_t) {
      const auto size = failed ? Result<std::size_t>(MakeError(Code::kIo, "")) : ProxyBodySize(self->fixed_);
      if (!size.ok()) return self->shared_.counts.proxy_failures.Add();
      self->body_.resize(*size);
      asio::async_read(beast::get_lowest_layer(self->stream_), asio::buffer(self->body_), [self](Failure cut, std::size_t) {
        const auto source = cut ? Result<std::string>(MakeError(Code::kIo, "")) : ProxySource(self->fixed_, self->body_);
        if (!source.ok()) return self->shared_.counts.proxy_failures.Add();
        if (!source->empty()) self->source_ = *source;
        self->Handshake();
      });
    });
  }

  void Handshake() {
    auto session = std::make_shared<Session<TlsStream>>(shared_, TlsStream(std::move(stream_), shared_.tls), Listener::kNetwork);
    if (!session->AdmitSource(source_)) return;
    session->Register();
    beast::get_lowest_layer(session->stream()).expires_after(Ms(shared_.settings.handshake_timeout_ms));
    session->stream().async_handshake(asio::ssl::stream_base::server, [self = shared_from_this(), session](Failure failed) {
      if (failed) return self->shared_.counts.handshake_failures.Add();
      session->set_binding(ChannelBinding(session->stream().native_handle()));
      session->ReadRequest();
    });
  }

  ConnectionShared& shared_;
  beast::tcp_stream stream_;
  std::string source_;
  std::array<std::uint8_t, kProxyFixed> fixed_{};
  Buffer body_;
};

bool AdmitConnection(ConnectionShared& shared) {
  shared.counts.accepted.Add();
  if (shared.counts.connections.value() + shared.counts.handshakes.value() >= static_cast<std::int64_t>(shared.settings.max_connections)) {
    shared.counts.refused_limit.Add();
    return false;
  }
  return true;
}

}  // namespace

void StartNetworkConnection(ConnectionShared& shared, Tcp::socket socket) {
  if (!AdmitConnection(shared)) return;
  if (shared.counts.handshakes.value() >= static_cast<std::int64_t>(shared.settings.max_handshakes)) return shared.counts.refused_handshakes.Add();
  auto executor = socket.get_executor();
  auto opening = std::make_shared<Opening>(shared, std::move(socket));  // by its pending operation
  asio::post(executor, [opening = std::move(opening)] { opening->Start(); });
}

void StartOperatorConnection(ConnectionShared& shared, Local::socket socket) {
  if (!AdmitConnection(shared)) return;
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (::getsockopt(socket.native_handle(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return;
  std::array<gid_t, 256> groups{};
  socklen_t groups_size = sizeof(groups);
  std::vector<std::uint32_t> gids = {peer.gid};
  if (::getsockopt(socket.native_handle(), SOL_SOCKET, SO_PEERGROUPS, groups.data(), &groups_size) == 0) {
    gids.insert(gids.end(), groups.begin(), groups.begin() + static_cast<std::ptrdiff_t>(groups_size / sizeof(gid_t)));
  }
  auto executor = socket.get_executor();
  auto session = std::make_shared<Session<LocalStream>>(shared, LocalStream(std::move(socket)), Listener::kOperator);  // by its pending operation
  session->set_peer(peer.uid, std::move(gids));
  session->Register();
  asio::post(executor, [session = std::move(session)] { session->ReadRequest(); });
}

}  // namespace assay::server
