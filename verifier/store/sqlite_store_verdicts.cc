// SPDX-License-Identifier: Apache-2.0
// Verdicts, clocks and the mark of the audit trail.
#include <algorithm>
#include <limits>

#include "verifier/store/sqlite_store.h"

namespace assay::store {
namespace {

Status PutClock(Connection& connection, const Digest& host_id, const ClockRow& clock) {
  ASSAY_TRY(sqlite3_stmt* const statement, connection.Prepared(Sql::kPutClock));
  Query query(statement, connection.get());
  query.Blob(host_id)
      .Int(clock.reset_count)
      .Int(clock.restart_count)
      .Uint(clock.clock_ms)
      .Uint(clock.audit_sequence)
      .Uint(clock.runtime_index);
  return query.Blob(clock.pcr14).Run();
}

Status PutVerdict(Connection& connection, const VerdictRow& row) {
  ASSAY_TRY(sqlite3_stmt* const statement, connection.Prepared(Sql::kPutVerdict));
  Query query(statement, connection.get());
  query.Blob(row.host_id)
      .Uint(row.audit_sequence)
      .Int(row.at_ms)
      .Text(row.outcome)
      .Int(static_cast<std::int64_t>(row.tier))
      .Text(row.reasons_json);
  query.Int(row.clock.reset_count)
      .Int(row.clock.restart_count)
      .Uint(row.clock.clock_ms)
      .Uint(row.clock.audit_sequence)
      .Uint(row.clock.runtime_index);
  return query.Blob(row.clock.pcr14).Run();
}

ClockRow ReadClock(Query& row, int first) {
  return ClockRow{.host_id = {},
                  .reset_count = static_cast<std::uint32_t>(row.IntAt(first)),
                  .restart_count = static_cast<std::uint32_t>(row.IntAt(first + 1)),
                  .clock_ms = row.UintAt(first + 2),
                  .audit_sequence = row.UintAt(first + 3),
                  .runtime_index = row.UintAt(first + 4),
                  .pcr14 = row.DigestAt(first + 5)};
}

}  // namespace

Status SqliteStore::PutVerdicts(const std::vector<VerdictRow>& rows) {
  if (rows.empty()) return Ok();
  const std::lock_guard writing(writing_);
  ASSAY_TRY(const ConnectionPool::Lease connection, pool_.Take());
  ASSAY_TRY(Transaction transaction, Transaction::Begin(*connection));
  std::uint64_t mark = 0;
  for (const VerdictRow& row : rows) {
    ASSAY_CHECK_OK(PutVerdict(*connection, row));
    // Sequence 0: nothing was accepted, the host's clock stays.
    if (row.clock.audit_sequence != 0) ASSAY_CHECK_OK(PutClock(*connection, row.host_id, row.clock));
    mark = std::max(mark, row.audit_sequence);
  }
  ASSAY_TRY(sqlite3_stmt* const raise, connection->Prepared(Sql::kRaiseMark));
  ASSAY_CHECK_OK(Query(raise, connection->get()).Uint(mark).Run());
  return transaction.Commit();
}

Result<std::vector<VerdictRow>> SqliteStore::Verdicts(const Digest& host_id, std::size_t limit) {
  ASSAY_TRY(const ConnectionPool::Lease connection, pool_.Take());
  ASSAY_TRY(sqlite3_stmt* const statement, connection->Prepared(Sql::kVerdicts));
  Query query(statement, connection->get());
  query.Blob(host_id).Int(
      static_cast<std::int64_t>(std::min<std::size_t>(limit, std::numeric_limits<std::int32_t>::max())));
  std::vector<VerdictRow> out;
  while (true) {
    ASSAY_TRY(const Query::Row row, query.Step());
    if (row == Query::Row::kDone) return out;
    VerdictRow verdict{.host_id = query.DigestAt(0),
                       .audit_sequence = query.UintAt(1),
                       .at_ms = query.IntAt(2),
                       .outcome = query.TextAt(3),
                       .tier = static_cast<Tier>(query.IntAt(4)),
                       .reasons_json = query.TextAt(5),
                       .clock = ReadClock(query, 6)};
    verdict.clock.host_id = verdict.host_id;
    ASSAY_CHECK_OK(query.Sound("verdicts"));
    out.push_back(std::move(verdict));
  }
}

Result<std::vector<ClockRow>> SqliteStore::Clocks() {
  ASSAY_TRY(const ConnectionPool::Lease connection, pool_.Take());
  ASSAY_TRY(sqlite3_stmt* const statement, connection->Prepared(Sql::kClocks));
  Query query(statement, connection->get());
  std::vector<ClockRow> out;
  while (true) {
    ASSAY_TRY(const Query::Row row, query.Step());
    if (row == Query::Row::kDone) return out;
    ClockRow clock = ReadClock(query, 1);
    clock.host_id = query.DigestAt(0);
    ASSAY_CHECK_OK(query.Sound("clocks"));
    out.push_back(clock);
  }
}

Status SqliteStore::PutClocks(const std::vector<ClockRow>& rows) {
  if (rows.empty()) return Ok();
  const std::lock_guard writing(writing_);
  ASSAY_TRY(const ConnectionPool::Lease connection, pool_.Take());
  ASSAY_TRY(Transaction transaction, Transaction::Begin(*connection));
  for (const ClockRow& row : rows) ASSAY_CHECK_OK(PutClock(*connection, row.host_id, row));
  return transaction.Commit();
}

Result<std::uint64_t> SqliteStore::AuditMark() {
  ASSAY_TRY(const ConnectionPool::Lease connection, pool_.Take());
  ASSAY_TRY(sqlite3_stmt* const statement, connection->Prepared(Sql::kFindMark));
  Query query(statement, connection->get());
  ASSAY_TRY(const Query::Row row, query.Step());
  return row == Query::Row::kRow ? query.UintAt(0) : std::uint64_t{0};
}

}  // namespace assay::store
