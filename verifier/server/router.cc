// SPDX-License-Identifier: Apache-2.0
#include "verifier/server/router.h"

#include "sdk/core/cbor.h"
#include "sdk/core/json.h"
#include "sdk/core/protocol.h"

namespace assay::server {
namespace {

// How well a route's path fits: 0 not at all, else the longer the better, exact above all.
std::size_t Fit(std::string_view pattern, std::string_view path) noexcept {
  if (pattern == path) return path.size() + 2;
  if (!pattern.ends_with("/*")) return 0;
  const std::string_view prefix = pattern.substr(0, pattern.size() - 1);  // with its slash
  return path.size() > prefix.size() && path.starts_with(prefix) ? prefix.size() : 0;
}

}  // namespace

RouteMatch Router::Find(std::string_view method, std::string_view path, Listener listener) const noexcept {
  RouteMatch best;
  std::size_t best_fit = 0;
  for (const auto& route : routes_) {
    if (route.listener != listener) continue;
    const std::size_t fit = Fit(route.path, path);
    if (fit == 0) continue;
    if (route.method != method) best.other_method = true;
    else if (fit > best_fit) {
      best.route = &route;
      best_fit = fit;
    }
  }
  return best;
}

Response ErrorResponse(unsigned status, std::string_view code, std::string_view detail, std::string_view fix,
                       bool cbor) {
  Response response;
  response.status = status;
  if (cbor) {
    response.content_type = "application/cbor";
    response.body = EncodeErrorReply({std::string(code), std::string(detail), std::string(fix)});
    return response;
  }
  const std::string text =
      "{\"code\":" + JsonQuote(code) + ",\"detail\":" + JsonQuote(detail) + ",\"fix\":" + JsonQuote(fix) + "}";
  response.body = ToBuffer(AsBytes(text));
  return response;
}

}  // namespace assay::server
