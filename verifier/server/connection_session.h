// SPDX-License-Identifier: Apache-2.0
// Requests of one connection, one after another, over either kind of stream. Included by connection.cc only: Boost.Beast
// is compiled once. Each step has a deadline; every way out closes.
#pragma once

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "verifier/server/connection.h"

namespace assay::server {

using TlsStream = boost::beast::ssl_stream<boost::beast::tcp_stream>;
using LocalStream = boost::beast::basic_stream<boost::asio::local::stream_protocol, boost::asio::any_io_executor,
                                               boost::beast::unlimited_rate_policy>;

inline std::chrono::milliseconds Ms(std::uint64_t ms) { return std::chrono::milliseconds(ms); }

// Who is at the other end; the same for all requests of a connection.
struct Peer {
  Listener listener = Listener::kNetwork;
  std::string source;
  std::optional<Digest> channel_binding;
  std::uint32_t uid = 0;
  std::vector<std::uint32_t> gids;
};

// Owned by the handler of its one pending operation, and by nobody else: when nothing is pending, it is gone. A
// responder only watches it. Everything runs on the stream's own loop, except the responder and Quit, which post.
template <typename Stream>
class Session : public std::enable_shared_from_this<Session<Stream>> {
 public:
  Session(ConnectionShared& shared, Stream stream, Peer peer, GaugeHold hold)
      : shared_(shared),
        stream_(std::move(stream)),
        peer_(std::move(peer)),
        hold_(std::move(hold)),
        timer_(stream_.get_executor()) {}
  ~Session() {
    ReleaseLargeBody();
    if (peer_.listener == Listener::kNetwork) shared_.sources.Leave(LimitKey(peer_.source));
    if (id_ != 0) shared_.open.Leave(id_);
  }

  void Start() {
    id_ = shared_.open.Enter([weak = this->weak_from_this(), executor = timer_.get_executor()](bool now) {
      auto self = weak.lock();
      if (self != nullptr) boost::asio::post(executor, [self = std::move(self), now] { self->Quit(now); });
    });
    ReadRequest();
  }

 private:
  using Failure = boost::system::error_code;
  using Body = boost::beast::http::vector_body<std::uint8_t>;
  using Wire = boost::beast::http::response<Body>;
  enum class Phase : std::uint8_t { kIdle, kReading, kWorking, kWriting, kClosing };
  static constexpr std::size_t kReadSize = 4096;
  static constexpr unsigned kHttp11 = 11;
  static constexpr unsigned kBusy = 503;
  static constexpr char kRetrySeconds[] = "5";
  static constexpr std::size_t kLingerBytes = 8U << 20;  // a peer that sends blindly may have as much on its way
  static constexpr std::size_t kLingerRead = 64U << 10;
  static constexpr std::uint64_t kLingerMs = 2'000;

  auto& Lowest() { return boost::beast::get_lowest_layer(stream_); }

  void ReadRequest() {
    if (shared_.open.draining()) return Close();
    ReleaseLargeBody();
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(shared_.settings.header_limit));
    parser_->body_limit(boost::none);  // set from the route once the header is here
    if (buffer_.size() > 0) return ReadHeader();
    // Waiting for a request costs little; from its first byte on the header has its own deadline.
    phase_ = Phase::kIdle;
    Lowest().expires_after(Ms(shared_.settings.idle_timeout_ms));
    stream_.async_read_some(buffer_.prepare(kReadSize),
                            [self = this->shared_from_this()](Failure failed, std::size_t size) {
                              if (failed) return self->Close();
                              self->buffer_.commit(size);
                              self->ReadHeader();
                            });
  }

  void ReadHeader() {
    phase_ = Phase::kReading;
    begun_at_ = std::chrono::steady_clock::now();
    Lowest().expires_after(Ms(shared_.settings.header_timeout_ms));
    boost::beast::http::async_read_header(stream_, buffer_, *parser_,
                                          [self = this->shared_from_this()](Failure failed, std::size_t) {
                                            if (failed) return self->OnReadFailure(failed);
                                            self->OnHeader();
                                          });
  }

  void OnHeader() {
    shared_.counts.requests.Add();
    TakeHeader();
    const RouteMatch match = shared_.router.Find(request_.method, request_.path, peer_.listener);
    if (match.route == nullptr) {
      if (match.other_method)
        return Refuse(405, "method_not_allowed", "this path takes another method", "see docs/openapi.yaml");
      return Refuse(404, "not_found", "there is no such path", "see docs/openapi.yaml");
    }
    route_ = match.route;
    const auto length = parser_->content_length();
    if (length && *length > route_->body_limit) return TooLarge();
    if (!AdmitBody(length ? static_cast<std::size_t>(*length) : route_->body_limit)) {
      shared_.counts.refused_bodies.Add();
      return Refuse(kBusy, "busy", "too many large bodies are under way", "try again in a few seconds");
    }
    parser_->body_limit(route_->body_limit);
    Lowest().expires_after(Ms(shared_.settings.body_timeout_ms));
    boost::beast::http::async_read(stream_, buffer_, *parser_,
                                   [self = this->shared_from_this()](Failure failed, std::size_t) {
                                     if (failed == boost::beast::http::error::body_limit) return self->TooLarge();
                                     if (failed) return self->OnReadFailure(failed);
                                     self->Dispatch();
                                   });
  }

  void TakeHeader() {
    const auto& head = parser_->get();
    const std::string_view target(head.target().data(), head.target().size());
    const std::size_t mark = target.find('?');
    request_ = {};
    request_.method = std::string(head.method_string());
    request_.path = std::string(target.substr(0, mark));
    request_.query = mark == std::string_view::npos ? "" : std::string(target.substr(mark + 1));
    request_.content_type = std::string(head[boost::beast::http::field::content_type]);
    cbor_ = request_.content_type.starts_with("application/cbor");
  }

  // Small bodies are bounded by the number of connections, large ones by these limits.
  bool AdmitBody(std::size_t size) {
    if (size <= kSmallBody) return true;
    std::string key = peer_.listener == Listener::kOperator ? "operator" : LimitKey(peer_.source);
    if (!shared_.large_bodies.Enter(key,
                                    {shared_.settings.max_large_bodies, shared_.settings.max_large_bodies_per_source}))
      return false;
    large_body_key_ = std::move(key);
    return true;
  }
  void ReleaseLargeBody() {
    if (large_body_key_.empty()) return;
    shared_.large_bodies.Leave(large_body_key_);
    large_body_key_.clear();
  }

  void TooLarge() {
    Refuse(413, "too_large", "the body is over " + std::to_string(route_->body_limit) + " bytes",
           "send less: docs/protocol.md lists the limits");
  }
  // The connection goes on only when nothing of the request is left to read.
  void Refuse(unsigned status, std::string_view code, std::string_view detail, std::string_view fix) {
    const bool whole = parser_->is_done();
    unread_ = !whole;
    Response response = ErrorResponse(status, code, detail, fix, cbor_);
    if (status == kBusy) response.headers.emplace_back("Retry-After", kRetrySeconds);
    Send(std::move(response), whole && parser_->get().keep_alive() && !shared_.open.draining());
  }

  void OnReadFailure(Failure failed) {
    namespace http = boost::beast::http;
    if (failed == boost::beast::error::timeout) {
      shared_.counts.timeouts.Add();
      return Close();
    }
    const bool parser_said_so = failed.category() == http::make_error_code(http::error::bad_method).category();
    if (!parser_said_so || failed == http::error::end_of_stream || failed == http::error::partial_message)
      return Close();
    shared_.counts.bad_requests.Add();
    if (failed == http::error::header_limit)
      return Refuse(431, "header_too_large",
                    "the header is over " + std::to_string(shared_.settings.header_limit) + " bytes", "");
    Refuse(400, "bad_request", "the request is no HTTP/1.1: " + failed.message(), "");
  }

  void Dispatch() {
    auto message = parser_->release();
    keep_alive_ = message.keep_alive();
    request_.listener = peer_.listener;
    request_.source = peer_.source;
    request_.channel_binding = peer_.channel_binding;
    request_.peer_uid = peer_.uid;
    request_.peer_gids = peer_.gids;
    request_.body = std::move(message.body());
    phase_ = Phase::kWorking;
    const std::uint64_t turn = ++turn_;
    Lowest().expires_never();  // nothing is pending on the stream: this timer holds the session and watches the handler
    timer_.expires_after(Ms(shared_.settings.handler_timeout_ms));
    timer_.async_wait([self = this->shared_from_this(), turn](Failure cancelled) {
      if (cancelled || self->phase_ != Phase::kWorking || turn != self->turn_) return;
      self->shared_.counts.timeouts.Add();
      self->Answer(turn, ErrorResponse(503, "timeout", "the request took too long", "try again later", self->cbor_));
    });
    // Called on any thread, also after the connection or the whole transport is gone: a drain waits for who holds a
    // session, so a session that can be locked has its loop.
    Responder respond = [weak = this->weak_from_this(), executor = timer_.get_executor(), turn](Response response) {
      auto self = weak.lock();
      if (self == nullptr) return;
      boost::asio::post(executor, [self = std::move(self), turn, response = std::move(response)]() mutable {
        self->Answer(turn, std::move(response));
      });
    };
    try {
      route_->handler(std::move(request_), std::move(respond));
    } catch (const std::exception&) {
      shared_.counts.handler_failures.Add();
      Answer(turn, ErrorResponse(500, "internal", "the request could not be handled", "see the verifier's log", cbor_));
    }
  }

  void Answer(std::uint64_t turn, Response response) {
    if (phase_ != Phase::kWorking || turn != turn_) return;  // answered already: by the responder or by its deadline
    timer_.cancel();
    Send(std::move(response), keep_alive_ && !shared_.open.draining());
  }

  void Send(Response response, bool keep_alive) {
    namespace http = boost::beast::http;
    phase_ = Phase::kWriting;
    wire_ = {};
    wire_.version(kHttp11);
    wire_.result(response.status);
    wire_.set(http::field::content_type, response.content_type);
    wire_.set(http::field::cache_control, "no-store");
    for (const auto& [name, value] : response.headers) wire_.set(name, value);
    wire_.body() = std::move(response.body);
    wire_.keep_alive(keep_alive);
    wire_.prepare_payload();
    Lowest().expires_after(Ms(shared_.settings.write_timeout_ms));
    http::async_write(stream_, wire_, [self = this->shared_from_this(), keep_alive](Failure failed, std::size_t) {
      if (failed == boost::beast::error::timeout) self->shared_.counts.timeouts.Add();
      if (failed) return self->CloseSocket();
      self->shared_.counts.request_seconds.Observe(
          std::chrono::duration<double>(std::chrono::steady_clock::now() - self->begun_at_).count());
      if (!keep_alive) return self->Close();
      self->ReadRequest();
    });
  }

  // An idle read ends as cancelled and closes; a request under way is finished, and its answer closes.
  void Quit(bool now) {
    if (now) return CloseSocket();
    if (phase_ == Phase::kIdle) Lowest().cancel();
  }

  // Nothing is pending. close_notify tells the peer that nothing was cut off.
  void Close() {
    if (phase_ == Phase::kClosing) return;
    phase_ = Phase::kClosing;
    Lowest().expires_after(Ms(kLingerMs));
    if constexpr (std::is_same_v<Stream, TlsStream>) {
      stream_.async_shutdown([self = this->shared_from_this()](Failure) { self->Linger(kLingerBytes); });
      if (!unread_) Lowest().socket().shutdown(boost::asio::socket_base::shutdown_receive, ignored_);
    } else {
      Linger(kLingerBytes);
    }
  }
  // A peer still sending a refused body would answer a closed socket's reset by dropping the refusal unread.
  void Linger(std::size_t budget) {
    if (!unread_ || budget == 0 || !Lowest().socket().is_open()) return CloseSocket();
    Lowest().socket().shutdown(boost::asio::socket_base::shutdown_send, ignored_);
    buffer_.clear();
    Lowest().async_read_some(buffer_.prepare(std::min(kLingerRead, budget)),
                             [self = this->shared_from_this(), budget](Failure failed, std::size_t size) {
                               if (failed || size == 0) return self->CloseSocket();
                               self->Linger(budget - size);
                             });
  }
  void CloseSocket() {
    phase_ = Phase::kClosing;
    timer_.cancel();
    Lowest().socket().shutdown(boost::asio::socket_base::shutdown_both, ignored_);
    Lowest().close();
  }

  ConnectionShared& shared_;
  Stream stream_;
  const Peer peer_;
  GaugeHold hold_;
  boost::asio::steady_timer timer_;
  std::uint64_t id_ = 0;
  std::string large_body_key_;
  boost::beast::flat_buffer buffer_;
  std::optional<boost::beast::http::request_parser<Body>> parser_;
  const Route* route_ = nullptr;
  Request request_;
  Wire wire_;
  Failure ignored_;
  std::chrono::steady_clock::time_point begun_at_;
  std::uint64_t turn_ = 0;
  Phase phase_ = Phase::kIdle;
  bool keep_alive_ = false;
  bool cbor_ = false;
  bool unread_ = false;
};

}  // namespace assay::server
