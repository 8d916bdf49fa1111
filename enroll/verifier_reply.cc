// SPDX-License-Identifier: Apache-2.0
// What the verifier's address and answers mean.
#include <algorithm>
#include <charconv>

#include "enroll/verifier_client.h"

namespace assay::enroll {

Result<VerifierAddress> ParseVerifierUrl(std::string_view url) {
  constexpr std::string_view kScheme = "https://";
  const Error bad =
      MakeError(Code::kConfig, "\"" + std::string(url) + "\" is no verifier's address: https://HOST[:PORT]");
  if (!url.starts_with(kScheme)) return bad;
  url.remove_prefix(kScheme.size());
  if (url.ends_with('/')) url.remove_suffix(1);
  VerifierAddress out;
  if (url.starts_with('[')) {
    const std::size_t close = url.find(']');
    if (close == std::string_view::npos) return bad;
    out.host = url.substr(1, close - 1);
    url.remove_prefix(close + 1);
  } else {
    const std::size_t colon = std::min(url.find(':'), url.size());
    out.host = url.substr(0, colon);
    url.remove_prefix(colon);
  }
  if (out.host.empty() || out.host.find_first_of("/?#@ ") != std::string::npos) return bad;
  if (url.empty()) return out;
  const auto [end, error] = std::from_chars(url.data() + 1, url.data() + url.size(), out.port);
  if (url.front() != ':' || error != std::errc() || end != url.data() + url.size() || out.port == 0) return bad;
  return out;
}

Outcome<Buffer> Judge(Result<VerifierReply> reply, const std::string& url) {
  if (!reply.ok()) return VerifierFailure(reply.error(), url);
  if (reply->status == 200) return std::move(reply->body);
  const Result<ErrorReply> refusal = DecodeErrorReply(reply->body);
  if (refusal.ok()) return RefusedBy(*refusal);
  return VerifierFailure(MakeError(Code::kMalformed, "status " + std::to_string(reply->status) + " without a reason"),
                         url);
}

}  // namespace assay::enroll
