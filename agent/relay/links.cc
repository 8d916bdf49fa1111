// SPDX-License-Identifier: Apache-2.0
#include "agent/relay/links.h"

#include <vector>

#include "agent/local/client.h"
#include "sdk/core/limits.h"
#include "sdk/net/https_client.h"

namespace assay::relay {
namespace {

constexpr char kCbor[] = "application/cbor";

class SocketAgent final : public AgentLink {
 public:
  explicit SocketAgent(std::string path) : path_(std::move(path)) {}

  Result<local::Reply> Call(const local::Request& request, std::uint64_t timeout_ms) override {
    if (client_.empty()) {
      ASSAY_TRY(local::Client client, local::Client::Connect(path_));
      client_.push_back(std::move(client));
    }
    auto reply = client_.front().Call(request, timeout_ms);
    if (!reply.ok()) client_.clear();
    return reply;
  }

 private:
  std::string path_;
  std::vector<local::Client> client_;  // none or one
};

Result<VerifierAnswer> ToAnswer(Result<net::HttpReply> reply) {
  if (!reply.ok()) return std::move(reply).error();
  return VerifierAnswer{reply->status, std::move(reply->body), reply->retry_after_s};
}

class HttpsVerifier final : public VerifierLink {
 public:
  explicit HttpsVerifier(net::HttpsClient client) : client_(std::move(client)) {}
  Result<VerifierAnswer> Post(std::string_view path, Bytes body) override {
    return ToAnswer(client_.Post(std::string(path), kCbor, body));
  }
  Result<Digest> ChannelBinding() override {
    ASSAY_CHECK_OK(client_.Connect());
    return client_.ChannelBinding();
  }
  Result<VerifierAnswer> PostBound(std::string_view path, Bytes body) override {
    return ToAnswer(client_.PostBound(std::string(path), kCbor, body));
  }

 private:
  net::HttpsClient client_;
};

}  // namespace

std::unique_ptr<AgentLink> MakeAgentLink(std::string socket_path) {
  return std::make_unique<SocketAgent>(std::move(socket_path));
}

Result<std::unique_ptr<VerifierLink>> MakeVerifierLink(const config::RelayConfig& config) {
  net::HttpsOptions options;
  options.host = config.verifier_host;
  options.port = config.verifier_port;
  options.server_name = config.server_name;
  options.ca_file = config.ca_file;
  options.request_timeout_ms = config.request_timeout_ms;
  options.reply_limit = limits::kLocalDelivery;  // what the agent takes
  ASSAY_TRY(net::HttpsClient client, net::HttpsClient::Create(std::move(options)));
  return std::unique_ptr<VerifierLink>(std::make_unique<HttpsVerifier>(std::move(client)));
}

}  // namespace assay::relay
