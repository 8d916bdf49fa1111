// SPDX-License-Identifier: Apache-2.0
#include "sdk/net/https_client.h"

#include "sdk/net/http_exchange.h"
#include "sdk/net/tls_client.h"

namespace assay::net {

struct HttpsClient::State {
  HttpsOptions options;
  SslCtx context;
  std::unique_ptr<TlsStream> stream;
  std::string host_field;
  bool fresh = false;         // no request went over this connection yet
  bool binding_read = false;  // ChannelBinding() was read on this connection
  bool may_have_been_sent = false;

  void Drop() noexcept {
    stream.reset();
    binding_read = false;
  }
  Status Ensure() {
    if (stream != nullptr && stream->Quiet()) return Ok();
    Drop();
    ASSAY_TRY(stream, TlsStream::Connect(context.get(), options, After(options.connect_timeout_ms)));
    fresh = true;
    return Ok();
  }
  Status Prepare(const HttpRequest& request) {
    if (!request.bound) return Ensure();
    if (stream != nullptr && binding_read && stream->Quiet()) return Ok();
    Drop();
    return MakeError(Code::kConflict, "connection renewed: take evidence again");
  }
  Result<HttpReply> Once(const HttpRequest& request, ExchangeState& exchange) {
    const ExchangeRules rules{host_field, options.reply_limit, After(options.request_timeout_ms)};
    Result<HttpReply> reply = Exchange(*stream, request, rules, exchange);
    fresh = false;
    if (!exchange.keep_alive) Drop();
    return reply;
  }
};

HttpsClient::HttpsClient(std::unique_ptr<State> state) : state_(std::move(state)) {}
HttpsClient::HttpsClient(HttpsClient&&) noexcept = default;
HttpsClient& HttpsClient::operator=(HttpsClient&&) noexcept = default;
HttpsClient::~HttpsClient() = default;

Result<HttpsClient> HttpsClient::Create(HttpsOptions options) {
  if (options.host.empty() || options.port == 0)
    return MakeError(Code::kConfig, "the server's host and port are not named");
  auto state = std::make_unique<State>();
  ASSAY_TRY(state->context, MakeClientContext(options));
  const bool v6 = options.host.find(':') != std::string::npos;
  state->host_field = (v6 ? "[" + options.host + "]" : options.host) + ":" + std::to_string(options.port);
  state->options = std::move(options);
  return HttpsClient(std::move(state));
}

Status HttpsClient::Connect() { return state_->Ensure(); }

Result<Digest> HttpsClient::ChannelBinding() {
  if (state_->stream == nullptr) return MakeError(Code::kUnavailable, "no connection is up: connect first");
  state_->binding_read = true;
  return state_->stream->channel_binding();
}

void HttpsClient::Close() noexcept { state_->Drop(); }

Result<HttpReply> HttpsClient::Call(const HttpRequest& request) {
  state_->may_have_been_sent = false;
  ASSAY_CHECK_OK(state_->Prepare(request));
  const bool kept = !state_->fresh;
  ExchangeState exchange;
  Result<HttpReply> reply = state_->Once(request, exchange);
  // A server closes idle connections when it likes, also at this very moment. Reading twice changes nothing there.
  const bool repeatable = !request.bound && (request.method == "GET" || request.method == "HEAD");
  if (!reply.ok() && reply.error().code == Code::kUnavailable && kept && repeatable && !exchange.reply_began) {
    ASSAY_CHECK_OK(state_->Prepare(request));
    exchange = {};
    reply = state_->Once(request, exchange);
  }
  state_->may_have_been_sent = exchange.wrote;
  return reply;
}

Result<HttpReply> HttpsClient::Get(std::string path) {
  HttpRequest request;
  request.path = std::move(path);
  return Call(request);
}

Result<HttpReply> HttpsClient::Post(std::string path, std::string content_type, Bytes body) {
  return Call({"POST", std::move(path), std::move(content_type), body, {}, false});
}

Result<HttpReply> HttpsClient::PostBound(std::string path, std::string content_type, Bytes body) {
  return Call({"POST", std::move(path), std::move(content_type), body, {}, true});
}

bool HttpsClient::MayHaveBeenSent() const noexcept { return state_->may_have_been_sent; }

}  // namespace assay::net
