// SPDX-License-Identifier: Apache-2.0
// One SQLite connection with its prepared statements, and a small pool of them. A connection belongs to whoever holds
// the lease; statements are prepared once a connection and reused. Inside verifier/store/ only.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sdk/core/bytes.h"
#include "sdk/core/handle.h"
#include "sdk/core/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace assay::store {

void CloseSqlite(sqlite3* db) noexcept;
void FinalizeSqlite(sqlite3_stmt* statement) noexcept;
using SqliteHandle = Handle<sqlite3, CloseSqlite>;
using StatementHandle = Handle<sqlite3_stmt, FinalizeSqlite>;

// Every statement of the store; the text is in sqlite_schema.cc.
enum class Sql : std::uint8_t {
  kBegin,
  kBeginRead,
  kCommit,
  kRollback,
  kFindHost,
  kFindAik,
  kListHosts,
  kInsertHost,
  kUpdateHost,
  kUpsertAik,
  kUseToken,
  kSetResetAccepted,
  kReplaceHost,
  kDeleteHost,
  kDeleteVerdicts,
  kPutVerdict,
  kPutClock,
  kRaiseMark,
  kFindMark,
  kVerdicts,
  kClocks,
  kCheckToken,
  kAddToken,
  kAddRevocation,
  kRevocations,
  kCount,
};
const char* SqlText(Sql sql) noexcept;

// Binds by position in order, steps, reads columns. Resets itself at the end of its scope. The first error stays.
class Query {
 public:
  explicit Query(sqlite3_stmt* statement, sqlite3* db) noexcept : statement_(statement), db_(db) {}
  ~Query();
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

  Query& Blob(Bytes value);  // the bytes outlive the query
  Query& OptionalBlob(const std::optional<Digest>& value);
  Query& Text(std::string_view value);  // the text outlives the query
  Query& Int(std::int64_t value);
  Query& Uint(std::uint64_t value);  // kLimit over 2^63 - 1

  enum class Row : std::uint8_t { kDone, kRow };
  Result<Row> Step();
  Status Run();  // a statement without rows

  std::int64_t IntAt(int column) const noexcept;
  std::uint64_t UintAt(int column) const noexcept { return static_cast<std::uint64_t>(IntAt(column)); }
  bool IsNull(int column) const noexcept;
  Bytes BlobAt(int column) const noexcept;  // valid until the next step
  std::string TextAt(int column) const;
  Digest DigestAt(int column) noexcept;  // another length marks the row as damaged: see damaged()
  bool damaged() const noexcept { return damaged_; }
  Status Sound(std::string_view what) const;  // kMalformed when a column did not hold what it must

 private:
  void Keep(int code);
  sqlite3_stmt* statement_;
  sqlite3* db_;
  int position_ = 0;
  int failed_ = 0;
  bool too_large_ = false;
  bool damaged_ = false;
};

class Connection {
 public:
  // The file exists already, with the right owner and mode: see PrepareFile. Sets WAL, synchronous FULL, foreign keys.
  static Result<std::unique_ptr<Connection>> Open(const std::string& path, int busy_timeout_ms);
  Result<sqlite3_stmt*> Prepared(Sql sql);
  Status Execute(const char* sql);  // fixed text of this build only
  Result<std::int64_t> ReadInt(const char* sql);
  sqlite3* get() const noexcept { return db_.get(); }
  Error Fault(std::string_view doing) const;

 private:
  SqliteHandle db_;
  std::array<StatementHandle, static_cast<std::size_t>(Sql::kCount)> statements_;  // destroyed before db_
};

// Rolls back unless committed.
class Transaction {
 public:
  static Result<Transaction> Begin(Connection& connection, Sql begin = Sql::kBegin);
  Transaction(Transaction&& other) noexcept : connection_(std::exchange(other.connection_, nullptr)) {}
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();
  Status Commit();

 private:
  explicit Transaction(Connection& connection) noexcept : connection_(&connection) {}
  Connection* connection_;
};

// Bounded; a caller waits when all are out. Connections are opened when first needed.
class ConnectionPool {
 public:
  ConnectionPool(std::string path, int busy_timeout_ms, std::size_t limit)
      : path_(std::move(path)), busy_timeout_ms_(busy_timeout_ms), limit_(limit) {}

  class Lease {
   public:
    Lease(ConnectionPool& pool, std::unique_ptr<Connection> connection) noexcept
        : pool_(&pool), connection_(std::move(connection)) {}
    Lease(Lease&&) noexcept = default;
    Lease& operator=(Lease&&) = delete;
    ~Lease() {
      if (connection_) pool_->Return(std::move(connection_));
    }
    Connection& operator*() const noexcept { return *connection_; }
    Connection* operator->() const noexcept { return connection_.get(); }

   private:
    ConnectionPool* pool_;
    std::unique_ptr<Connection> connection_;
  };
  Result<Lease> Take();

 private:
  void Return(std::unique_ptr<Connection> connection) noexcept;
  const std::string path_;
  const int busy_timeout_ms_;
  const std::size_t limit_;
  std::mutex mutex_;
  std::condition_variable returned_;
  std::vector<std::unique_ptr<Connection>> idle_;
  std::size_t open_ = 0;
};

// Creates the file 0600 or checks the one that is there: regular, ours, private to the owner. kDenied otherwise.
Status PrepareFile(const std::string& path);
inline constexpr std::int64_t kSchemaVersion = 1;
// Brings the schema to kSchemaVersion. kUnsupported for a newer one, kMalformed for a file of another program.
Status Migrate(Connection& connection, const std::string& path);

}  // namespace assay::store
