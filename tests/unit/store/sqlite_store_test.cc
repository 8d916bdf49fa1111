// SPDX-License-Identifier: Apache-2.0
#include "verifier/store/sqlite_store.h"

#include <doctest/doctest.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/support/temp_dir.h"

namespace assay::store {
namespace {

Digest Id(std::uint8_t seed) {
  Digest id{};
  id.fill(seed);
  return id;
}
HostRow Host(std::uint8_t seed) {
  return {.host_id = Id(seed),
          .label = "rack " + std::to_string(seed),
          .ek_class = EkClass::kChain,
          .weak_device_id = true,
          .ek_spki_digest = Id(0xEE),
          .enrolled_at = 1000,
          .generation = 0,
          .reset_accepted = false,
          .state = "active",
          .replaced_by = std::nullopt};
}
AikRow Aik(std::uint8_t attester, std::uint8_t host) {
  return {.attester = Id(attester),
          .host_id = Id(host),
          .generation = 0,
          .scheme = SignatureScheme::kEcdsaP256Sha256,
          .public_area = Buffer(90, attester),
          .certificate = Buffer(700, 0x30),
          .not_after = 5000};
}
VerdictRow Verdict(std::uint8_t host, std::uint64_t sequence) {
  VerdictRow row{.host_id = Id(host),
                 .audit_sequence = sequence,
                 .at_ms = 77,
                 .outcome = "judged",
                 .tier = Tier::kWarning,
                 .reasons_json = "[]",
                 .clock = {}};
  row.clock = {.host_id = Id(host),
               .reset_count = 3,
               .restart_count = 1,
               .clock_ms = 1000 + sequence,
               .audit_sequence = sequence,
               .runtime_index = 4,
               .pcr14 = Id(0x14)};
  return row;
}
std::unique_ptr<SqliteStore> Open(const std::string& path) {
  auto store = SqliteStore::Open({.path = path});
  REQUIRE_MESSAGE(store.ok(), (store.ok() ? std::string() : store.error().ToString()));
  return std::move(store).value();
}
void Shell(const std::string& path, const std::string& sql) {
  sqlite3* db = nullptr;
  REQUIRE(sqlite3_open(path.c_str(), &db) == SQLITE_OK);
  CHECK(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_close(db);
}

TEST_CASE("what was stored is there after the store is opened again") {
  const test::TempDir dir;
  {
    auto store = Open(dir / "store.db");
    CHECK(store->PutEnrollment(Host(1), Aik(11, 1), std::nullopt, 1000).value() == 1);
    CHECK(store->PutVerdicts({Verdict(1, 9)}).ok());
  }
  auto store = Open(dir / "store.db");
  const auto host = store->FindHost(Id(1)).value();
  REQUIRE(host.has_value());
  CHECK(host->label == "rack 1");
  CHECK(host->generation == 1);
  CHECK(host->weak_device_id);
  CHECK(host->ek_spki_digest == Id(0xEE));
  CHECK_FALSE(host->replaced_by.has_value());
  const auto aik = store->FindAik(Id(11)).value();
  REQUIRE(aik.has_value());
  CHECK(aik->host_id == Id(1));
  CHECK(aik->scheme == SignatureScheme::kEcdsaP256Sha256);
  CHECK(aik->public_area == Buffer(90, 11));
  CHECK(aik->certificate == Buffer(700, 0x30));
  CHECK(aik->not_after == 5000);
  const auto verdicts = store->Verdicts(Id(1), 10).value();
  REQUIRE(verdicts.size() == 1);
  CHECK(verdicts[0].tier == Tier::kWarning);
  CHECK(verdicts[0].clock.clock_ms == 1009);
  CHECK(verdicts[0].clock.pcr14 == Id(0x14));
  CHECK(store->AuditMark().value() == 9);
  CHECK_FALSE(store->FindAik(Id(12)).value().has_value());
}

TEST_CASE("the file and its companions are private to the owner") {
  const test::TempDir dir;
  const mode_t old = ::umask(0);
  auto store = Open(dir / "store.db");
  ::umask(old);
  CHECK(store->PutEnrollment(Host(1), Aik(11, 1), std::nullopt, 1000).ok());
  for (const auto& entry : std::filesystem::directory_iterator(dir.path())) {
    struct stat info {};
    REQUIRE(::stat(entry.path().c_str(), &info) == 0);
    INFO(entry.path().string());
    CHECK((info.st_mode & 0777) == 0600);
  }
}

TEST_CASE("a file that is open to others, a symlink, a directory and another program's file are refused") {
  const test::TempDir dir;
  std::ofstream(dir / "open.db").close();
  REQUIRE(::chmod((dir / "open.db").c_str(), 0644) == 0);
  CHECK(SqliteStore::Open({.path = dir / "open.db"}).error().code == Code::kDenied);
  Open(dir / "real.db").reset();
  std::filesystem::create_symlink(dir / "real.db", dir / "link.db");
  CHECK(SqliteStore::Open({.path = dir / "link.db"}).error().code == Code::kIo);
  std::filesystem::create_directory(dir / "dir.db");
  CHECK_FALSE(SqliteStore::Open({.path = dir / "dir.db"}).ok());
  std::ofstream(dir / "text.db") << std::string(4096, 'x');
  REQUIRE(::chmod((dir / "text.db").c_str(), 0600) == 0);
  CHECK(SqliteStore::Open({.path = dir / "text.db"}).error().code == Code::kMalformed);
  std::ofstream(dir / "other.db").close();
  REQUIRE(::chmod((dir / "other.db").c_str(), 0600) == 0);
  Shell(dir / "other.db", "CREATE TABLE recipes(name TEXT)");
  CHECK(SqliteStore::Open({.path = dir / "other.db"}).error().code == Code::kMalformed);
  CHECK(SqliteStore::Open({.path = dir / "missing/store.db"}).error().code == Code::kIo);
}

TEST_CASE("a newer schema is refused by its number and left as it is") {
  const test::TempDir dir;
  Open(dir / "store.db").reset();
  Shell(dir / "store.db", "INSERT INTO schema_version VALUES(7, 0)");
  for (int i = 0; i < 2; ++i) {
    const auto refused = SqliteStore::Open({.path = dir / "store.db"});
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code == Code::kUnsupported);
    CHECK(refused.error().detail.find("schema version 7") != std::string::npos);
  }
}

TEST_CASE("an enrollment draws the next generation, a renewal keeps it") {
  const test::TempDir dir;
  auto store = Open(dir / "store.db");
  CHECK(store->PutEnrollment(Host(1), Aik(11, 1), std::nullopt, 1).value() == 1);
  CHECK(store->PutEnrollment(Host(1), Aik(11, 1), std::nullopt, 1).value() == 1);
  CHECK(store->PutEnrollment(Host(1), Aik(12, 1), std::nullopt, 1).value() == 2);
  CHECK(store->FindAik(Id(11)).value()->generation == 1);
  CHECK(store->PutEnrollment(Host(1), Aik(11, 1), std::nullopt, 1).value() == 3);  // a retired key is enrolled anew
  CHECK(store->FindAik(Id(12)).value()->generation == 2);
  CHECK(store->FindHost(Id(1)).value()->generation == 3);
}

TEST_CASE("an AIK of another host is a conflict and changes nothing") {
  const test::TempDir dir;
  auto store = Open(dir / "store.db");
  CHECK(store->PutEnrollment(Host(1), Aik(11, 1), std::nullopt, 1).ok());
  CHECK(store->AddEnrollmentToken(Id(0x70), 100).ok());
  CHECK(store->PutEnrollment(Host(2), Aik(11, 2), Id(0x70), 1).error().code == Code::kConflict);
  CHECK_FALSE(store->FindHost(Id(2)).value().has_value());
  CHECK(store->FindAik(Id(11)).value()->host_id == Id(1));
  CHECK(store->PutEnrollment(Host(2), Aik(12, 2), Id(0x70), 1).ok());  // the token was not used up by the refusal
}

TEST_CASE("an enrollment token counts once, in time, and not when the enrollment fails") {
  const test::TempDir dir;
  auto store = Open(dir / "store.db");
  CHECK(store->AddEnrollmentToken(Id(0x70), 100).ok());
  CHECK(store->AddEnrollmentToken(Id(0x70), 200).error().code == Code::kConflict);
  CHECK(store->CheckEnrollmentToken(Id(0x71), 1).error().code == Code::kDenied);
  CHECK(store->CheckEnrollmentToken(Id(0x70), 100).error().code == Code::kDenied);
  CHECK(store->CheckEnrollmentToken(Id(0x70), 99).ok());
  CHECK(store->CheckEnrollmentToken(Id(0x70), 99).ok());  // asking uses nothing up
  CHECK(store->PutEnrollment(Host(1), Aik(11, 1), Id(0x71), 1).error().code == Code::kDenied);
  CHECK(store->PutEnrollment(Host(1), Aik(11, 1), Id(0x70), 100).error().code == Code::kDenied);
  CHECK_FALSE(store->FindHost(Id(1)).value().has_value());
  CHECK(store->PutEnrollment(Host(1), Aik(11, 1), Id(0x70), 99).ok());
  CHECK(store->CheckEnrollmentToken(Id(0x70), 99).error().code == Code::kDenied);
  CHECK(store->PutEnrollment(Host(2), Aik(12, 2), Id(0x70), 99).error().code == Code::kDenied);
}

TEST_CASE("of racing enrollments with one token exactly one passes") {
  const test::TempDir dir;
  auto store = Open(dir / "store.db");
  CHECK(store->AddEnrollmentToken(Id(0x70), 100).ok());
  std::atomic<int> passed{0};
  std::vector<std::thread> threads;
  for (std::uint8_t i = 1; i <= 12; ++i) {
    threads.emplace_back([&, i] {
      if (store->PutEnrollment(Host(i), Aik(static_cast<std::uint8_t>(100 + i), i), Id(0x70), 1).ok()) ++passed;
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(passed == 1);
  CHECK(store->ListHosts(std::nullopt, 100).value().size() == 1);
}

TEST_CASE("a replaced host takes no enrollment, and an enrollment keeps what the operator set") {
  const test::TempDir dir;
  auto store = Open(dir / "store.db");
  CHECK(store->SetResetAccepted(Id(1), true).error().code == Code::kNotFound);
  CHECK(store->ReplaceHost(Id(1), Id(2)).error().code == Code::kNotFound);
  CHECK(store->PutEnrollment(Host(1), Aik(11, 1), std::nullopt, 1).ok());
  CHECK(store->SetResetAccepted(Id(1), true).ok());
  CHECK(store->PutEnrollment(Host(1), Aik(12, 1), std::nullopt, 1).ok());
  CHECK(store->FindHost(Id(1)).value()->reset_accepted);
  CHECK(store->ReplaceHost(Id(1), Id(2)).ok());
  CHECK(store->FindHost(Id(1)).value()->replaced_by == Id(2));
  CHECK(store->PutEnrollment(Host(1), Aik(13, 1), std::nullopt, 1).error().code == Code::kConflict);
  CHECK(store->FindHost(Id(1)).value()->state == "replaced");
}

TEST_CASE("a forgotten host leaves its clock and nothing else") {
  const test::TempDir dir;
  auto store = Open(dir / "store.db");
  CHECK(store->PutEnrollment(Host(1), Aik(11, 1), std::nullopt, 1).ok());
  CHECK(store->PutVerdicts({Verdict(1, 5)}).ok());
  CHECK(store->ForgetHost(Id(1)).ok());
  CHECK(store->ForgetHost(Id(1)).error().code == Code::kNotFound);
  CHECK_FALSE(store->FindAik(Id(11)).value().has_value());
  CHECK(store->Verdicts(Id(1), 10).value().empty());
  CHECK(store->PutVerdicts({Verdict(1, 6)}).ok());  // was on its way
  CHECK(store->Verdicts(Id(1), 10).value().empty());
  const auto clocks = store->Clocks().value();
  REQUIRE(clocks.size() == 1);
  CHECK(clocks[0].audit_sequence == 6);
}

TEST_CASE("a clock follows the later record, and a refused attempt does not move it") {
  const test::TempDir dir;
  auto store = Open(dir / "store.db");
  CHECK(store->PutEnrollment(Host(1), Aik(11, 1), std::nullopt, 1).ok());
  CHECK(store->PutVerdicts({Verdict(1, 8), Verdict(1, 7)}).ok());
  CHECK(store->Clocks().value()[0].clock_ms == 1008);
  VerdictRow refused = Verdict(1, 9);
  refused.outcome = "replay";
  refused.clock.audit_sequence = 0;
  refused.clock.clock_ms = 1;
  CHECK(store->PutVerdicts({refused}).ok());
  CHECK(store->Clocks().value()[0].clock_ms == 1008);
  CHECK(store->AuditMark().value() == 9);
  CHECK(store->Verdicts(Id(1), 2).value()[0].outcome == "replay");
  CHECK(store->Verdicts(Id(1), 2).value()[1].audit_sequence == 8);
  ClockRow restored = Verdict(1, 20).clock;
  CHECK(store->PutClocks({restored}).ok());
  CHECK(store->Clocks().value()[0].clock_ms == 1020);
  CHECK(store->PutVerdicts({Verdict(1, 9)}).ok());  // the same record again: replaced, the mark and clock stay
  CHECK(store->Verdicts(Id(1), 10).value().size() == 3);
  CHECK(store->Clocks().value()[0].clock_ms == 1020);
}

TEST_CASE("a batch of verdicts is stored whole or not at all") {
  const test::TempDir dir;
  auto store = Open(dir / "store.db");
  CHECK(store->PutEnrollment(Host(1), Aik(11, 1), std::nullopt, 1).ok());
  VerdictRow wrong = Verdict(1, 2);
  wrong.clock.clock_ms = ~0ULL;
  CHECK(store->PutVerdicts({Verdict(1, 1), wrong}).error().code == Code::kLimit);
  CHECK(store->Verdicts(Id(1), 10).value().empty());
  CHECK(store->AuditMark().value() == 0);
  CHECK(store->Clocks().value().empty());
  CHECK(store->PutVerdicts({Verdict(1, 1)}).ok());
}

TEST_CASE("hosts are listed in pages by id") {
  const test::TempDir dir;
  auto store = Open(dir / "store.db");
  for (std::uint8_t i = 1; i <= 5; ++i)
    CHECK(store->PutEnrollment(Host(i), Aik(static_cast<std::uint8_t>(100 + i), i), std::nullopt, 1).ok());
  const auto first = store->ListHosts(std::nullopt, 2).value();
  REQUIRE(first.size() == 2);
  CHECK(first[1].host_id == Id(2));
  CHECK(store->ListHosts(Id(2), 10).value().size() == 3);
  CHECK(store->ListHosts(Id(5), 10).value().empty());
}

TEST_CASE("revocations run out, and the longer one of two stays") {
  const test::TempDir dir;
  auto store = Open(dir / "store.db");
  CHECK(store->AddRevocation({"token", "abc", 100}).ok());
  CHECK(store->AddRevocation({"token", "abc", 50}).ok());
  CHECK(store->AddRevocation({"host", "abc", 60}).ok());
  CHECK(store->Revocations(0).value().size() == 2);
  const auto later = store->Revocations(60).value();
  REQUIRE(later.size() == 1);
  CHECK(later[0].kind == "token");
  CHECK(later[0].until == 100);
  CHECK(store->Revocations(100).value().empty());
}

TEST_CASE("hot lookups use an index") {
  const test::TempDir dir;
  auto store = Open(dir / "store.db");
  for (const Sql sql : {Sql::kFindHost, Sql::kFindAik, Sql::kListHosts, Sql::kVerdicts, Sql::kUseToken, Sql::kFindMark,
                        Sql::kRevocations, Sql::kDeleteVerdicts}) {
    const std::string plan = store->QueryPlan(sql).value();
    INFO(SqlText(sql), " -> ", plan);
    CHECK(plan.find("SEARCH") != std::string::npos);
    CHECK(plan.find("SCAN") == std::string::npos);
    CHECK(plan.find("TEMP B-TREE") == std::string::npos);
  }
  CHECK(store->QueryPlan(Sql::kClocks).value().find("SCAN") != std::string::npos);  // the probe can say otherwise
}

TEST_CASE("readers and a writer on many threads see whole rows") {
  const test::TempDir dir;
  auto store = Open(dir / "store.db");
  CHECK(store->PutEnrollment(Host(1), Aik(11, 1), std::nullopt, 1).ok());
  std::atomic<bool> stop{false};
  std::atomic<int> faults{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < 12; ++i) {
    readers.emplace_back([&] {
      while (!stop) {
        const auto aik = store->FindAik(Id(11));
        if (!aik.ok() || !aik.value().has_value() || aik.value()->certificate.size() != 700) ++faults;
      }
    });
  }
  for (std::uint64_t i = 1; i <= 50; ++i) CHECK(store->PutVerdicts({Verdict(1, i)}).ok());
  stop = true;
  for (auto& reader : readers) reader.join();
  CHECK(faults == 0);
}

}  // namespace
}  // namespace assay::store
