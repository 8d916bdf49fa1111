// SPDX-License-Identifier: Apache-2.0
// The side of the writer's thread: batches, barriers, completions, and the stop after a fault.
#include "verifier/audit/file_log.h"

namespace assay::audit {
namespace {

constexpr std::chrono::seconds kPinInterval{1};

}  // namespace

void FileAuditLog::Run() {
  std::vector<Waiting> batch;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return !queue_.empty() || closing_; });
      if (queue_.empty()) break;
      batch.swap(queue_);
      queued_bytes_ = 0;
    }
    std::size_t acknowledged = 0;
    if (const Status written = WriteBatch(batch, acknowledged); !written.ok()) {
      return Stop(written.error(), batch, acknowledged);
    }
    batch.clear();
  }
  // Closed in order: the next start then knows that the records before this line were whole.
  out_.clear();
  AppendChained(out_, keys_, state_, {writer_->place().number, Kind::kControl, state_.next - 1}, StoppedLine());
  if (out_.size() > writer_->Room()) return;
  if (const Status written = writer_->Write(out_, 1); !written.ok()) Stop(written.error(), batch, 0);
}

Status FileAuditLog::WriteBatch(std::vector<Waiting>& batch, std::size_t& acknowledged) {
  while (acknowledged < batch.size()) {
    if (batch[acknowledged].json.size() + kFrameOverhead > writer_->Room()) ASSAY_CHECK_OK(writer_->Rotate(state_));
    ASSAY_CHECK_OK(WriteSlice(batch, acknowledged));
  }
  return Ok();
}

// As many of the batch's records as fit under one barrier. `acknowledged` moves behind those whose completion ran.
Status FileAuditLog::WriteSlice(std::vector<Waiting>& batch, std::size_t& acknowledged) {
  out_.clear();
  const std::uint64_t room = writer_->Room();
  const std::uint64_t durable = state_.next - 1;
  const std::uint64_t first = state_.next;
  std::size_t end = acknowledged;
  while (end < batch.size()) {
    const std::size_t next = out_.size() + batch[end].json.size() + kFrameOverhead;
    if (next > room || (next > options_.batch_bytes && end > acknowledged)) break;
    AppendChained(out_, keys_, state_, {writer_->place().number, Kind::kRecord, durable}, batch[end].json);
    ++end;
  }
  const auto start = std::chrono::steady_clock::now();
  ASSAY_CHECK_OK(writer_->Write(out_, end - acknowledged));
  const auto finish = std::chrono::steady_clock::now();
  ASSAY_CHECK_OK(CheckPinned());
  {
    const std::lock_guard lock(mutex_);
    stats_.records += end - acknowledged;
    ++stats_.batches;
    stats_.bytes += out_.size();
    stats_.last_batch = end - acknowledged;
    stats_.segment = writer_->place().number;
    stats_.barrier_ns +=
        static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(finish - start).count());
  }
  if (options_.observe)
    options_.observe({end - acknowledged, out_.size(), std::chrono::duration<double>(finish - start).count()});
  for (std::uint64_t sequence = first; acknowledged < end; ++sequence) {
    Completion done = std::move(batch[acknowledged].done);
    ++acknowledged;
    if (done) done(sequence);
  }
  return Ok();
}

// Before an acknowledgement, once a second: the records must be where a reader will look for them.
Status FileAuditLog::CheckPinned() {
  const auto now = std::chrono::steady_clock::now();
  if (now - pinned_at_ < kPinInterval) return Ok();
  pinned_at_ = now;
  ASSAY_CHECK_OK(writer_->CheckPinned());
  const Result<FileIdentity> held = lock_->Identity();
  const Result<FileIdentity> named = directory_->Identity(kLockName);
  if (!held.ok()) return Named(held.error(), "checking", kLockName);
  if (!named.ok()) return Named(named.error(), "checking", kLockName);
  if (!held->Same(*named)) return MakeError(Code::kDenied, "the lock file was replaced under the running log");
  return Ok();
}

void FileAuditLog::Stop(const Error& cause, std::vector<Waiting>& batch, std::size_t acknowledged) {
  std::vector<Waiting> waiting;
  Error stopped;
  {
    const std::lock_guard lock(mutex_);
    stopped = MakeError(Code::kUnavailable, "the audit log has stopped: " + cause.detail, cause.os);
    stopped_ = stopped;
    waiting.swap(queue_);
    queued_bytes_ = 0;
  }
  FailFrom(batch, acknowledged, stopped);
  FailFrom(waiting, 0, stopped);
}

void FileAuditLog::FailFrom(std::vector<Waiting>& waiting, std::size_t from, const Error& cause) {
  for (; from < waiting.size(); ++from) {
    if (waiting[from].done) waiting[from].done(cause);
  }
}

}  // namespace assay::audit
