// SPDX-License-Identifier: Apache-2.0
#include "verifier/server/routes_public.h"

#include <utility>

#include "sdk/core/protocol.h"

namespace assay::server {
namespace {

constexpr char kJose[] = "application/jose";
constexpr std::int64_t kRevocationLifetime = 3600;  // seconds: how old a list a game server may go on using

Response Text(unsigned status, std::string_view type, std::string_view text) {
  Response response;
  response.status = status;
  response.content_type = std::string(type);
  response.body = ToBuffer(AsBytes(text));
  return response;
}

bool IsLoopback(std::string_view source) { return source.starts_with("127.") || source == "::1"; }

}  // namespace

std::optional<std::string> PublicRoutes::FreshRevocations(std::int64_t now) const {
  const std::lock_guard lock(mutex_);
  return list_at_ == now ? std::optional<std::string>(list_) : std::nullopt;
}

Response PublicRoutes::Revocations() {
  const auto now = static_cast<std::int64_t>(deps_.now_ms() / 1000);
  if (const auto made = FreshRevocations(now)) return Text(200, kJose, *made);
  const auto rows = deps_.store.Revocations(now);
  if (!rows.ok()) return ErrorResponse(503, "store_unavailable", rows.error().detail, "try again later", false);
  RevocationList list;
  list.issued_at = now;
  list.expires_at = now + kRevocationLifetime;
  list.number = static_cast<std::uint64_t>(now);  // rises with time; one list a second
  for (const auto& row : *rows) {
    if (row.kind == "token") list.token_ids.push_back(row.value);
    else if (row.kind == "device") list.device_ids.push_back(row.value);
  }
  const auto signed_list = deps_.issuer.SignRevocations(list);
  if (!signed_list.ok())
    return ErrorResponse(503, "token_unavailable", signed_list.error().detail, "try again later", false);
  const std::lock_guard lock(mutex_);
  list_ = *signed_list;
  list_at_ = now;
  return Text(200, kJose, list_);
}

std::vector<Route> PublicRoutes::Routes() {
  std::vector<Route> routes;
  for (const Listener listener : {Listener::kNetwork, Listener::kOperator}) {
    const auto get = [&](const char* path, Handler handler) {
      routes.push_back(
          {.method = "GET", .path = path, .listener = listener, .body_limit = 0, .handler = std::move(handler)});
    };
    get("/healthz", [](const Request&, const Responder& respond) { respond(Text(200, "text/plain", "ok\n")); });
    get("/readyz", [this](const Request&, const Responder& respond) {
      respond(deps_.ready().ok() ? Text(200, "text/plain", "ready\n") : Text(503, "text/plain", "not ready\n"));
    });
    get(route::kJwks, [this](const Request&, const Responder& respond) {
      respond(Text(200, "application/jwk-set+json", deps_.issuer.jwks()));
    });
    get(route::kRevocations, [this](const Request&, const Responder& respond) {
      if (const auto made = FreshRevocations(static_cast<std::int64_t>(deps_.now_ms() / 1000)))
        return respond(Text(200, kJose, *made));
      const Queued queued = deps_.work.Run([this, respond] { respond(Revocations()); });
      if (queued == Queued::kFull)
        respond(ErrorResponse(503, "busy", "too many requests wait for the store", "try again later", false));
    });
    get("/metrics", [this](const Request& request, const Responder& respond) {
      if (request.listener == Listener::kNetwork && !IsLoopback(request.source)) {
        return respond(ErrorResponse(404, "not_found", "there is no such path", "", false));
      }
      respond(Text(200, "text/plain; version=0.0.4", deps_.metrics.Text()));
    });
  }
  return routes;
}

}  // namespace assay::server
