// SPDX-License-Identifier: Apache-2.0
// The verifier over TLS 1.3.
#include "enroll/verifier_client.h"
#include "sdk/net/https_client.h"

namespace assay::enroll {
namespace {

constexpr char kMediaType[] = "application/cbor";
constexpr std::size_t kReplyLimit = 64U << 10;

class HttpsVerifier final : public VerifierClient {
 public:
  explicit HttpsVerifier(net::HttpsClient client) : client_(std::move(client)) {}

  Result<VerifierReply> Post(const std::string& route, Bytes body) override {
    return Reply(client_.Post(route, kMediaType, body));
  }
  Result<VerifierReply> PostBound(const std::string& route, Bytes body) override {
    return Reply(client_.PostBound(route, kMediaType, body));
  }
  Result<Digest> ChannelBinding() override {
    ASSAY_CHECK_OK(client_.Connect());
    return client_.ChannelBinding();
  }

 private:
  static Result<VerifierReply> Reply(Result<net::HttpReply> reply) {
    if (!reply.ok()) return reply.error();
    return VerifierReply{reply->status, std::move(reply->body)};
  }
  net::HttpsClient client_;
};

}  // namespace

Result<std::unique_ptr<VerifierClient>> ConnectVerifier(const config::EnrollConfig& config) {
  ASSAY_TRY(VerifierAddress address, ParseVerifierUrl(config.verifier));
  net::HttpsOptions options;
  options.host = std::move(address.host);
  options.port = address.port;
  options.ca_file = config.ca;
  options.request_timeout_ms = config.timeout_ms;
  options.reply_limit = kReplyLimit;
  ASSAY_TRY(net::HttpsClient client, net::HttpsClient::Create(std::move(options)));
  return std::unique_ptr<VerifierClient>(std::make_unique<HttpsVerifier>(std::move(client)));
}

}  // namespace assay::enroll
