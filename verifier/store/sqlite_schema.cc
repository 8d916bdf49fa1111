// SPDX-License-Identifier: Apache-2.0
// The schema, its migrations and the text of every statement. A migration is never changed once released: a new one
// is appended and kSchemaVersion raised.
#include <array>

#include "verifier/store/sqlite_connection.h"

namespace assay::store {
namespace {

constexpr std::int64_t kApplicationId = 0x41535359;  // "ASSY", in the file's header

constexpr const char* kMigrations[] = {
    // 1. Clocks have no foreign key: they outlive the host, so that a forgotten one can't come back with old counters.
    R"(
CREATE TABLE schema_version(version INTEGER PRIMARY KEY, applied_at INTEGER NOT NULL) STRICT;
CREATE TABLE hosts(
  host_id BLOB PRIMARY KEY CHECK(length(host_id) = 32), label TEXT NOT NULL, ek_class INTEGER NOT NULL CHECK(ek_class IN (0, 1)),
  weak_device_id INTEGER NOT NULL, ek_spki BLOB NOT NULL CHECK(length(ek_spki) = 32), enrolled_at INTEGER NOT NULL,
  generation INTEGER NOT NULL, reset_accepted INTEGER NOT NULL, state TEXT NOT NULL,
  replaced_by BLOB CHECK(replaced_by IS NULL OR length(replaced_by) = 32)) STRICT, WITHOUT ROWID;
CREATE TABLE aiks(
  attester BLOB NOT NULL UNIQUE CHECK(length(attester) = 32), host_id BLOB NOT NULL REFERENCES hosts(host_id) ON DELETE CASCADE,
  generation INTEGER NOT NULL, scheme INTEGER NOT NULL CHECK(scheme BETWEEN 0 AND 3), public_area BLOB NOT NULL,
  certificate BLOB NOT NULL, not_after INTEGER NOT NULL) STRICT;
CREATE INDEX aiks_by_host ON aiks(host_id);
CREATE TABLE clocks(
  host_id BLOB PRIMARY KEY CHECK(length(host_id) = 32), reset_count INTEGER NOT NULL, restart_count INTEGER NOT NULL,
  clock_ms INTEGER NOT NULL, audit_sequence INTEGER NOT NULL, runtime_index INTEGER NOT NULL,
  pcr14 BLOB NOT NULL CHECK(length(pcr14) = 32)) STRICT, WITHOUT ROWID;
CREATE TABLE verdicts(
  host_id BLOB NOT NULL CHECK(length(host_id) = 32), audit_sequence INTEGER NOT NULL, at_ms INTEGER NOT NULL,
  outcome TEXT NOT NULL, tier INTEGER NOT NULL, reasons TEXT NOT NULL, reset_count INTEGER NOT NULL,
  restart_count INTEGER NOT NULL, clock_ms INTEGER NOT NULL, clock_sequence INTEGER NOT NULL,
  runtime_index INTEGER NOT NULL, pcr14 BLOB NOT NULL CHECK(length(pcr14) = 32),
  PRIMARY KEY(host_id, audit_sequence)) STRICT;
CREATE TABLE marks(name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE enrollment_tokens(
  token_hash BLOB PRIMARY KEY CHECK(length(token_hash) = 32), expires_at INTEGER NOT NULL, used_at INTEGER,
  used_by BLOB) STRICT, WITHOUT ROWID;
CREATE TABLE revocations(
  kind TEXT NOT NULL, value TEXT NOT NULL, until INTEGER NOT NULL, PRIMARY KEY(kind, value)) STRICT, WITHOUT ROWID;
CREATE INDEX revocations_by_until ON revocations(until);
)",
};
static_assert(std::size(kMigrations) == kSchemaVersion);

Status RefuseForeign(Connection& connection, const std::string& path) {
  ASSAY_TRY(const std::int64_t application, connection.ReadInt("PRAGMA application_id"));
  ASSAY_TRY(const std::int64_t tables, connection.ReadInt("SELECT count(*) FROM sqlite_schema"));
  if (application == kApplicationId || (application == 0 && tables == 0)) return Ok();
  return MakeError(Code::kMalformed, "store: " + path + " is a database of another program: name another file");
}

}  // namespace

Status Migrate(Connection& connection, const std::string& path) {
  ASSAY_TRY(Transaction transaction, Transaction::Begin(connection));
  ASSAY_CHECK_OK(RefuseForeign(connection, path));
  ASSAY_TRY(const std::int64_t tables,
            connection.ReadInt("SELECT count(*) FROM sqlite_schema WHERE name = 'schema_version'"));
  std::int64_t version = 0;
  if (tables != 0) { ASSAY_TRY(version, connection.ReadInt("SELECT coalesce(max(version), 0) FROM schema_version")); }
  if (version > kSchemaVersion || version < 0) {
    return MakeError(Code::kUnsupported, "store: " + path + " has schema version " + std::to_string(version) +
                                             ", this build knows up to " + std::to_string(kSchemaVersion) +
                                             ": run the newer assay-verifier or restore the older store");
  }
  for (; version < kSchemaVersion; ++version) {
    ASSAY_CHECK_OK(connection.Execute(kMigrations[version]));
    const std::string record = "INSERT INTO schema_version VALUES(" + std::to_string(version + 1) + ", unixepoch())";
    ASSAY_CHECK_OK(connection.Execute(record.c_str()));
  }
  ASSAY_CHECK_OK(connection.Execute("PRAGMA application_id=1095979865"));
  static_assert(kApplicationId == 1095979865);
  return transaction.Commit();
}

const char* SqlText(Sql sql) noexcept {
  static constexpr std::array<const char*, static_cast<std::size_t>(Sql::kCount)> kText = {
      "BEGIN IMMEDIATE",
      "BEGIN",
      "COMMIT",
      "ROLLBACK",
      "SELECT host_id, label, ek_class, weak_device_id, ek_spki, enrolled_at, generation, reset_accepted, state, "
      "replaced_by FROM hosts WHERE host_id = ?1",
      "SELECT attester, host_id, generation, scheme, public_area, certificate, not_after FROM aiks WHERE attester = ?1",
      "SELECT host_id, label, ek_class, weak_device_id, ek_spki, enrolled_at, generation, reset_accepted, state, "
      "replaced_by FROM hosts "
      "WHERE host_id > ?1 ORDER BY host_id LIMIT ?2",
      "INSERT INTO hosts(host_id, label, ek_class, weak_device_id, ek_spki, enrolled_at, generation, reset_accepted, "
      "state, replaced_by) "
      "VALUES(?1, ?2, ?3, ?4, ?5, ?6, 1, ?7, ?8, NULL)",
      // What an operator sets (state, replaced_by, reset_accepted) and the first enrollment's time are not an enrollment's to change.
      "UPDATE hosts SET label = ?2, ek_class = ?3, weak_device_id = ?4, ek_spki = ?5, generation = ?6 WHERE host_id = "
      "?1",
      "INSERT INTO aiks(attester, host_id, generation, scheme, public_area, certificate, not_after) VALUES(?1, ?2, ?3, "
      "?4, ?5, ?6, ?7) "
      "ON CONFLICT(attester) DO UPDATE SET generation = excluded.generation, scheme = excluded.scheme, public_area = "
      "excluded.public_area, "
      "certificate = excluded.certificate, not_after = excluded.not_after WHERE host_id = excluded.host_id RETURNING "
      "generation",
      "UPDATE enrollment_tokens SET used_at = ?2, used_by = ?3 WHERE token_hash = ?1 AND used_at IS NULL AND "
      "expires_at > ?2 RETURNING 1",
      "UPDATE hosts SET reset_accepted = ?2 WHERE host_id = ?1 RETURNING 1",
      "UPDATE hosts SET state = 'replaced', replaced_by = ?2 WHERE host_id = ?1 RETURNING 1",
      "DELETE FROM hosts WHERE host_id = ?1 RETURNING 1",
      "DELETE FROM verdicts WHERE host_id = ?1",
      // A host forgotten in the meantime gets no verdict row back.
      "INSERT INTO verdicts(host_id, audit_sequence, at_ms, outcome, tier, reasons, reset_count, restart_count, "
      "clock_ms, clock_sequence, "
      "runtime_index, pcr14) SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12 WHERE EXISTS(SELECT 1 FROM hosts "
      "WHERE host_id = ?1) "
      "ON CONFLICT(host_id, audit_sequence) DO UPDATE SET at_ms = excluded.at_ms, outcome = excluded.outcome, tier = "
      "excluded.tier, "
      "reasons = excluded.reasons, reset_count = excluded.reset_count, restart_count = excluded.restart_count, "
      "clock_ms = excluded.clock_ms, "
      "clock_sequence = excluded.clock_sequence, runtime_index = excluded.runtime_index, pcr14 = excluded.pcr14",
      "INSERT INTO clocks(host_id, reset_count, restart_count, clock_ms, audit_sequence, runtime_index, pcr14) "
      "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7) "
      "ON CONFLICT(host_id) DO UPDATE SET reset_count = excluded.reset_count, restart_count = excluded.restart_count, "
      "clock_ms = excluded.clock_ms, "
      "audit_sequence = excluded.audit_sequence, runtime_index = excluded.runtime_index, pcr14 = excluded.pcr14 "
      "WHERE excluded.audit_sequence >= audit_sequence",
      "INSERT INTO marks(name, value) VALUES('audit', ?1) ON CONFLICT(name) DO UPDATE SET value = max(value, "
      "excluded.value)",
      "SELECT value FROM marks WHERE name = 'audit'",
      "SELECT host_id, audit_sequence, at_ms, outcome, tier, reasons, reset_count, restart_count, clock_ms, "
      "clock_sequence, runtime_index, pcr14 "
      "FROM verdicts WHERE host_id = ?1 ORDER BY audit_sequence DESC LIMIT ?2",
      "SELECT host_id, reset_count, restart_count, clock_ms, audit_sequence, runtime_index, pcr14 FROM clocks ORDER BY "
      "host_id",
      "SELECT 1 FROM enrollment_tokens WHERE token_hash = ?1 AND used_at IS NULL AND expires_at > ?2",
      "INSERT INTO enrollment_tokens(token_hash, expires_at) VALUES(?1, ?2)",
      "INSERT INTO revocations(kind, value, until) VALUES(?1, ?2, ?3) ON CONFLICT(kind, value) DO UPDATE SET until = "
      "max(until, excluded.until)",
      "SELECT kind, value, until FROM revocations WHERE until > ?1 ORDER BY until, kind, value",
  };
  return kText[static_cast<std::size_t>(sql)];
}

}  // namespace assay::store
