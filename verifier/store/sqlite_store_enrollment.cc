// SPDX-License-Identifier: Apache-2.0
// Enrollments, what operators change on hosts, enrollment tokens and revocations.
#include "verifier/store/sqlite_store.h"

namespace assay::store {
namespace {

// Runs a statement that returns a row for what it changed.
Result<Query::Row> Change(Query& query) {
  ASSAY_TRY(const Query::Row row, query.Step());
  if (row == Query::Row::kRow) {
    ASSAY_TRY(const Query::Row end, query.Step());
    if (end == Query::Row::kRow) return MakeError(Code::kInternal, "store: a change touched more than one row");
  }
  return row;
}

Error NoSuchToken() { return MakeError(Code::kDenied, "the enrollment token is unknown, used or expired"); }
Error NoSuchHost() { return MakeError(Code::kNotFound, "no such host"); }

Status UseToken(Connection& connection, const Digest& token_hash, const Digest& host_id, std::int64_t now) {
  ASSAY_TRY(sqlite3_stmt* const statement, connection.Prepared(Sql::kUseToken));
  Query query(statement, connection.get());
  query.Blob(token_hash).Int(now).Blob(host_id);
  ASSAY_TRY(const Query::Row row, Change(query));
  if (row == Query::Row::kDone) return NoSuchToken();
  return Ok();
}

// The generation of the host's current key, and whether `attester` is that key already. 0: a new host.
struct Known {
  std::uint64_t generation = 0;
  bool renewal = false;
};
Result<Known> FindKnown(Connection& connection, const HostRow& host, const Digest& attester) {
  Known known;
  {
    ASSAY_TRY(sqlite3_stmt* const statement, connection.Prepared(Sql::kFindHost));
    Query query(statement, connection.get());
    ASSAY_TRY(const Query::Row row, query.Blob(host.host_id).Step());
    if (row == Query::Row::kRow) {
      ASSAY_TRY(const HostRow found, ReadHost(query));
      if (found.state != "active") return MakeError(Code::kConflict, "the host was replaced in the meantime");
      known.generation = found.generation;
    }
  }
  ASSAY_TRY(sqlite3_stmt* const statement, connection.Prepared(Sql::kFindAik));
  Query query(statement, connection.get());
  ASSAY_TRY(const Query::Row row, query.Blob(attester).Step());
  if (row == Query::Row::kDone) return known;
  ASSAY_TRY(const AikRow aik, ReadAik(query));
  if (aik.host_id != host.host_id) return MakeError(Code::kConflict, "the AIK belongs to another host");
  known.renewal = known.generation > 0 && aik.generation == known.generation;
  return known;
}

Status WriteHost(Connection& connection, const HostRow& host, std::uint64_t generation, bool known) {
  ASSAY_TRY(sqlite3_stmt* const statement, connection.Prepared(known ? Sql::kUpdateHost : Sql::kInsertHost));
  Query query(statement, connection.get());
  query.Blob(host.host_id)
      .Text(host.label)
      .Int(static_cast<std::int64_t>(host.ek_class))
      .Int(host.weak_device_id ? 1 : 0)
      .Blob(host.ek_spki_digest);
  if (known) query.Uint(generation);
  else query.Int(host.enrolled_at).Int(host.reset_accepted ? 1 : 0).Text(host.state);
  return query.Run();
}

Status WriteAik(Connection& connection, const AikRow& aik, const Digest& host_id, std::uint64_t generation) {
  ASSAY_TRY(sqlite3_stmt* const statement, connection.Prepared(Sql::kUpsertAik));
  Query query(statement, connection.get());
  query.Blob(aik.attester).Blob(host_id).Uint(generation).Int(static_cast<std::int64_t>(aik.scheme));
  query.Blob(aik.public_area).Blob(aik.certificate).Int(aik.not_after);
  ASSAY_TRY(const Query::Row row, Change(query));
  if (row == Query::Row::kDone) return MakeError(Code::kConflict, "the AIK belongs to another host");
  return Ok();
}

}  // namespace

Result<std::uint64_t> SqliteStore::PutEnrollment(const HostRow& host, const AikRow& aik,
                                                 const std::optional<Digest>& token_hash, std::int64_t now) {
  if (aik.host_id != host.host_id)
    return MakeError(Code::kInternal, "store: the AIK row names another host than the host row");
  const std::lock_guard writing(writing_);
  ASSAY_TRY(const ConnectionPool::Lease connection, pool_.Take());
  ASSAY_TRY(Transaction transaction, Transaction::Begin(*connection));
  ASSAY_TRY(const Known known, FindKnown(*connection, host, aik.attester));
  if (token_hash) ASSAY_CHECK_OK(UseToken(*connection, *token_hash, host.host_id, now));
  const std::uint64_t generation = known.renewal ? known.generation : known.generation + 1;
  ASSAY_CHECK_OK(WriteHost(*connection, host, generation, known.generation > 0));
  ASSAY_CHECK_OK(WriteAik(*connection, aik, host.host_id, generation));
  ASSAY_CHECK_OK(transaction.Commit());
  return generation;
}

Status SqliteStore::SetResetAccepted(const Digest& host_id, bool accepted) {
  const std::lock_guard writing(writing_);
  ASSAY_TRY(const ConnectionPool::Lease connection, pool_.Take());
  ASSAY_TRY(sqlite3_stmt* const statement, connection->Prepared(Sql::kSetResetAccepted));
  Query query(statement, connection->get());
  query.Blob(host_id).Int(accepted ? 1 : 0);
  ASSAY_TRY(const Query::Row row, Change(query));
  if (row == Query::Row::kDone) return NoSuchHost();
  return Ok();
}

Status SqliteStore::ReplaceHost(const Digest& old_host, const Digest& new_host) {
  const std::lock_guard writing(writing_);
  ASSAY_TRY(const ConnectionPool::Lease connection, pool_.Take());
  ASSAY_TRY(sqlite3_stmt* const statement, connection->Prepared(Sql::kReplaceHost));
  Query query(statement, connection->get());
  query.Blob(old_host).Blob(new_host);
  ASSAY_TRY(const Query::Row row, Change(query));
  if (row == Query::Row::kDone) return NoSuchHost();
  return Ok();
}

Status SqliteStore::ForgetHost(const Digest& host_id) {
  const std::lock_guard writing(writing_);
  ASSAY_TRY(const ConnectionPool::Lease connection, pool_.Take());
  ASSAY_TRY(Transaction transaction, Transaction::Begin(*connection));
  {
    ASSAY_TRY(sqlite3_stmt* const verdicts, connection->Prepared(Sql::kDeleteVerdicts));
    ASSAY_CHECK_OK(Query(verdicts, connection->get()).Blob(host_id).Run());
    ASSAY_TRY(sqlite3_stmt* const statement, connection->Prepared(Sql::kDeleteHost));
    Query query(statement, connection->get());
    query.Blob(host_id);
    ASSAY_TRY(const Query::Row row, Change(query));
    if (row == Query::Row::kDone) return NoSuchHost();
  }
  return transaction.Commit();
}

Status SqliteStore::CheckEnrollmentToken(const Digest& token_hash, std::int64_t now) {
  ASSAY_TRY(const ConnectionPool::Lease connection, pool_.Take());
  ASSAY_TRY(sqlite3_stmt* const statement, connection->Prepared(Sql::kCheckToken));
  Query query(statement, connection->get());
  ASSAY_TRY(const Query::Row row, query.Blob(token_hash).Int(now).Step());
  if (row == Query::Row::kDone) return NoSuchToken();
  return Ok();
}

Status SqliteStore::AddEnrollmentToken(const Digest& token_hash, std::int64_t expires_at) {
  const std::lock_guard writing(writing_);
  ASSAY_TRY(const ConnectionPool::Lease connection, pool_.Take());
  ASSAY_TRY(sqlite3_stmt* const statement, connection->Prepared(Sql::kAddToken));
  return Query(statement, connection->get()).Blob(token_hash).Int(expires_at).Run();
}

Status SqliteStore::AddRevocation(const Revocation& revocation) {
  const std::lock_guard writing(writing_);
  ASSAY_TRY(const ConnectionPool::Lease connection, pool_.Take());
  ASSAY_TRY(sqlite3_stmt* const statement, connection->Prepared(Sql::kAddRevocation));
  return Query(statement, connection->get()).Text(revocation.kind).Text(revocation.value).Int(revocation.until).Run();
}

Result<std::vector<Revocation>> SqliteStore::Revocations(std::int64_t now) {
  ASSAY_TRY(const ConnectionPool::Lease connection, pool_.Take());
  ASSAY_TRY(sqlite3_stmt* const statement, connection->Prepared(Sql::kRevocations));
  Query query(statement, connection->get());
  query.Int(now);
  std::vector<Revocation> out;
  while (true) {
    ASSAY_TRY(const Query::Row row, query.Step());
    if (row == Query::Row::kDone) return out;
    out.push_back({query.TextAt(0), query.TextAt(1), query.IntAt(2)});
  }
}

}  // namespace assay::store
