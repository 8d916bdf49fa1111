// SPDX-License-Identifier: Apache-2.0
#include "verifier/server/routes_operator.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "sdk/core/crypto.h"
#include "tests/support/memory_store.h"
#include "tests/support/recording_audit.h"
#include "verifier/enrollment/enrollment_token.h"
#include "verifier/server/audit_records.h"
#include "verifier/server/operator_api.h"

namespace assay::server {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kNowMs = 1'790'000'000'000;

Digest Host(std::uint8_t first, std::uint8_t second = 0) {
  Digest id{};
  id[0] = first;
  id[31] = second;
  return id;
}

struct Fixture {
  test::MemoryStore store;
  test::RecordingAudit audit;
  std::vector<Digest> resets, changed, forgotten;
  Result<PreparedPolicy> policy = PreparedPolicy{"sha256:aa", "sha256:bb", [this] { applied = true; }};
  bool applied = false;
  OperatorRoutes routes{{.store = store,
                         .audit = audit,
                         .prepare_policy = [this] { return policy; },
                         .accept_reset = [this](const Digest& id) -> Status {
                           resets.push_back(id);
                           return Ok();
                         },
                         .host_changed = [this](const Digest& id) { changed.push_back(id); },
                         .host_forgotten = [this](const Digest& id) { forgotten.push_back(id); },
                         .status =
                             [] {
                               return std::vector<std::pair<std::string, std::string>>{{"policy", "sha256:aa"}};
                             },
                         .operator_gid = 777,
                         .now_ms = [] { return kNowMs; },
                         .run = nullptr}};

  Fixture() {
    for (const Digest& id : {Host(0x10), Host(0x20, 1), Host(0x20, 2), Host(0xF0)}) {
      store::HostRow row;
      row.host_id = id;
      row.label = "machine \"" + std::to_string(id[0]) + "\"";
      row.generation = 1;
      store.hosts[id] = row;
    }
  }
  Response Call(const std::string& method, const std::string& path, const std::string& body = "") {
    Request request;
    request.method = method;
    request.path = path.substr(0, path.find('?'));
    request.query = path.find('?') == std::string::npos ? "" : path.substr(path.find('?') + 1);
    request.body = ToBuffer(AsBytes(body));
    request.listener = Listener::kOperator;
    return routes.Handle(request);
  }
  std::string Phases() const {
    std::string out;
    for (const std::string& record : audit.records) {
      const Json json = Json::parse(record);
      CHECK(json["type"] == "operator");
      CHECK(json["operator"] == "uid:0");
      CHECK(json["at_ms"] == kNowMs);
      out += (out.empty() ? "" : " ") + json["action"].get<std::string>() + ":" + json["phase"].get<std::string>();
    }
    return out;
  }
};

Json Parse(const Response& response) { return Json::parse(AsText(response.body)); }

constexpr char kReason[] = R"({"reason":"ticket 12"})";

TEST_CASE("hosts are listed in pages, after an access record and before a release record") {
  Fixture f;
  int reads_at_access = -1;
  f.audit.on_record = [&](const std::string& record) {
    if (record.find("\"access\"") != std::string::npos) reads_at_access = f.store.reads;
  };
  const Response response = f.Call("GET", "/v1/operator/hosts?limit=3");
  REQUIRE(response.status == 200);
  CHECK(reads_at_access == 0);
  const Json page = Parse(response);
  CHECK(page["hosts"].size() == 3);
  CHECK(page["next"] == ToHex(Host(0x20, 2)));
  CHECK(page["hosts"][0]["label"] == "machine \"16\"");
  CHECK(f.Phases() == "hosts.list:access hosts.list:release");
  CHECK(Json::parse(f.audit.records[1])["sha256"] == ToHex(Sha256(response.body)));
  const Json rest = Parse(f.Call("GET", "/v1/operator/hosts?limit=3&after=" + page["next"].get<std::string>()));
  CHECK(rest["hosts"].size() == 1);
  CHECK(rest["next"].is_null());
}

TEST_CASE("a host is named by its id or a prefix that fits one host only") {
  Fixture f;
  CHECK(f.Call("GET", "/v1/operator/hosts/" + ToHex(Host(0x20, 1))).status == 200);
  CHECK(f.Call("GET", "/v1/operator/hosts/10000000").status == 200);
  CHECK(f.Call("GET", "/v1/operator/hosts/F0000000").status == 200);
  CHECK(f.Call("GET", "/v1/operator/hosts/20000000").status == 409);
  CHECK(f.Call("GET", "/v1/operator/hosts/30000000").status == 404);
  CHECK(f.Call("GET", "/v1/operator/hosts/1000").status == 400);
  CHECK(f.Call("GET", "/v1/operator/hosts/1000000z").status == 400);
  CHECK(f.Call("GET", "/v1/operator/hosts/" + ToHex(Host(0x20, 1)) + "00").status == 400);
}

TEST_CASE("explain shows the newest verdicts with reasons, and says first what to do") {
  Fixture f;
  store::VerdictRow row;
  row.host_id = Host(0x10);
  row.audit_sequence = 7;
  row.outcome = "judged";
  row.tier = Tier::kContraindicated;
  row.reasons_json = R"([{"code":"pcr_mismatch","tier":"contraindicated","detail":"PCR 4 is x.","fix":"Boot y."}])";
  f.store.verdicts = {row};
  const Json out = Parse(f.Call("GET", "/v1/operator/hosts/10000000/explain"));
  CHECK(out["verdicts"][0]["reasons"][0]["code"] == "pcr_mismatch");
  CHECK(out["summary"] == "The newest verdict is contraindicated: PCR 4 is x. Fix: Boot y.");
  f.store.verdicts[0].reasons_json = "not json";
  CHECK(Parse(f.Call("GET", "/v1/operator/hosts/10000000/explain"))["verdicts"][0]["reasons"].empty());
  CHECK(f.Call("GET", "/v1/operator/hosts/10000000/explain?limit=0").status == 400);
  CHECK(Parse(f.Call("GET", "/v1/operator/hosts/f0000000/explain"))["summary"].get<std::string>().find(
            "never attested") != std::string::npos);
}

TEST_CASE("a change without a reason changes and records nothing") {
  for (const char* body :
       {"", "{}", "[]", R"({"reason":""})", R"({"reason":"   "})", R"({"reason":7})", "{\"reason\":\"a\\u0007b\"}"}) {
    Fixture f;
    CHECK(f.Call("POST", "/v1/operator/hosts/10000000/forget", body).status == 400);
    CHECK(f.Call("POST", "/v1/operator/hosts/10000000/accept-reset", body).status == 400);
    CHECK(f.Call("POST", "/v1/operator/policy/reload", body).status == 400);
    CHECK(f.store.writes == 0);
    CHECK(f.audit.records.empty());
    CHECK_FALSE(f.applied);
  }
  Fixture f;
  CHECK(f.Call("POST", "/v1/operator/hosts/10000000/forget", "{\"reason\":\"" + std::string(513, 'r') + "\"}").status ==
        400);
  CHECK(f.store.writes == 0);
}

TEST_CASE("forget, accept-reset and replace are recorded before and after, with the whole host id") {
  Fixture f;
  int writes_at_begin = -1;
  f.audit.on_record = [&](const std::string& record) {
    if (record.find("\"begin\"") != std::string::npos) writes_at_begin = f.store.writes;
  };
  CHECK(f.Call("POST", "/v1/operator/hosts/10000000/forget", kReason).status == 200);
  CHECK(writes_at_begin == 0);
  CHECK_FALSE(f.store.hosts.contains(Host(0x10)));
  CHECK(f.changed == std::vector{Host(0x10)});
  CHECK(f.forgotten == std::vector{Host(0x10)});
  CHECK(f.Phases() == "hosts.forget:begin hosts.forget:done");
  CHECK(Json::parse(f.audit.records[1])["host"] == ToHex(Host(0x10)));
  CHECK(Json::parse(f.audit.records[0])["reason"] == "ticket 12");
  FenceMark mark;  // a start reads it back: the forgotten host's generations begin anew
  CHECK(ReadFenceMark(f.audit.records[0], mark).value() == MarkKind::kNone);
  CHECK(ReadFenceMark(f.audit.records[1], mark).value() == MarkKind::kForgotten);
  CHECK(mark.host == Host(0x10));
  CHECK(f.Call("POST", "/v1/operator/hosts/f0000000/accept-reset", kReason).status == 200);
  CHECK(f.store.hosts[Host(0xF0)].reset_accepted);
  CHECK(f.resets == std::vector{Host(0xF0)});
  const std::string id1 = ToHex(Host(0x20, 1)), id2 = ToHex(Host(0x20, 2));
  CHECK(f.Call("POST", "/v1/operator/hosts/" + id1 + "/replace", R"({"reason":"board","new":")" + id2 + "\"}").status ==
        200);
  CHECK(f.store.hosts[Host(0x20, 1)].state == "replaced");
  CHECK(f.Call("POST", "/v1/operator/hosts/" + id1 + "/replace", R"({"reason":"board","new":")" + id1 + "\"}").status ==
        409);
  CHECK(f.Call("POST", "/v1/operator/hosts/" + id1 + "/replace", kReason).status == 400);
}

TEST_CASE("with a stopped trail nothing is read, changed or told") {
  Fixture f;
  f.audit.stopped = MakeError(Code::kUnavailable, "disk full");
  for (const char* path : {"/v1/operator/hosts", "/v1/operator/hosts/10000000", "/v1/operator/hosts/10000000/explain"})
    CHECK(f.Call("GET", path).status == 503);
  for (const char* path :
       {"/v1/operator/hosts/10000000/forget", "/v1/operator/hosts/10000000/accept-reset", "/v1/operator/policy/reload"})
    CHECK(f.Call("POST", path, kReason).status == 503);
  CHECK(f.Call("POST", "/v1/operator/enrollment-tokens", R"({"reason":"r","ttl_s":3600})").status == 503);
  CHECK(f.store.reads == 0);
  CHECK(f.store.writes == 0);
  CHECK_FALSE(f.applied);
  CHECK(Parse(f.Call("GET", "/v1/operator/status"))["audit"] == "disk full");
}

TEST_CASE("a trail that stops between access and release lets nothing out") {
  Fixture f;
  f.audit.stop_after = 1;
  const Response response = f.Call("GET", "/v1/operator/hosts");
  CHECK(response.status == 503);
  CHECK_FALSE(Parse(response).contains("hosts"));
}

TEST_CASE("a change that the store refuses is recorded as failed") {
  Fixture f;
  CHECK(f.Call("POST", "/v1/operator/hosts/30000000/forget", kReason).status == 404);
  CHECK(f.Phases() == "hosts.forget:begin hosts.forget:failed");
  f.store.fault = MakeError(Code::kIo, "disk");
  CHECK(f.Call("POST", "/v1/operator/hosts/10000000/forget", kReason).status == 500);
  CHECK(f.changed.empty());
}

TEST_CASE("a policy comes into force after its record, and a bad file keeps the old one") {
  Fixture f;
  f.audit.on_record = [&](const std::string&) { CHECK_FALSE(f.applied); };
  const Json out = Parse(f.Call("POST", "/v1/operator/policy/reload", kReason));
  CHECK(out["changed"] == true);
  CHECK(f.applied);
  CHECK(Json::parse(f.audit.records[0])["new_digest"] == "sha256:bb");
  Fixture bad;
  bad.policy = MakeError(Code::kConfig, "policy.toml:3: unknown key");
  const Response response = bad.Call("POST", "/v1/operator/policy/reload", kReason);
  CHECK(response.status == 422);
  CHECK(Parse(response)["detail"] == "policy.toml:3: unknown key");
  CHECK(bad.Phases() == "policy.reload:failed");
  CHECK_FALSE(bad.applied);
}

TEST_CASE("an enrollment token is shown once and kept as a hash, in the store and in the trail") {
  Fixture f;
  const Response response =
      f.Call("POST", "/v1/operator/enrollment-tokens", R"({"reason":"new machine","ttl_s":3600})");
  REQUIRE(response.status == 200);
  const std::string token = Parse(response)["token"];
  CHECK(Parse(response)["expires_at"] == kNowMs / 1000 + 3600);
  REQUIRE(f.store.tokens.size() == 1);
  CHECK(f.store.tokens.begin()->first == enrollment::EnrollmentTokenHash(token));
  for (const std::string& record : f.audit.records) CHECK(record.find(token) == std::string::npos);
  for (const char* body : {R"({"reason":"r"})", R"({"reason":"r","ttl_s":59})", R"({"reason":"r","ttl_s":-1})",
                           R"({"reason":"r","ttl_s":2592001})", R"({"reason":"r","ttl_s":"1h"})"}) {
    CHECK(f.Call("POST", "/v1/operator/enrollment-tokens", body).status == 400);
  }
}

TEST_CASE("a revocation is recorded and stored, and what is no id is refused") {
  Fixture f;
  const Response response =
      f.Call("POST", "/v1/operator/revocations", R"({"reason":"ban","kind":"device","value":"abcd_-12","ttl_s":60})");
  REQUIRE(response.status == 200);
  REQUIRE(f.store.revocations.size() == 1);
  CHECK(f.store.revocations[0].kind == "device");
  CHECK(f.store.revocations[0].value == "abcd_-12");
  CHECK(f.store.revocations[0].until == static_cast<std::int64_t>(kNowMs / 1000 + 60));
  CHECK(f.audit.records.back().find("abcd_-12") != std::string::npos);
  for (const char* body :
       {R"({"kind":"device","value":"abcd","ttl_s":60})", R"({"reason":"r","kind":"host","value":"abcd","ttl_s":60})",
        R"({"reason":"r","kind":"token","value":"a b","ttl_s":60})",
        R"({"reason":"r","kind":"token","value":"","ttl_s":60})",
        R"({"reason":"r","kind":"token","value":"abcd","ttl_s":0})",
        R"({"reason":"r","kind":"token","value":"abcd"})"}) {
    CHECK(f.Call("POST", "/v1/operator/revocations", body).status == 400);
  }
  CHECK(f.store.revocations.size() == 1);
}

TEST_CASE("only the operator socket and its permitted users are served") {
  Fixture f;
  Request request;
  request.method = "GET";
  request.path = "/v1/operator/hosts";
  request.listener = Listener::kNetwork;
  CHECK(f.routes.Handle(request).status == 403);
  request.listener = Listener::kOperator;
  request.peer_uid = 12345;
  CHECK(f.routes.Handle(request).status == 403);
  request.peer_gids = {12345, 778};
  CHECK(f.routes.Handle(request).status == 403);
  CHECK(f.store.reads == 0);
  CHECK(f.audit.records.empty());
  request.peer_gids = {12345, 777};
  CHECK(f.routes.Handle(request).status == 200);
  CHECK(Json::parse(f.audit.records[0])["operator"] == "uid:12345");
  for (const char* path : {"/v1/operator/", "/v1/operator/nothing", "/v1/operator/hosts/10000000/nothing", "/other",
                           "/v1/operator/hosts/a/b/c/d"}) {
    CHECK(f.Call("GET", path).status == 404);
    CHECK(f.Call("DELETE", path).status == 404);
  }
}

TEST_CASE("the routes hand each request to the runner and answer once") {
  Fixture f;
  std::vector<Route> routes = f.routes.Routes();
  REQUIRE(routes.size() == 2);
  int answers = 0;
  for (const Route& route : routes) {
    CHECK(route.listener == Listener::kOperator);
    CHECK(route.path == "/v1/operator/*");
  }
  Request request;
  request.method = "GET";
  request.path = "/v1/operator/status";
  request.listener = Listener::kOperator;
  routes[0].handler(request, [&](Response response) { answers += response.status == 200 ? 1 : 100; });
  CHECK(answers == 1);
}

}  // namespace
}  // namespace assay::server
