// SPDX-License-Identifier: Apache-2.0
// Opening and reading.
#include "verifier/store/sqlite_store.h"

#include <sqlite3.h>

#include <algorithm>
#include <limits>

namespace assay::store {

Result<std::unique_ptr<SqliteStore>> SqliteStore::Open(const SqliteOptions& options) {
  if (options.connections == 0) return MakeError(Code::kConfig, "store: connections must be at least 1");
  ASSAY_CHECK_OK(PrepareFile(options.path));
  std::unique_ptr<SqliteStore> store(new SqliteStore(options));
  ASSAY_TRY(const ConnectionPool::Lease connection, store->pool_.Take());
  ASSAY_CHECK_OK(Migrate(*connection, options.path));
  // Every statement is prepared once here: one that this schema does not hold is found now, not under load.
  for (std::size_t i = 0; i < static_cast<std::size_t>(Sql::kCount); ++i)
    ASSAY_CHECK_OK(connection->Prepared(static_cast<Sql>(i)));
  return store;
}

Result<HostRow> ReadHost(Query& row) {
  HostRow host{.host_id = row.DigestAt(0),
               .label = row.TextAt(1),
               .ek_class = row.IntAt(2) == 0 ? EkClass::kChain : EkClass::kEkKey,
               .weak_device_id = row.IntAt(3) != 0,
               .ek_spki_digest = row.DigestAt(4),
               .enrolled_at = row.IntAt(5),
               .generation = row.UintAt(6),
               .reset_accepted = row.IntAt(7) != 0,
               .state = row.TextAt(8),
               .replaced_by = std::nullopt};
  if (!row.IsNull(9)) host.replaced_by = row.DigestAt(9);
  ASSAY_CHECK_OK(row.Sound("hosts"));
  return host;
}

Result<AikRow> ReadAik(Query& row) {
  AikRow aik{.attester = row.DigestAt(0),
             .host_id = row.DigestAt(1),
             .generation = row.UintAt(2),
             .scheme = SignatureScheme::kRsaSsaSha256,
             .public_area = ToBuffer(row.BlobAt(4)),
             .certificate = ToBuffer(row.BlobAt(5)),
             .not_after = row.IntAt(6)};
  ASSAY_CHECK_OK(row.Sound("aiks"));
  const std::int64_t scheme = row.IntAt(3);
  if (scheme < 0 || scheme > static_cast<std::int64_t>(SignatureScheme::kEd25519))
    return MakeError(Code::kMalformed, "store: a row of aiks names an unknown scheme");
  aik.scheme = static_cast<SignatureScheme>(scheme);
  return aik;
}

Result<std::optional<HostRow>> SqliteStore::FindHost(const Digest& host_id) {
  ASSAY_TRY(const ConnectionPool::Lease connection, pool_.Take());
  ASSAY_TRY(sqlite3_stmt* const statement, connection->Prepared(Sql::kFindHost));
  Query query(statement, connection->get());
  ASSAY_TRY(const Query::Row row, query.Blob(host_id).Step());
  if (row == Query::Row::kDone) return std::optional<HostRow>();
  ASSAY_TRY(HostRow host, ReadHost(query));
  return std::optional<HostRow>(std::move(host));
}

Result<std::optional<AikRow>> SqliteStore::FindAik(const Digest& attester) {
  ASSAY_TRY(const ConnectionPool::Lease connection, pool_.Take());
  ASSAY_TRY(sqlite3_stmt* const statement, connection->Prepared(Sql::kFindAik));
  Query query(statement, connection->get());
  ASSAY_TRY(const Query::Row row, query.Blob(attester).Step());
  if (row == Query::Row::kDone) return std::optional<AikRow>();
  ASSAY_TRY(AikRow aik, ReadAik(query));
  return std::optional<AikRow>(std::move(aik));
}

Result<std::vector<HostRow>> SqliteStore::ListHosts(const std::optional<Digest>& after, std::size_t limit) {
  ASSAY_TRY(const ConnectionPool::Lease connection, pool_.Take());
  ASSAY_TRY(sqlite3_stmt* const statement, connection->Prepared(Sql::kListHosts));
  Query query(statement, connection->get());
  query.Blob(after ? Bytes(*after) : Bytes());  // the empty blob sorts before every id
  query.Int(static_cast<std::int64_t>(std::min<std::size_t>(limit, std::numeric_limits<std::int32_t>::max())));
  std::vector<HostRow> hosts;
  while (true) {
    ASSAY_TRY(const Query::Row row, query.Step());
    if (row == Query::Row::kDone) return hosts;
    ASSAY_TRY(HostRow host, ReadHost(query));
    hosts.push_back(std::move(host));
  }
}

Result<std::string> SqliteStore::QueryPlan(Sql sql) {
  ASSAY_TRY(const ConnectionPool::Lease connection, pool_.Take());
  const std::string text = "EXPLAIN QUERY PLAN " + std::string(SqlText(sql));
  sqlite3_stmt* raw = nullptr;
  const int code = sqlite3_prepare_v2(connection->get(), text.c_str(), -1, &raw, nullptr);
  const StatementHandle statement(raw);
  if (code != SQLITE_OK) return connection->Fault(text);
  Query query(raw, connection->get());
  std::string plan;
  while (true) {
    ASSAY_TRY(const Query::Row row, query.Step());
    if (row == Query::Row::kDone) return plan;
    if (!plan.empty()) plan += "; ";
    plan += query.TextAt(3);
  }
}

}  // namespace assay::store
