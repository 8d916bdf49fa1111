// SPDX-License-Identifier: Apache-2.0
// assayctl's commands over the verifier's own routes, without a socket between them.
#include "verifier/ctl/commands.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/support/memory_store.h"
#include "tests/support/recording_audit.h"
#include "tests/support/temp_dir.h"
#include "verifier/audit/file_log.h"
#include "verifier/ctl/table.h"
#include "verifier/server/routes_operator.h"

namespace assay::ctl {
namespace {

class RoutesClient final : public OperatorClient {
 public:
  test::MemoryStore store;
  test::RecordingAudit audit;
  std::optional<Reply> canned;
  bool down = false;
  int calls = 0;

  Result<Reply> Call(const std::string& method, const std::string& path, const std::string& body) override {
    ++calls;
    if (down) return MakeError(Code::kUnavailable, "no socket");
    if (canned) return *canned;
    server::Request request;
    request.method = method;
    request.path = path.substr(0, path.find('?'));
    request.query = path.find('?') == std::string::npos ? "" : path.substr(path.find('?') + 1);
    request.body = ToBuffer(AsBytes(body));
    request.listener = server::Listener::kOperator;
    const server::Response response = routes_.Handle(request);
    return Reply{response.status, std::string(AsText(response.body))};
  }

 private:
  server::OperatorRoutes routes_{{.store = store,
                                  .audit = audit,
                                  .prepare_policy = []() -> Result<server::PreparedPolicy> {
                                    return server::PreparedPolicy{"sha256:aa", "sha256:bb", [] {}};
                                  },
                                  .accept_reset = nullptr,
                                  .host_changed = nullptr,
                                  .host_forgotten = nullptr,
                                  .status = nullptr,
                                  .operator_gid = {},
                                  .now_ms = [] { return std::uint64_t{1'790'000'000'000}; },
                                  .run = nullptr}};
};

store::HostRow Host(std::uint16_t number, std::string label = "box") {
  store::HostRow row;
  row.host_id[0] = static_cast<std::uint8_t>(number >> 8);
  row.host_id[1] = static_cast<std::uint8_t>(number);
  row.label = std::move(label);
  row.generation = 1;
  row.enrolled_at = 1'789'000'000;
  return row;
}

const Shown& Good(const Outcome<Shown>& outcome) {
  const auto* failure = std::get_if<Failure>(&outcome);
  const std::string why = failure == nullptr ? "" : failure->code + ": " + failure->detail;
  REQUIRE_MESSAGE(failure == nullptr, why);
  return std::get<Shown>(outcome);
}
const Failure& Bad(const Outcome<Shown>& outcome) {
  REQUIRE(std::holds_alternative<Failure>(outcome));
  return std::get<Failure>(outcome);
}

TEST_CASE("a list walks all pages") {
  RoutesClient client;
  for (std::uint16_t i = 0; i < 2500; ++i) {
    const store::HostRow row = Host(i);
    client.store.hosts[row.host_id] = row;
  }
  const Outcome<Shown> shown = HostsList(client);
  CHECK(Good(shown).json["hosts"].size() == 2500);
  CHECK(client.calls == 3);
  CHECK(Good(HostsList(*std::make_unique<RoutesClient>())).text == "no hosts are enrolled\n");
}

TEST_CASE("labels and reasons cannot move the cursor of a terminal") {
  RoutesClient client;
  const store::HostRow row = Host(0x1234, "evil\x1b[2J\xc2\x9b\xe2\x80\xae\n\xff name");
  client.store.hosts[row.host_id] = row;
  for (const std::string& text : {Good(HostsList(client)).text, Good(HostsShow(client, ToHex(row.host_id))).text}) {
    CHECK(text.find('\x1b') == std::string::npos);
    CHECK(text.find("\xc2\x9b") == std::string::npos);
    CHECK(text.find("\xe2\x80\xae") == std::string::npos);
  }
  CHECK(Clean("a\x1b\x7f\xc2\x9b\xe2\x80\xae\xe2\x81\xa6z\xc3\xa4\xf0\x9f\x8e\xae\xff\xc3") ==
        "a?????z\xc3\xa4\xf0\x9f\x8e\xae??");
}

TEST_CASE("explain shows reasons and fixes as lines") {
  RoutesClient client;
  const store::HostRow row = Host(0x1234);
  client.store.hosts[row.host_id] = row;
  store::VerdictRow verdict;
  verdict.host_id = row.host_id;
  verdict.at_ms = 1'790'000'000'000;
  verdict.outcome = "judged";
  verdict.tier = Tier::kContraindicated;
  verdict.reasons_json = R"([{"code":"pcr_mismatch","tier":"contraindicated","detail":"PCR 4 is x.","fix":"Boot y."}])";
  client.store.verdicts = {verdict};
  const Outcome<Shown> shown = HostsExplain(client, ToHex(row.host_id).substr(0, 8), 10);
  CHECK(Good(shown).text.find("  pcr_mismatch [contraindicated]: PCR 4 is x.\n    fix: Boot y.\n") !=
        std::string::npos);
  CHECK(Good(shown).json["verdicts"].size() == 1);
}

TEST_CASE("changes reach the verifier with their reason, and its refusals come back with code and exit status") {
  RoutesClient client;
  const store::HostRow row = Host(0x1234), other = Host(0x5678);
  client.store.hosts[row.host_id] = row;
  client.store.hosts[other.host_id] = other;
  const std::string id = ToHex(row.host_id);
  CHECK(Good(HostsAcceptReset(client, id, "cleared by hand")).exit == Exit::kDone);
  CHECK(client.store.hosts[row.host_id].reset_accepted);
  CHECK(client.audit.records.front().find("cleared by hand") != std::string::npos);
  CHECK(Bad(HostsAcceptReset(client, id, "")).code == "reason_required");
  CHECK(Bad(HostsAcceptReset(client, id, "")).exit == Exit::kRefused);
  CHECK(Good(HostsReplace(client, id, ToHex(other.host_id), "board")).exit == Exit::kDone);
  CHECK(client.store.hosts[row.host_id].state == "replaced");
  CHECK(Good(HostsForget(client, id, "gone")).exit == Exit::kDone);
  CHECK(Bad(HostsShow(client, id)).exit == Exit::kNotFound);
  CHECK(Good(PolicyReload(client, "new")).text.find("sha256:bb") != std::string::npos);
  const Shown token = Good(TokensCreate(client, 3600, "machine"));
  CHECK(token.text == token.json["token"].get<std::string>() + "\n");
  CHECK(Bad(TokensCreate(client, 1, "machine")).exit == Exit::kRefused);
  CHECK(Good(ShowStatus(client)).text.find("audit") != std::string::npos);
}

TEST_CASE("a host that cannot be one never becomes a path") {
  RoutesClient client;
  for (const char* host : {"", "1234", "../policy/reload", "1234567g", "12345678/forget",
                           "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0"}) {
    CHECK(Bad(HostsShow(client, host)).exit == Exit::kUsage);
    CHECK(Bad(HostsForget(client, host, "r")).exit == Exit::kUsage);
    CHECK(Bad(HostsReplace(client, "12345678", host, "r")).exit == Exit::kUsage);
  }
  CHECK(client.calls == 0);
}

TEST_CASE("a socket without a verifier, and one that speaks something else, are told apart") {
  RoutesClient client;
  client.down = true;
  CHECK(Bad(HostsList(client)).exit == Exit::kUnreachable);
  client.down = false;
  for (const char* body : {"", "<html>", "[]", "{\"hosts\":7}", "7"}) {
    client.canned = OperatorClient::Reply{200, body};
    CHECK(Bad(HostsList(client)).exit == Exit::kInternal);
    client.canned = OperatorClient::Reply{500, body};
    CHECK(Bad(HostsList(client)).exit == Exit::kInternal);
  }
  client.canned = OperatorClient::Reply{200, R"({"host":7,"verdicts":[7,{"reasons":7}],"summary":[]})"};
  CHECK(Good(HostsExplain(client, "12345678", 1)).exit == Exit::kDone);  // strange members are shown as "-"
}

TEST_CASE("durations are read whole") {
  CHECK(SecondsFromText("90s").value() == 90);
  CHECK(SecondsFromText("24h").value() == 86400);
  CHECK(SecondsFromText("7d").value() == 7 * 86400);
  for (const char* text : {"", "h", "0h", "-1h", "1", "1w", "1h ", "99999999999h", "1.5h"})
    CHECK_FALSE(SecondsFromText(text).ok());
}

TEST_CASE("a policy file is checked by the verifier's own parser") {
  std::string pattern = (std::filesystem::temp_directory_path() / "assay-ctl-XXXXXX").string();
  REQUIRE(mkdtemp(pattern.data()) != nullptr);
  const std::string path = pattern + "/policy.toml";
  std::ofstream(path) << "this is = not [a policy";
  CHECK(Bad(PolicyCheck(path)).exit == Exit::kCheckFailed);
  CHECK(Bad(PolicyCheck(path)).detail.find("policy.toml") != std::string::npos);
  CHECK_FALSE(std::holds_alternative<Shown>(PolicyCheck(pattern + "/none.toml")));
  std::filesystem::remove_all(pattern);
}

TEST_CASE("tail and export show verified records as they are, by range, and nothing behind a fault") {
  const test::TempDir dir;
  const std::string key = dir / "audit.key", trail = dir / "audit";
  audit::LogOptions options;
  options.directory = trail;
  auto log = audit::FileAuditLog::Open(std::move(options), audit::AuditKeys::Create(key).value()).value();
  for (int i = 3; i < 9; ++i)
    REQUIRE(*log->AppendAndWait("{\"type\":\"test\",\"n\":" + std::to_string(i) + "}") ==
            static_cast<std::uint64_t>(i));
  std::string out;
  const Sink sink = [&out](std::string_view line) { return out += line, true; };
  // Beside the running log.
  CHECK(Good(AuditExport({trail, key}, {4, 6}, sink)).json.is_null());
  const std::string line4 = "{\"seq\":4,\"segment\":1,\"rec\":{\"type\":\"test\",\"n\":4}}\n";
  CHECK(out.starts_with(line4));
  CHECK(std::count(out.begin(), out.end(), '\n') == 3);
  const Shown tail = Good(AuditTail({trail, key}, 2));
  CHECK(tail.json["records"].size() == 2);
  CHECK(tail.json["records"][1]["rec"]["n"] == 8);
  CHECK(tail.text.starts_with("{\"seq\":7,"));
  CHECK(Bad(AuditExport({trail, key}, {6, 4}, sink)).exit == Exit::kUsage);
  CHECK(Bad(AuditExport({trail, key}, {1, 9}, [](std::string_view) { return false; })).code == "output_failed");
  CHECK(Bad(AuditTail({dir / "none", key}, 2)).exit == Exit::kNotFound);
  log.reset();
  const std::string segment = trail + "/" + audit::SegmentName(1);
  std::fstream file(segment, std::ios::in | std::ios::out | std::ios::binary);
  std::string content((std::istreambuf_iterator<char>(file)), {});
  file.clear();
  file.seekp(static_cast<std::streamoff>(content.find("\"n\":6") + 4));
  file.put('7');
  file.close();
  out.clear();
  const Failure damaged = Bad(AuditExport({trail, key}, {}, sink));
  CHECK(damaged.exit == Exit::kCheckFailed);
  CHECK(damaged.detail.find("altered in segment 1, record 6") != std::string::npos);
  CHECK(std::count(out.begin(), out.end(), '\n') == 3);
  out.clear();
  CHECK(Good(AuditExport({trail, key}, {4, 5}, sink)).exit == Exit::kDone);  // in front of the damage
  CHECK(out.starts_with(line4));
  CHECK(Bad(AuditTail({trail, key}, 2)).code == "audit_damaged");
}

TEST_CASE("a trail verifies, and one flipped byte is located") {
  const test::TempDir dir;
  const std::string key = dir / "audit.key", trail = dir / "audit";
  {
    audit::LogOptions options;
    options.directory = trail;
    const auto log = audit::FileAuditLog::Open(std::move(options), audit::AuditKeys::Create(key).value()).value();
    for (int i = 0; i < 5; ++i) REQUIRE(log->AppendAndWait("{\"type\":\"test\",\"n\":" + std::to_string(i) + "}").ok());
  }
  const Shown good = Good(AuditVerify(trail, key));
  CHECK(good.exit == Exit::kDone);
  CHECK(good.json["ok"] == true);
  CHECK(good.json["records"] == 5);
  std::string segment;
  for (const auto& entry : std::filesystem::directory_iterator(trail)) {
    if (entry.is_regular_file() && entry.file_size() > 100) segment = entry.path();
  }
  std::fstream file(segment, std::ios::in | std::ios::out | std::ios::binary);
  std::string content((std::istreambuf_iterator<char>(file)), {});
  const std::size_t at = content.find("\"n\":3");
  REQUIRE(at != std::string::npos);
  file.clear();
  file.seekp(static_cast<std::streamoff>(at + 4));
  file.put('4');
  file.close();
  const Shown bad = Good(AuditVerify(trail, key));
  CHECK(bad.exit == Exit::kCheckFailed);
  CHECK(bad.json["ok"] == false);
  CHECK_FALSE(bad.json["faults"].empty());
  CHECK(Bad(AuditVerify(trail, dir / "none.key")).code == "audit_not_judged");
  CHECK(Bad(AuditVerify(dir / "none", key)).code == "audit_not_judged");
}

}  // namespace
}  // namespace assay::ctl
