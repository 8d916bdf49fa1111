// SPDX-License-Identifier: Apache-2.0
#include "sdk/net/http_exchange.h"

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/vector_body.hpp>
#include <charconv>
#include <string_view>

namespace assay::net {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;

constexpr std::uint32_t kReplyHeader = 16U << 10;
constexpr std::size_t kReadSize = 16U << 10;
constexpr std::size_t kPiece = 64U << 10;  // of a body, between looks at what the server says

using Body = http::vector_body<std::uint8_t>;
using Parser = http::response_parser<Body>;

bool IsToken(std::string_view text) noexcept {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
}

bool IsFieldText(std::string_view text) noexcept {
  return std::all_of(text.begin(), text.end(), [](char c) { return c == '\t' || (c >= 0x20 && c < 0x7F); });
}

bool IsTarget(std::string_view path) noexcept {
  return path.starts_with('/') && std::all_of(path.begin(), path.end(), [](char c) { return c > 0x20 && c < 0x7F; });
}

Result<std::string> HeaderText(const HttpRequest& request, const ExchangeRules& rules) {
  bool fine =
      IsToken(request.method) && IsTarget(request.path) && IsFieldText(request.content_type) && IsFieldText(rules.host);
  std::string text = request.method + " " + request.path + " HTTP/1.1\r\nHost: " + rules.host + "\r\n";
  if (!request.content_type.empty()) text += "Content-Type: " + request.content_type + "\r\n";
  for (const auto& [name, value] : request.headers) {
    fine = fine && IsToken(name) && IsFieldText(value);
    text += name + ": " + value + "\r\n";
  }
  if (!fine)
    return MakeError(Code::kMalformed,
                     "the method, path or a header of the request holds characters that HTTP does not allow");
  const bool has_body = request.method != "GET" && request.method != "HEAD";
  if (!has_body && !request.body.empty()) return MakeError(Code::kMalformed, request.method + " carries no body");
  if (has_body) text += "Content-Length: " + std::to_string(request.body.size()) + "\r\n";
  return text + "\r\n";
}

enum class Sent : std::uint8_t { kWhole, kPart };
// Stops early when the server answers before it has all: it refused by the header.
Result<Sent> Send(Stream& stream, std::string header, Bytes body, const ExchangeRules& rules) {
  const Bytes first = body.first(std::min(body.size(), kPiece));
  header.append(AsText(first));
  ASSAY_CHECK_OK(stream.Write(AsBytes(header), rules.deadline));
  body = body.subspan(first.size());
  while (!body.empty() && stream.Quiet()) {
    const Bytes piece = body.first(std::min(body.size(), kPiece));
    ASSAY_CHECK_OK(stream.Write(piece, rules.deadline));
    body = body.subspan(piece.size());
  }
  return body.empty() ? Sent::kWhole : Sent::kPart;
}

Error ParseError(const boost::system::error_code& error, std::size_t limit) {
  if (error == http::error::body_limit)
    return MakeError(Code::kLimit, "the reply is longer than " + std::to_string(limit) + " bytes");
  if (error == http::error::header_limit) return MakeError(Code::kLimit, "the reply's header is too long");
  if (error == http::error::partial_message || error == http::error::end_of_stream) {
    return MakeError(Code::kUnavailable, "the server closed the connection within its reply");
  }
  return MakeError(Code::kMalformed, "the reply is not HTTP/1.1: " + error.message());
}

// Feeds what was read; returns how many bytes of `input` are left over.
Result<std::size_t> Feed(Parser& parser, Bytes input, std::size_t limit) {
  while (!input.empty() && !parser.is_done()) {
    boost::system::error_code error;
    const std::size_t used = parser.put(asio::const_buffer(input.data(), input.size()), error);
    input = input.subspan(used);
    if (error == http::error::need_more) break;
    if (error) return ParseError(error, limit);
    if (used == 0) break;
  }
  return input.size();
}

Status Receive(Stream& stream, Parser& parser, const ExchangeRules& rules, ExchangeState& state) {
  Buffer pending;  // read and not yet parsed: a header in pieces
  std::array<std::uint8_t, kReadSize> chunk{};
  while (!parser.is_done()) {
    ASSAY_TRY(const std::size_t count, stream.Read(chunk, rules.deadline));
    if (count == 0) {
      boost::system::error_code error;
      if (!state.reply_began) return MakeError(Code::kUnavailable, "the server closed the connection without a reply");
      parser.put_eof(error);
      if (error) return ParseError(error, rules.reply_limit);
      continue;
    }
    state.reply_began = true;
    pending.insert(pending.end(), chunk.begin(), chunk.begin() + static_cast<std::ptrdiff_t>(count));
    if (!parser.is_header_done() && pending.size() > kReplyHeader + kReadSize)
      return MakeError(Code::kLimit, "the reply's header is too long");
    ASSAY_TRY(const std::size_t left, Feed(parser, pending, rules.reply_limit));
    pending.erase(pending.begin(), pending.end() - static_cast<std::ptrdiff_t>(left));
  }
  state.keep_alive = parser.get().keep_alive() && pending.empty();
  return Ok();
}

HttpReply TakeReply(Parser& parser) {
  HttpReply reply;
  auto message = parser.release();
  reply.status = message.result_int();
  reply.content_type = std::string(message[http::field::content_type]);
  const std::string retry(message[http::field::retry_after]);
  std::uint64_t seconds = 0;
  const auto [end, error] = std::from_chars(retry.data(), retry.data() + retry.size(), seconds);
  if (!retry.empty() && error == std::errc() && end == retry.data() + retry.size()) reply.retry_after_s = seconds;
  reply.body = std::move(message.body());
  return reply;
}

Result<HttpReply> ExchangeThrowing(Stream& stream, const HttpRequest& request, const ExchangeRules& rules,
                                   ExchangeState& state) {
  ASSAY_TRY(std::string header, HeaderText(request, rules));
  Parser parser;
  parser.eager(true);
  parser.header_limit(kReplyHeader);
  parser.body_limit(rules.reply_limit);
  if (request.method == "HEAD") parser.skip(true);
  state.wrote = true;
  ASSAY_TRY(const Sent sent, Send(stream, std::move(header), request.body, rules));
  ASSAY_CHECK_OK(Receive(stream, parser, rules, state));
  if (sent == Sent::kPart) state.keep_alive = false;
  if (parser.get().result_int() < 200)
    return MakeError(Code::kMalformed, "the server sent an interim reply that nobody asked for");
  return TakeReply(parser);
}

}  // namespace

Result<HttpReply> Exchange(Stream& stream, const HttpRequest& request, const ExchangeRules& rules,
                           ExchangeState& state) {
  try {
    Result<HttpReply> reply = ExchangeThrowing(stream, request, rules, state);
    if (!reply.ok()) state.keep_alive = false;
    return reply;
  } catch (const std::exception& error) {  // the parser's own: no memory
    state.keep_alive = false;
    return MakeError(Code::kInternal, std::string("the reply could not be taken: ") + error.what());
  }
}

}  // namespace assay::net
