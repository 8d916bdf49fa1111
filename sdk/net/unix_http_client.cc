// SPDX-License-Identifier: Apache-2.0
#include "sdk/net/dial.h"
#include "sdk/net/http_exchange.h"
#include "sdk/net/https_client.h"
#include "sdk/net/socket_stream.h"

namespace assay::net {

struct UnixHttpClient::State {
  UnixHttpOptions options;
  std::unique_ptr<SocketStream> stream;
  bool may_have_been_sent = false;
};

UnixHttpClient::UnixHttpClient(UnixHttpOptions options) : state_(std::make_unique<State>()) {
  state_->options = std::move(options);
}
UnixHttpClient::UnixHttpClient(UnixHttpClient&&) noexcept = default;
UnixHttpClient& UnixHttpClient::operator=(UnixHttpClient&&) noexcept = default;
UnixHttpClient::~UnixHttpClient() = default;

Result<HttpReply> UnixHttpClient::Call(const HttpRequest& request) {
  State& state = *state_;
  state.may_have_been_sent = false;
  if (request.bound) return MakeError(Code::kUnsupported, "a local socket has no channel binding");
  if (state.stream == nullptr || !state.stream->Quiet()) {
    state.stream.reset();
    ASSAY_TRY(Fd fd, DialUnix(state.options.socket_path, After(state.options.connect_timeout_ms)));
    state.stream = std::make_unique<SocketStream>(std::move(fd));
  }
  ExchangeState exchange;
  const ExchangeRules rules{"localhost", state.options.reply_limit, After(state.options.request_timeout_ms)};
  Result<HttpReply> reply = Exchange(*state.stream, request, rules, exchange);
  if (!exchange.keep_alive) state.stream.reset();
  state.may_have_been_sent = exchange.wrote;
  return reply;
}

Result<HttpReply> UnixHttpClient::Get(std::string path) {
  HttpRequest request;
  request.path = std::move(path);
  return Call(request);
}

Result<HttpReply> UnixHttpClient::Post(std::string path, std::string content_type, Bytes body) {
  return Call({"POST", std::move(path), std::move(content_type), body, {}, false});
}

bool UnixHttpClient::MayHaveBeenSent() const noexcept { return state_->may_have_been_sent; }

}  // namespace assay::net
