// SPDX-License-Identifier: Apache-2.0
#include "verifier/authz/authority.h"

#include <doctest/doctest.h>

#include <atomic>
#include <functional>
#include <thread>

namespace assay::authz {
namespace {

constexpr std::int64_t kNow = 1'780'000'000;

class Sink final : public DecisionSink {
 public:
  Status Record(const Query&, std::string_view, const Decision&, std::int64_t) override {
    ++records;
    if (broken) return MakeError(Code::kIo, "the trail is full");
    return Ok();
  }
  std::atomic<std::size_t> records = 0;
  bool broken = false;
};

struct House {
  SystemZones zones;
  Sink sink;
  Authority authority{zones, sink};

  std::string Add(const std::string& id, const std::string& tenant = "") {
    Principal principal;
    principal.id = id;
    principal.tenant = tenant;
    const auto created = authority.Create(std::move(principal), kNow);
    REQUIRE(std::holds_alternative<std::string>(created));
    return *std::get_if<std::string>(&created);
  }
  Reason Ask(const std::string& principal, std::int64_t now = kNow, const std::string& arguments = "") {
    Query query;
    query.principal = principal;
    query.action = "use";
    query.resource = "k";
    if (!arguments.empty()) query.arguments = arguments;
    return authority.Authorize(query, now).reason;
  }
};

void Race(std::size_t callers, const std::function<void()>& call) {
  std::atomic<bool> go = false;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < callers; ++i) {
    threads.emplace_back([&] {
      while (!go) std::this_thread::yield();
      call();
    });
  }
  go = true;
  for (auto& thread : threads) thread.join();
}

ApprovalRequest Wanted(const std::string& id) {
  ApprovalRequest request;
  request.id = id;
  request.principal = request.requester = "x";
  request.action = "use";
  request.resource = "k";
  request.approvers = {"a", "b", "x"};
  request.expires_at = kNow + 60;
  return request;
}

TEST_CASE("an approval is used once, whatever races for it") {
  House house;
  for (const char* id : {"x", "a"}) house.Add(id);
  REQUIRE(
      house.authority.Permit("x", R"([{"resource":"k","actions":["use"],"constraints":{"approval_required":true}}])") ==
      Reason::kNone);
  for (int round = 0; round < 10; ++round) {
    const std::string id = "ap" + std::to_string(round);
    REQUIRE(house.authority.RequestApproval(Wanted(id), kNow) == Reason::kNone);
    REQUIRE(std::get<ApprovalStatus>(house.authority.Approve(id, "a", kNow)) == ApprovalStatus::kApproved);
    std::atomic<int> allowed = 0;
    Race(32, [&] { allowed += house.Ask("x") == Reason::kNone ? 1 : 0; });
    CHECK(allowed == 1);
  }
  CHECK(house.sink.records == 320);
}

TEST_CASE("the calls of an hour are never exceeded by a race, and come back after the hour") {
  House house;
  house.Add("x");
  REQUIRE(house.authority.Permit("x", R"([{"resource":"k","actions":["use"],"constraints":{"calls_per_hour":10}}])") ==
          Reason::kNone);
  std::atomic<int> allowed = 0;
  Race(32, [&] { allowed += house.Ask("x") == Reason::kNone ? 1 : 0; });
  CHECK(allowed == 10);
  CHECK(house.Ask("x", kNow + 3599) == Reason::kRateLimited);
  CHECK(house.Ask("x", kNow + 3600) == Reason::kNone);
}

TEST_CASE("after a revocation returned, none of 64 concurrent callers is allowed") {
  House house;
  house.Add("r");
  house.Add("x");
  REQUIRE(house.authority.Permit("r", R"([{"resource":"k","actions":["use"]}])") == Reason::kNone);
  REQUIRE(std::holds_alternative<Link>(
      house.authority.Delegate({"d", "r", "x", kNow + 60, 3}, R"([{"resource":"k","actions":["use"]}])", kNow)));
  REQUIRE(house.Ask("x") == Reason::kNone);
  std::atomic<bool> revoked = false;
  std::atomic<int> late = 0, refused = 0;
  std::thread revoker([&] {
    (void)house.authority.RevokeDelegation("d", kNow);
    revoked = true;
  });
  Race(64, [&] {
    for (int i = 0; i < 20; ++i) {
      const bool before = revoked;
      const bool allowed = house.Ask("x") == Reason::kNone;
      late += before && allowed ? 1 : 0;
      refused += allowed ? 0 : 1;
    }
  });
  revoker.join();
  CHECK(late == 0);
  CHECK(house.Ask("x") == Reason::kDelegationRevoked);
}

TEST_CASE("a decision that cannot be recorded is a denial") {
  House house;
  house.Add("x");
  REQUIRE(house.authority.Permit("x", R"([{"resource":"k","actions":["use"]}])") == Reason::kNone);
  house.sink.broken = true;
  CHECK(house.Ask("x") == Reason::kAuditUnavailable);
}

TEST_CASE("an approver must be named, alive and not the requester") {
  House house;
  for (const char* id : {"x", "a", "b", "z"}) house.Add(id);
  REQUIRE(house.authority.RequestApproval(Wanted("ap"), kNow) == Reason::kNone);
  CHECK(house.authority.RequestApproval(Wanted("ap"), kNow) == Reason::kAlreadyExists);
  CHECK(std::get<Reason>(house.authority.Approve("none", "a", kNow)) == Reason::kApprovalNotFound);
  CHECK(std::get<Reason>(house.authority.Approve("ap", "x", kNow)) == Reason::kApprovalSelf);
  CHECK(std::get<Reason>(house.authority.Approve("ap", "z", kNow)) == Reason::kNotAnApprover);
  REQUIRE(house.authority.SetStatus("a", PrincipalStatus::kRevoked) == Reason::kNone);
  CHECK(std::get<Reason>(house.authority.Approve("ap", "a", kNow)) == Reason::kNotAnApprover);
  CHECK(std::get<Reason>(house.authority.Approve("ap", "b", kNow + 60)) == Reason::kApprovalExpired);
  ApprovalRequest alone = Wanted("alone");
  alone.approvers = {"x", "b", "b"};
  alone.need = 2;
  CHECK(house.authority.RequestApproval(alone, kNow) == Reason::kInvalidApproval);
}

TEST_CASE("the pending list goes through all requests page by page, each once") {
  House house;
  for (const char* id : {"x", "a"}) house.Add(id);
  for (int i = 0; i < 25; ++i)
    REQUIRE(house.authority.RequestApproval(Wanted("ap" + std::to_string(i)), kNow) == Reason::kNone);
  REQUIRE(std::holds_alternative<ApprovalStatus>(house.authority.Approve("ap3", "a", kNow)));
  std::vector<std::string> seen;
  std::string cursor;
  do {
    const auto page = house.authority.approvals().Pending(cursor, 10, kNow);
    REQUIRE(page);
    for (const auto& approval : page->approvals) seen.push_back(approval.request.id);
    cursor = page->next;
  } while (!cursor.empty());
  CHECK(seen.size() == 24);
  CHECK(seen.front() == "ap0");
  CHECK(seen.back() == "ap24");
  CHECK(!house.authority.approvals().Pending("?", 10, kNow));
  CHECK(house.authority.approvals().Pending("", 10, kNow + 60)->approvals.empty());
}

TEST_CASE("expiry, tenants and token overlap are judged on every path") {
  House house;
  Principal mortal;
  mortal.id = "m";
  mortal.expires_at = kNow + 10;
  const auto token = house.authority.Create(mortal, kNow);
  house.Add("s1", "studio-1");
  house.Add("s2", "studio-2");
  CHECK(house.Ask("m") == Reason::kNoPermission);
  CHECK(house.Ask("m", kNow + 10) == Reason::kPrincipalExpired);
  Query query;
  query.token = std::get<std::string>(token);
  query.action = "use";
  query.resource = "k";
  CHECK(house.authority.Authorize(query, kNow + 10).reason == Reason::kPrincipalExpired);
  REQUIRE(std::holds_alternative<std::string>(house.authority.Rotate("m", kNow, 5)));
  CHECK(house.authority.Authorize(query, kNow + 4).reason == Reason::kNoPermission);
  CHECK(house.authority.Authorize(query, kNow + 5).reason == Reason::kInvalidToken);
  REQUIRE(house.authority.Permit("s1", R"([{"resource":"k","actions":["use"]}])") == Reason::kNone);
  const auto across =
      house.authority.Delegate({"d", "s1", "s2", kNow + 60, 3}, R"([{"resource":"k","actions":["use"]}])", kNow);
  CHECK(std::get<Reason>(across) == Reason::kTargetNotFound);
}

TEST_CASE("a denial narrowed by arguments or address is not dodged by saying more or less") {
  House house;
  house.Add("x");
  REQUIRE(
      house.authority.Permit(
          "x",
          R"([{"resource":"k","actions":["use"]},{"resource":"k","actions":["use"],"effect":"deny","constraints":{"argument_patterns":["secret.*"]}}])") ==
      Reason::kNone);
  CHECK(house.Ask("x", kNow, R"({"a":"plain"})") == Reason::kNone);
  CHECK(house.Ask("x", kNow, R"({"a":"plain","b":["secret1"]})") == Reason::kExplicitDeny);
  CHECK(house.Ask("x") == Reason::kExplicitDeny);
  CHECK(house.Ask("x", kNow, R"({"a":"plain","b":1})") == Reason::kExplicitDeny);
  CHECK(house.Ask("x", kNow, "{broken") == Reason::kArgumentNotAllowed);
}

TEST_CASE("malformed rules are refused with the code of the part that is wrong") {
  House house;
  house.Add("x");
  const auto permit = [&](const char* rules) { return house.authority.Permit("x", rules); };
  CHECK(permit("[]") == Reason::kEmptyPermissions);
  CHECK(permit("{}") == Reason::kInvalidPermission);
  CHECK(permit(R"([{"resource":"a*","actions":["b"]}])") == Reason::kInvalidPattern);
  CHECK(permit(R"([{"resource":"","actions":["b"]}])") == Reason::kInvalidPattern);
  CHECK(permit(R"([{"resource":"a","actions":[]}])") == Reason::kInvalidPermission);
  CHECK(permit(R"([{"resource":"a","actions":["re*"]}])") == Reason::kInvalidPermission);
  CHECK(permit(R"([{"resource":"a","actions":["b"],"effect":"maybe"}])") == Reason::kInvalidPermission);
  CHECK(permit(R"([{"resource":"a","actions":["b"],"other":1}])") == Reason::kInvalidPermission);
  CHECK(permit(R"([{"resource":"a","actions":["b"],"constraints":{"calls_per_hour":-1}}])") ==
        Reason::kInvalidConstraint);
  CHECK(permit(R"([{"resource":"a","actions":["b"],"constraints":{"argument_patterns":["("]}}])") ==
        Reason::kInvalidConstraint);
  CHECK(permit(R"([{"resource":"a","actions":["b"],"effect":"deny","constraints":{"approval_required":true}}])") ==
        Reason::kInvalidConstraint);
  CHECK(permit(R"([{"resource":"/a/**","actions":["b"],"language":"path"}])") == Reason::kNone);
}

TEST_CASE("a revocation takes what rested on the link alone, as its impact foretold") {
  House house;
  for (const char* id : {"r", "q", "m", "l"}) house.Add(id);
  const char* use = R"([{"resource":"k:*","actions":["use"]}])";
  const auto link = [&](const char* id, const char* from, const char* to) {
    return std::holds_alternative<Link>(house.authority.Delegate({id, from, to, kNow + 60, 5}, use, kNow));
  };
  REQUIRE(house.authority.Permit("r", use) == Reason::kNone);
  REQUIRE(house.authority.Permit("q", use) == Reason::kNone);
  REQUIRE((link("rm", "r", "m") && link("ml", "m", "l") && link("ql", "q", "l")));
  auto effective = house.authority.EffectivePermissions("l", kNow);
  REQUIRE(effective.size() == 2);
  CHECK(effective[0].link == "ml");
  CHECK(effective[0].whole);
  const auto impact = std::get<std::vector<ImpactEntry>>(house.authority.Impact("rm", kNow));
  REQUIRE(impact.size() == 2);
  CHECK((impact[0].link == "rm" && impact[0].principal == "m" && !impact[0].keeps_another_path));
  CHECK((impact[1].link == "ml" && impact[1].principal == "l" && impact[1].keeps_another_path));
  CHECK(std::get<std::vector<std::string>>(house.authority.RevokeDelegation("rm", kNow)) ==
        std::vector<std::string>{"rm", "ml"});
  effective = house.authority.EffectivePermissions("l", kNow);
  REQUIRE(effective.size() == 1);
  CHECK(effective[0].link == "ql");
  // Given again, the right does not bring back what fell.
  REQUIRE(link("rm2", "r", "m"));
  REQUIRE(std::holds_alternative<std::vector<std::string>>(house.authority.RevokeDelegation("ql", kNow)));
  CHECK(house.authority.EffectivePermissions("l", kNow).empty());
  CHECK(std::get<Reason>(house.authority.RevokeDelegation("none", kNow)) == Reason::kDelegationNotFound);
}

TEST_CASE("a matrix answers each cell as a simulation would, up to its cap") {
  House house;
  house.Add("x");
  REQUIRE(house.authority.Permit("x", R"([{"resource":"k","actions":["use"]}])") == Reason::kNone);
  Query base;
  base.principal = "x";
  const auto cells = house.authority.Matrix(base, {"use", "own"}, {"k", "z"}, kNow);
  REQUIRE(cells);
  REQUIRE(cells->size() == 4);
  CHECK((*cells)[0].allowed());
  for (std::size_t i = 1; i < 4; ++i) CHECK((*cells)[i].reason == Reason::kNoPermission);
  CHECK(house.sink.records == 0);
  CHECK(!house.authority.Matrix(base, std::vector<std::string>(41, "use"), std::vector<std::string>(49, "k"), kNow));
}

TEST_CASE("named zones follow their daylight saving rules, also past the file's last change") {
  SystemZones zones;
  const auto berlin = zones.Find("Europe/Berlin");
  if (berlin == nullptr) {
    MESSAGE("skipped: no zone files here");
    return;
  }
  CHECK(berlin->OffsetAt(1'769'000'000) == 3600);  // January 2026
  CHECK(berlin->OffsetAt(1'780'000'000) == 7200);  // May 2026
  CHECK(berlin->OffsetAt(2'531'955'599) == 3600);  // 2050-03-27 00:59:59Z, one second before the switch
  CHECK(berlin->OffsetAt(2'531'955'600) == 7200);
  CHECK(zones.Find("../passwd") == nullptr);
  CHECK(zones.Find("/etc/passwd") == nullptr);
  CHECK(zones.Find("") == nullptr);
}

}  // namespace
}  // namespace assay::authz
