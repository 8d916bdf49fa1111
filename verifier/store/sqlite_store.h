// SPDX-License-Identifier: Apache-2.0
// Store in one SQLite file: WAL, synchronous FULL, foreign keys. Any thread: each call leases a connection of a small
// pool; writers queue on one mutex, so the busy timeout is only for other processes (a backup, an sqlite3 shell).
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "verifier/store/sqlite_connection.h"
#include "verifier/store/store.h"

namespace assay::store {

struct SqliteOptions {
  std::string path;  // created 0600 when missing; the directory exists
  int busy_timeout_ms = 5000;
  std::size_t connections = 8;  // at most this many at a time; further callers wait
};

class SqliteStore final : public Store {
 public:
  // Migrates an older schema. kUnsupported for a newer one, kDenied for a file that is not ours alone, kIo, kMalformed.
  static Result<std::unique_ptr<SqliteStore>> Open(const SqliteOptions& options);

  Result<std::optional<HostRow>> FindHost(const Digest& host_id) override;
  Result<std::optional<AikRow>> FindAik(const Digest& attester) override;
  Result<std::vector<HostRow>> ListHosts(const std::optional<Digest>& after, std::size_t limit) override;
  Result<std::uint64_t> PutEnrollment(const HostRow& host, const AikRow& aik, const std::optional<Digest>& token_hash,
                                      std::int64_t now) override;
  Status SetResetAccepted(const Digest& host_id, bool accepted) override;
  Status ReplaceHost(const Digest& old_host, const Digest& new_host) override;
  Status ForgetHost(const Digest& host_id) override;
  Status PutVerdicts(const std::vector<VerdictRow>& rows) override;
  Result<std::vector<VerdictRow>> Verdicts(const Digest& host_id, std::size_t limit) override;
  Result<std::vector<ClockRow>> Clocks() override;
  Status PutClocks(const std::vector<ClockRow>& rows) override;
  Result<std::uint64_t> AuditMark() override;
  Status CheckEnrollmentToken(const Digest& token_hash, std::int64_t now) override;
  Status AddEnrollmentToken(const Digest& token_hash, std::int64_t expires_at) override;
  Status AddRevocation(const Revocation& revocation) override;
  Result<std::vector<Revocation>> Revocations(std::int64_t now) override;

  // EXPLAIN QUERY PLAN of one statement, lines joined by "; ": for the test that hot lookups use an index.
  Result<std::string> QueryPlan(Sql sql);

 private:
  explicit SqliteStore(const SqliteOptions& options)
      : pool_(options.path, options.busy_timeout_ms, options.connections) {}
  ConnectionPool pool_;
  std::mutex writing_;  // taken before a connection is leased for writing
};

// Row readers that the parts of the store share.
Result<HostRow> ReadHost(Query& row);
Result<AikRow> ReadAik(Query& row);

}  // namespace assay::store
