// SPDX-License-Identifier: Apache-2.0
// C shims of client.h: requests to the agent's protocol and replies into the caller's buffers.
#include "sdk/include/assay/client.h"

#include <algorithm>
#include <new>

#include "sdk/client/exchange.h"
#include "sdk/core/agent_protocol.h"
#include "sdk/core/limits.h"

struct assay_client {
  std::string path;
};

namespace assay::sdk {
namespace {

bool GetText(const char* text, std::size_t limit, std::string& out) {
  if (text == nullptr) return false;
  const std::size_t size = std::string_view(text).size();
  if (size > limit) return false;
  out.assign(text, size);
  return true;
}

bool GetDigest(const std::uint8_t* bytes, Digest& out) noexcept {
  if (bytes == nullptr) return false;
  CopyBytes({bytes, out.size()}, out);
  return true;
}

template <std::size_t N>
void PutText(std::string_view from, char (&to)[N]) noexcept {
  const std::size_t size = std::min(from.size(), N - 1);
  std::copy_n(from.begin(), size, to);
  to[size] = '\0';
}

struct Output {
  std::uint8_t* data;
  std::size_t* size;
  bool text;  // ends with a zero, which *size does not count
};

assay_code Deliver(const local::Reply& reply, const Output& out, assay_error* error) {
  if (!reply.ok) {
    if (error != nullptr) {
      PutText(reply.error.code, error->code);
      PutText(reply.error.detail, error->detail);
      PutText(reply.error.fix, error->fix);
    }
    return ASSAY_E_REFUSED;
  }
  const std::size_t room = *out.size;
  const std::size_t needed = reply.payload.size() + (out.text ? 1 : 0);
  *out.size = room < needed ? needed : reply.payload.size();
  if (room < needed) return ASSAY_E_BUFFER;
  CopyBytes(reply.payload, {out.data, reply.payload.size()});
  if (out.text) out.data[reply.payload.size()] = 0;
  return ASSAY_OK;
}

assay_code Call(const assay_client& client, const local::Request& request, const Output& out,
                const CallOptions& options) {
  const Deadline deadline(options.deadline_ms);
  Buffer frame;
  if (const assay_code code = Exchange(client.path, local::EncodeRequest(request), deadline, frame); code != ASSAY_OK)
    return code;
  auto reply = local::DecodeReply(frame);
  if (!reply.ok() || reply->payload.size() > options.most) return ASSAY_E_PROTOCOL;
  if (out.text && reply->ok && reply->payload.end() != std::find(reply->payload.begin(), reply->payload.end(), 0))
    return ASSAY_E_PROTOCOL;
  return Deliver(*reply, out, options.error);
}

}  // namespace
}  // namespace assay::sdk

using namespace assay;

namespace {
constexpr std::size_t kMaxPath = 107;  // sun_path of sockaddr_un, less its zero

void Clear(assay_error* error) noexcept {
  if (error != nullptr) *error = {};
}
}  // namespace

assay_code assay_client_open(const char* socket_path, assay_client** out) noexcept {
  if (out == nullptr) return ASSAY_E_ARGUMENT;
  *out = nullptr;
  const std::string_view path = socket_path == nullptr ? ASSAY_DEFAULT_SOCKET : socket_path;
  if (path.empty() || path.size() > kMaxPath) return ASSAY_E_ARGUMENT;
  try {
    *out = new assay_client{std::string(path)};
    return ASSAY_OK;
  } catch (...) { return ASSAY_E_MEMORY; }
}

void assay_client_close(assay_client* client) noexcept { delete client; }

assay_code assay_client_result_token(const assay_client* client, const assay_result_request* request, char* token,
                                     size_t* size, uint32_t deadline_ms, assay_error* error) noexcept {
  Clear(error);
  try {
    local::ResultTokenRequest message;
    if (client == nullptr || request == nullptr || request->struct_size != sizeof(*request) || token == nullptr ||
        size == nullptr || deadline_ms == 0 || !sdk::GetText(request->audience, limits::kAudience, message.audience) ||
        message.audience.empty() || !sdk::GetText(request->match, limits::kMatch, message.match) ||
        !sdk::GetDigest(request->server_nonce, message.server_nonce) ||
        !sdk::GetDigest(request->session_key_hash, message.session_key_hash)) {
      return ASSAY_E_ARGUMENT;
    }
    message.deadline_ms = deadline_ms;
    return sdk::Call(*client, message, {reinterpret_cast<std::uint8_t*>(token), size, true},
                     {deadline_ms, limits::kResultToken, error});
  } catch (...) { return ASSAY_E_MEMORY; }
}

assay_code assay_client_host_token(const assay_client* client, const assay_host_request* request, uint8_t* token,
                                   size_t* size, uint32_t deadline_ms, assay_error* error) noexcept {
  Clear(error);
  try {
    local::HostTokenRequest message;
    if (client == nullptr || request == nullptr || request->struct_size != sizeof(*request) || token == nullptr ||
        size == nullptr || deadline_ms == 0 || !sdk::GetText(request->audience, limits::kAudience, message.audience) ||
        message.audience.empty() || !sdk::GetDigest(request->server_nonce, message.server_nonce) ||
        !sdk::GetDigest(request->session_key_hash, message.session_key_hash) ||
        (request->heartbeat == 0 && request->sequence != 0)) {
      return ASSAY_E_ARGUMENT;
    }
    message.heartbeat = request->heartbeat != 0;
    message.sequence = request->sequence;
    return sdk::Call(*client, message, {token, size, false}, {deadline_ms, limits::kHostToken, error});
  } catch (...) { return ASSAY_E_MEMORY; }
}

assay_code assay_client_status(const assay_client* client, char* json, size_t* size, uint32_t deadline_ms,
                               assay_error* error) noexcept {
  Clear(error);
  if (client == nullptr || json == nullptr || size == nullptr || deadline_ms == 0) return ASSAY_E_ARGUMENT;
  try {
    return sdk::Call(*client, local::StatusRequest{}, {reinterpret_cast<std::uint8_t*>(json), size, true},
                     {deadline_ms, limits::kOtherBody, error});
  } catch (...) { return ASSAY_E_MEMORY; }
}
