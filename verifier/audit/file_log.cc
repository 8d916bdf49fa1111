// SPDX-License-Identifier: Apache-2.0
// The side of the callers: opening, appending, waiting, health.
#include "verifier/audit/file_log.h"

namespace assay::audit {
namespace {

Status CheckOptions(const LogOptions& options) {
  if (options.max_record < 128 || options.max_record > kMaxRecord)
    return MakeError(Code::kConfig, "audit: max_record must be 128 to " + std::to_string(kMaxRecord));
  if (options.segment_bytes < 2 * options.max_record + 4096 || options.segment_bytes > kMaxSegmentBytes) {
    return MakeError(Code::kConfig, "audit: segment_bytes must be " + std::to_string(2 * options.max_record + 4096) +
                                        " to " + std::to_string(kMaxSegmentBytes));
  }
  if (options.queue_records == 0 || options.queue_bytes < options.max_record)
    return MakeError(Code::kConfig, "audit: the queue must hold at least one record");
  return Ok();
}

}  // namespace

Result<std::unique_ptr<FileAuditLog>> FileAuditLog::Open(LogOptions options, AuditKeys keys,
                                                         std::unique_ptr<Directory> directory) {
  ASSAY_CHECK_OK(CheckOptions(options));
  if (directory == nullptr) { ASSAY_TRY(directory, OpenOwnDirectory(options.directory, Missing::kMake)); }
  std::unique_ptr<FileAuditLog> log(new FileAuditLog(std::move(options), std::move(keys)));
  ASSAY_CHECK_OK(log->Begin(std::move(directory)));
  return log;
}

Status FileAuditLog::Begin(std::unique_ptr<Directory> directory) {
  directory_ = std::move(directory);
  // The lock comes before anything else is opened or made.
  Result<std::unique_ptr<File>> lock = directory_->Open(kLockName, Access::kLockFile);
  if (!lock.ok()) return Named(lock.error(), "audit: opening", directory_->path() + "/" + kLockName);
  if (const Status held = (*lock)->Lock(); !held.ok()) return Named(held.error(), "audit: locking", directory_->path());
  lock_ = std::move(lock).value();
  writer_ = std::make_unique<SegmentWriter>(*directory_, keys_, options_.segment_bytes);
  ASSAY_TRY(recovered_, Recover({*directory_, keys_, *writer_, options_.acknowledged, options_.visit}));
  state_ = recovered_.state;
  stats_.segment = writer_->place().number;
  pinned_at_ = std::chrono::steady_clock::now();
  thread_ = std::thread([this] { Run(); });
  return Ok();
}

FileAuditLog::~FileAuditLog() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

Status FileAuditLog::Append(std::string json, Completion done) {
  if (json.size() > options_.max_record)
    return MakeError(Code::kLimit, "audit: a record of " + std::to_string(json.size()) + " bytes, the limit is " +
                                       std::to_string(options_.max_record));
  if (const char* why = RefuseRecord(json); why != nullptr)
    return MakeError(Code::kMalformed, std::string("audit: record refused: ") + why);
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return *stopped_;
    if (closing_) return MakeError(Code::kUnavailable, "the audit log is closing");
    if (queue_.size() >= options_.queue_records || queued_bytes_ + json.size() > options_.queue_bytes) {
      ++stats_.refused;
      return MakeError(Code::kBusy, "the audit log's queue is full: try again");
    }
    first = queue_.empty();
    queued_bytes_ += json.size();
    queue_.push_back({std::move(json), std::move(done)});
  }
  if (first) wake_.notify_one();
  return Ok();
}

Result<std::uint64_t> FileAuditLog::AppendAndWait(std::string json) {
  if (std::this_thread::get_id() == thread_.get_id())
    return MakeError(Code::kInternal, "audit: a completion waits for its own thread");
  struct Wait {
    std::mutex mutex;
    std::condition_variable done;
    std::optional<Result<std::uint64_t>> outcome;
  } wait;
  ASSAY_CHECK_OK(Append(std::move(json), [&wait](Result<std::uint64_t> outcome) {
    // Notified under the lock: the waiter's frame may be gone once the lock is free.
    const std::lock_guard lock(wait.mutex);
    wait.outcome.emplace(std::move(outcome));
    wait.done.notify_one();
  }));
  std::unique_lock lock(wait.mutex);
  wait.done.wait(lock, [&] { return wait.outcome.has_value(); });
  return *std::move(wait.outcome);
}

Status FileAuditLog::Health() const {
  const std::lock_guard lock(mutex_);
  if (stopped_) return *stopped_;
  return Ok();
}

FileAuditLog::Stats FileAuditLog::stats() const {
  const std::lock_guard lock(mutex_);
  Stats out = stats_;
  out.queued = queue_.size();
  return out;
}

}  // namespace assay::audit
