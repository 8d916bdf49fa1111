// SPDX-License-Identifier: Apache-2.0
// The operator socket over AF_UNIX.
#include "sdk/net/https_client.h"
#include "verifier/ctl/operator_client.h"

namespace assay::ctl {
namespace {

class UnixOperator final : public OperatorClient {
 public:
  explicit UnixOperator(net::UnixHttpOptions options) : client_(std::move(options)) {}
  Result<Reply> Call(const std::string& method, const std::string& path, const std::string& body) override {
    net::HttpRequest request;
    request.method = method;
    request.path = path;
    request.content_type = body.empty() ? "" : "application/json";
    request.body = AsBytes(body);
    ASSAY_TRY(const net::HttpReply reply, client_.Call(request));
    return Reply{reply.status, std::string(AsText(reply.body))};
  }

 private:
  net::UnixHttpClient client_;
};

}  // namespace

std::unique_ptr<OperatorClient> ConnectOperator(const std::string& socket_path) {
  net::UnixHttpOptions options;
  options.socket_path = socket_path;
  return std::make_unique<UnixOperator>(std::move(options));
}

}  // namespace assay::ctl
