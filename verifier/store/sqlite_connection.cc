// SPDX-License-Identifier: Apache-2.0
#include "verifier/store/sqlite_connection.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>

namespace assay::store {
namespace {

Code CodeOf(int primary) noexcept {
  switch (primary) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return Code::kBusy;
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN: return Code::kIo;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB: return Code::kMalformed;
    case SQLITE_CONSTRAINT: return Code::kConflict;
    case SQLITE_TOOBIG: return Code::kLimit;
    default: return Code::kInternal;
  }
}

Error FaultOf(sqlite3* db, int code, std::string_view doing) {
  std::string detail = "store: " + std::string(doing) + ": ";
  detail += db != nullptr ? sqlite3_errmsg(db) : sqlite3_errstr(code);
  const int os = db != nullptr ? sqlite3_system_errno(db) : 0;
  const Code primary = CodeOf(code & 0xFF);
  return MakeError(primary, std::move(detail), primary == Code::kIo && os > 0 ? static_cast<std::uint32_t>(os) : 0);
}

}  // namespace

void CloseSqlite(sqlite3* db) noexcept { sqlite3_close_v2(db); }
void FinalizeSqlite(sqlite3_stmt* statement) noexcept { sqlite3_finalize(statement); }

Query::~Query() {
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

void Query::Keep(int code) {
  if (failed_ == SQLITE_OK && code != SQLITE_OK) failed_ = code;
}

Query& Query::Blob(Bytes value) {
  // A null pointer would bind NULL: an empty blob needs an address.
  const void* data = value.empty() ? static_cast<const void*>("") : value.data();
  Keep(sqlite3_bind_blob64(statement_, ++position_, data, value.size(), SQLITE_STATIC));
  return *this;
}
Query& Query::OptionalBlob(const std::optional<Digest>& value) {
  if (value) return Blob(*value);
  Keep(sqlite3_bind_null(statement_, ++position_));
  return *this;
}
Query& Query::Text(std::string_view value) {
  Keep(sqlite3_bind_text64(statement_, ++position_, value.empty() ? "" : value.data(), value.size(), SQLITE_STATIC,
                           SQLITE_UTF8));
  return *this;
}
Query& Query::Int(std::int64_t value) {
  Keep(sqlite3_bind_int64(statement_, ++position_, value));
  return *this;
}
Query& Query::Uint(std::uint64_t value) {
  if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) too_large_ = true;
  return Int(static_cast<std::int64_t>(value));
}

Result<Query::Row> Query::Step() {
  if (too_large_) return MakeError(Code::kLimit, "store: a number is larger than 2^63 - 1");
  if (failed_ != SQLITE_OK) return FaultOf(db_, failed_, "binding a value");
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return Row::kRow;
  if (code == SQLITE_DONE) return Row::kDone;
  return FaultOf(db_, code, sqlite3_sql(statement_));
}

Status Query::Run() {
  ASSAY_TRY(const Row row, Step());
  if (row == Row::kRow) return MakeError(Code::kInternal, "store: a statement without rows returned one");
  return Ok();
}

std::int64_t Query::IntAt(int column) const noexcept { return sqlite3_column_int64(statement_, column); }
bool Query::IsNull(int column) const noexcept { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }
Bytes Query::BlobAt(int column) const noexcept {
  const void* data = sqlite3_column_blob(statement_, column);
  const int size = sqlite3_column_bytes(statement_, column);
  if (data == nullptr || size <= 0) return {};
  return Bytes(static_cast<const std::uint8_t*>(data), static_cast<std::size_t>(size));
}
std::string Query::TextAt(int column) const {
  const unsigned char* text = sqlite3_column_text(statement_, column);
  const int size = sqlite3_column_bytes(statement_, column);
  return text == nullptr ? std::string() : std::string(AsText(Bytes(text, static_cast<std::size_t>(size))));
}
Digest Query::DigestAt(int column) noexcept {
  const Bytes bytes = BlobAt(column);
  Digest out{};
  if (bytes.size() != out.size()) damaged_ = true;
  else CopyBytes(bytes, out);
  return out;
}
Status Query::Sound(std::string_view what) const {
  if (!damaged_) return Ok();
  return MakeError(Code::kMalformed,
                   "store: a row of " + std::string(what) + " is damaged: restore the store from a backup");
}

Result<std::unique_ptr<Connection>> Connection::Open(const std::string& path, int busy_timeout_ms) {
  auto connection = std::make_unique<Connection>();
  sqlite3* raw = nullptr;
  const int code =
      sqlite3_open_v2(path.c_str(), &raw, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW, nullptr);
  connection->db_.reset(raw);
  if (code != SQLITE_OK) return FaultOf(raw, code, "opening " + path);
  sqlite3_extended_result_codes(raw, 1);
  sqlite3_busy_timeout(raw, busy_timeout_ms);
  // journal_mode comes first: it is the statement that finds out whether the file is a database at all.
  for (const char* pragma : {"PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL", "PRAGMA foreign_keys=ON",
                             "PRAGMA trusted_schema=OFF", "PRAGMA cell_size_check=ON", "PRAGMA cache_size=-16384"}) {
    ASSAY_CHECK_OK(connection->Execute(pragma));
  }
  ASSAY_TRY(const std::int64_t synchronous, connection->ReadInt("PRAGMA synchronous"));
  ASSAY_TRY(const std::int64_t foreign_keys, connection->ReadInt("PRAGMA foreign_keys"));
  if (synchronous != 2 || foreign_keys != 1)
    return MakeError(Code::kUnsupported, "store: this SQLite ignores synchronous=FULL or foreign_keys");
  return connection;
}

Result<sqlite3_stmt*> Connection::Prepared(Sql sql) {
  StatementHandle& slot = statements_[static_cast<std::size_t>(sql)];
  if (!slot) {
    sqlite3_stmt* raw = nullptr;
    const int code = sqlite3_prepare_v3(db_.get(), SqlText(sql), -1, SQLITE_PREPARE_PERSISTENT, &raw, nullptr);
    if (code != SQLITE_OK) return FaultOf(db_.get(), code, SqlText(sql));
    slot.reset(raw);
  }
  return slot.get();
}

Status Connection::Execute(const char* sql) {
  const int code = sqlite3_exec(db_.get(), sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return FaultOf(db_.get(), code, sql);
  return Ok();
}

Result<std::int64_t> Connection::ReadInt(const char* sql) {
  sqlite3_stmt* raw = nullptr;
  const int code = sqlite3_prepare_v2(db_.get(), sql, -1, &raw, nullptr);
  const StatementHandle statement(raw);
  if (code != SQLITE_OK) return FaultOf(db_.get(), code, sql);
  Query query(raw, db_.get());
  ASSAY_TRY(const Query::Row row, query.Step());
  if (row != Query::Row::kRow) return MakeError(Code::kMalformed, "store: no answer to " + std::string(sql));
  return query.IntAt(0);
}

Error Connection::Fault(std::string_view doing) const { return FaultOf(db_.get(), sqlite3_errcode(db_.get()), doing); }

Result<Transaction> Transaction::Begin(Connection& connection, Sql begin) {
  ASSAY_TRY(sqlite3_stmt* const statement, connection.Prepared(begin));
  ASSAY_CHECK_OK(Query(statement, connection.get()).Run());
  return Transaction(connection);
}

Transaction::~Transaction() {
  if (connection_ == nullptr) return;
  const auto statement = connection_->Prepared(Sql::kRollback);
  if (!statement.ok()) return;
  // Some failures roll back by themselves: an error here leaves nothing behind.
  const Status ignored = Query(*statement, connection_->get()).Run();
  (void)ignored;
}

Status Transaction::Commit() {
  ASSAY_TRY(sqlite3_stmt* const statement, connection_->Prepared(Sql::kCommit));
  ASSAY_CHECK_OK(Query(statement, connection_->get()).Run());
  connection_ = nullptr;
  return Ok();
}

Result<ConnectionPool::Lease> ConnectionPool::Take() {
  {
    std::unique_lock lock(mutex_);
    returned_.wait(lock, [this] { return !idle_.empty() || open_ < limit_; });
    if (!idle_.empty()) {
      std::unique_ptr<Connection> connection = std::move(idle_.back());
      idle_.pop_back();
      return Lease(*this, std::move(connection));
    }
    ++open_;
  }
  auto opened = Connection::Open(path_, busy_timeout_ms_);
  if (opened.ok()) return Lease(*this, std::move(opened).value());
  const std::lock_guard lock(mutex_);
  --open_;
  returned_.notify_one();
  return std::move(opened).error();
}

void ConnectionPool::Return(std::unique_ptr<Connection> connection) noexcept {
  {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(connection));
  }
  returned_.notify_one();
}

Status PrepareFile(const std::string& path) {
  const auto fault = [&](const char* doing) {
    return MakeError(Code::kIo, "store: " + std::string(doing) + " " + path + ": " + std::strerror(errno),
                     static_cast<std::uint32_t>(errno));
  };
  Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (fd.valid()) {
    // The new name must survive a power cut as well as what is written into the file.
    const std::size_t slash = path.rfind('/');
    const std::string directory = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    const Fd parent(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!parent.valid() || ::fsync(parent.get()) != 0) return fault("syncing the directory of");
  } else if (errno == EEXIST) {
    fd = Fd(::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
  }
  if (!fd.valid()) return fault("opening");
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return fault("reading the owner of");
  if (!S_ISREG(info.st_mode)) return MakeError(Code::kDenied, "store: " + path + " is not a regular file");
  if (info.st_uid != ::geteuid())
    return MakeError(Code::kDenied,
                     "store: " + path + " belongs to another user: give it to the one that runs the verifier");
  if ((info.st_mode & 077) != 0) return MakeError(Code::kDenied, "store: " + path + " is open to others: chmod 600 it");
  return Ok();
}

}  // namespace assay::store
