// SPDX-License-Identifier: Apache-2.0
#include "verifier/ctl/operator_client.h"

namespace assay::ctl {
namespace {

std::string Text(const Json& object, const char* name) {
  return object.is_object() && object.contains(name) && object[name].is_string() ? object[name].get<std::string>()
                                                                                 : std::string();
}

Exit ExitOf(unsigned status) {
  if (status == 404) return Exit::kNotFound;
  if (status == 422) return Exit::kCheckFailed;
  if (status == 501) return Exit::kNotImplemented;
  return status >= 400 && status < 500 ? Exit::kRefused : Exit::kInternal;
}

}  // namespace

Outcome<Json> Ask(OperatorClient& client, const std::string& method, const std::string& path, const Json& body) {
  const Result<OperatorClient::Reply> reply = client.Call(
      method, path, body.is_null() ? std::string() : body.dump(-1, ' ', false, Json::error_handler_t::replace));
  if (!reply.ok())
    return Failure{Exit::kUnreachable, "verifier_unreachable", reply.error().detail,
                   "check that assay-verifier runs, --socket, and that this user may open it"};
  Json json = Json::parse(reply->body, nullptr, false);
  if (reply->status == 200 && json.is_object()) return json;
  const std::string code = Text(json, "code");
  if (code.empty())
    return Failure{Exit::kInternal, "reply_malformed",
                   "the verifier answered " + std::to_string(reply->status) + " without a reason",
                   "check that the socket is an Assay verifier's"};
  return Failure{ExitOf(reply->status), code, Text(json, "detail"), Text(json, "fix")};
}

}  // namespace assay::ctl
