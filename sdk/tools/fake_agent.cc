// SPDX-License-Identifier: Apache-2.0
#include "sdk/tools/fake_agent.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "sdk/core/json.h"

namespace assay::tools {
namespace {

constexpr int kPollMs = 100;
constexpr std::size_t kFrameHead = 4;

std::int64_t NowMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

local::Reply Refuse(std::string code, std::string detail, std::string fix) {
  return {.ok = false, .payload = {}, .error = {std::move(code), std::move(detail), std::move(fix)}};
}

local::Reply Payload(Buffer payload) { return {.ok = true, .payload = std::move(payload), .error = {}}; }

bool ReceiveAll(int fd, MutableBytes out) {
  while (!out.empty()) {
    const ssize_t got = ::recv(fd, out.data(), out.size(), 0);
    if (got <= 0 && !(got < 0 && errno == EINTR)) return false;
    if (got > 0) out = out.subspan(static_cast<std::size_t>(got));
  }
  return true;
}

void SendAll(int fd, Bytes data) {
  while (!data.empty()) {
    const ssize_t sent = ::send(fd, data.data(), data.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EINTR) return;
    if (sent > 0) data = data.subspan(static_cast<std::size_t>(sent));
  }
}

}  // namespace

local::Reply FakeAgent::Answer(const local::Request& request, std::int64_t now_ms) const {
  if (std::holds_alternative<local::StatusRequest>(request)) {
    JsonWriter status;
    status.BeginObject().Name("mode").String("test").Name("issuer").String(options_.issuer).EndObject();
    return Payload(ToBuffer(AsBytes(status.text())));
  }
  if (const auto* wanted = std::get_if<local::ResultTokenRequest>(&request)) {
    const ResultClaims claims = attester_.Claims({.issuer = options_.issuer,
                                                  .audience = wanted->audience,
                                                  .match = wanted->match,
                                                  .server_nonce = wanted->server_nonce,
                                                  .session_key_hash = wanted->session_key_hash,
                                                  .now_ms = now_ms,
                                                  .lifetime_s = options_.lifetime_s,
                                                  .tier = options_.tier,
                                                  .host_tokens = options_.host_tokens});
    auto token = attester_.Sign(claims);
    if (!token.ok()) return Refuse("internal", token.error().detail, "");
    return Payload(ToBuffer(AsBytes(*token)));
  }
  if (const auto* wanted = std::get_if<local::HostTokenRequest>(&request)) {
    auto token = attester_.MakeHostToken({.server_nonce = wanted->server_nonce,
                                          .session_key_hash = wanted->session_key_hash,
                                          .now_ms = now_ms,
                                          .heartbeat = wanted->heartbeat,
                                          .sequence = wanted->sequence});
    if (!token.ok()) return Refuse("internal", token.error().detail, "");
    return Payload(std::move(*token));
  }
  return Refuse("test_mode", "This agent has no TPM and serves no relay.", "Run assay-agent for anything but tests.");
}

void FakeAgent::ServeOne(const Fd& peer) const {
  const timeval stall{.tv_sec = kStallMs / 1000, .tv_usec = 0};
  (void)::setsockopt(peer.get(), SOL_SOCKET, SO_RCVTIMEO, &stall, sizeof(stall));
  (void)::setsockopt(peer.get(), SOL_SOCKET, SO_SNDTIMEO, &stall, sizeof(stall));
  std::array<std::uint8_t, kFrameHead> head{};
  if (!ReceiveAll(peer.get(), head)) return;
  const std::size_t size = Reader(head).U32Le();
  if (size == 0 || size > limits::kLocalRequest) return;
  Buffer frame(size);
  if (!ReceiveAll(peer.get(), frame)) return;
  const auto request = local::DecodeRequest(frame);
  const Buffer reply =
      local::EncodeReply(request.ok() ? Answer(*request, NowMs()) : Refuse("malformed", request.error().detail, ""));
  Writer out(kFrameHead + reply.size());
  out.U32Le(static_cast<std::uint32_t>(reply.size()));
  out.Put(reply);
  SendAll(peer.get(), out.buffer());
}

Status FakeAgent::Serve(const Fd& listener, const std::atomic<bool>& stop) const {
  while (!stop.load()) {
    pollfd entry{.fd = listener.get(), .events = POLLIN, .revents = 0};
    const int ready = ::poll(&entry, 1, kPollMs);
    if (ready < 0 && errno != EINTR)
      return MakeError(Code::kIo, "waiting for a connection failed", static_cast<std::uint32_t>(errno));
    if (ready <= 0) continue;
    const Fd peer(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (peer.valid()) ServeOne(peer);
  }
  return Ok();
}

Result<Fd> ListenUnix(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path))
    return MakeError(Code::kConfig, "a socket path has 1 to 107 bytes");
  std::copy(path.begin(), path.end(), address.sun_path);
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const mode_t before = ::umask(0177);
  const bool bound = fd.valid() && ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  const int fault = errno;
  (void)::umask(before);
  if (!bound || ::listen(fd.get(), 64) != 0) {
    return MakeError(Code::kIo, "cannot listen at " + path + ": remove a stale file there, or choose another path",
                     static_cast<std::uint32_t>(fault));
  }
  return fd;
}

}  // namespace assay::tools
