// SPDX-License-Identifier: Apache-2.0
#include "verifier/server/routes_public.h"

#include <doctest/doctest.h>

#include <future>

#include "sdk/core/protocol.h"
#include "tests/support/memory_store.h"

namespace assay::server {
namespace {

struct CountingStore final : test::MemoryStore {
  std::atomic<int> reads = 0;
  Result<std::vector<store::Revocation>> Revocations(std::int64_t now) override {
    ++reads;
    return test::MemoryStore::Revocations(now);
  }
};

struct Fixture {
  CountingStore store;
  std::uint64_t now_ms = 1'700'000'000'000;
  token::ResultIssuer issuer = token::ResultIssuer::Create({.signing = PrivateKey::Generate(KeyType::kP256).value(),
                                                            .also_published = {},
                                                            .device_master = Secret::CopyOf(Buffer(32, 9)),
                                                            .device_key_version = 1},
                                                           "https://v")
                                   .value();
  MetricsPage metrics;
  WorkPool work{1, 16};
  PublicRoutes routes{{.issuer = issuer,
                       .store = store,
                       .ready = [] { return Ok(); },
                       .metrics = metrics,
                       .work = work,
                       .now_ms = [this] { return now_ms; }}};
  std::vector<Route> table = routes.Routes();

  Response Get(const std::string& path, const std::string& source = "192.0.2.1") {
    for (const Route& route : table) {
      if (route.path != path || route.listener != Listener::kNetwork) continue;
      std::promise<Response> answered;
      Request request;
      request.source = source;
      route.handler(std::move(request), [&](Response response) { answered.set_value(std::move(response)); });
      return answered.get_future().get();
    }
    return {};
  }
};

TEST_CASE("revocations are read and signed once a second, and are new in the next") {
  Fixture f;
  const Response first = f.Get(route::kRevocations);
  CHECK(first.status == 200);
  for (int i = 0; i < 20; ++i) CHECK(f.Get(route::kRevocations).body == first.body);
  CHECK(f.store.reads == 1);
  REQUIRE(f.store.AddRevocation({"token", "abc", 1'800'000'000}).ok());
  f.now_ms += 1000;
  const Response later = f.Get(route::kRevocations);
  CHECK(f.store.reads == 2);
  const KeySet keys = KeySet::ParseJwks(f.issuer.jwks()).value();
  Buffer scratch(later.body.size());
  const JwsCheck check = VerifyJws(keys, AsText(later.body), kRevocationsType, scratch);
  REQUIRE(check.fault == JwsFault::kNone);
  const RevocationList list = DecodeRevocationList(check.jws.payload).value();
  CHECK(list.token_ids == std::vector<std::string>{"abc"});
  CHECK(list.number == 1'700'000'001);
}

TEST_CASE("metrics are for loopback and operators only") {
  Fixture f;
  CHECK(f.Get("/metrics").status == 404);
  CHECK(f.Get("/metrics", "::1").status == 200);
  CHECK(f.Get("/metrics", "127.0.0.1").status == 200);
}

}  // namespace
}  // namespace assay::server
