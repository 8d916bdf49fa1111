// SPDX-License-Identifier: Apache-2.0
// The audit log on disk. One writer thread and a double buffer: a batch is what queued behind the barrier in flight, so
// throughput comes from sharing barriers and a lone append costs one. Fails closed: the first write, sync or rename that
// fails stops the log for good, and everything not yet acknowledged gets the cause.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "verifier/audit/audit_log.h"
#include "verifier/audit/recovery.h"

namespace assay::audit {

// One barrier and what it covered.
struct BatchSeen {
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;
  double barrier_seconds = 0;
};

struct LogOptions {
  std::string directory;                    // made 0700 when missing; its parent exists
  std::uint64_t segment_bytes = 32U << 20;  // at least 2 * max_record + 4 KiB, at most kMaxSegmentBytes
  std::size_t max_record = kMaxRecord;      // at most kMaxRecord, at least 128
  std::size_t queue_records = 16384;        // waiting beside the batch in flight; more is kBusy
  std::size_t queue_bytes = 32U << 20;
  std::size_t batch_bytes = 1U << 20;  // of one barrier
  // The store's AuditMark: a trail that ends below it has lost acknowledged records and is refused.
  std::uint64_t acknowledged = 0;
  RecordVisitor visit;  // sees every verified record while the trail is opened
  // After each barrier, before its records are acknowledged, on the writer's thread: must neither block nor throw.
  std::function<void(const BatchSeen&)> observe = {};
};

class FileAuditLog final : public AuditLog {
 public:
  // kBusy: another process writes this trail. kMalformed: damage that a crash can't explain, with segment, record and
  // byte. kDenied: owner, mode or a symbolic link. `directory`: for tests that inject faults, else made of the options.
  static Result<std::unique_ptr<FileAuditLog>> Open(LogOptions options, AuditKeys keys,
                                                    std::unique_ptr<Directory> directory = nullptr);
  // Drains what was appended, writes the closing line, stops the thread.
  ~FileAuditLog() override;

  Status Append(std::string json, Completion done) override;
  Result<std::uint64_t> AppendAndWait(std::string json) override;
  Status Health() const override;

  struct Stats {
    std::uint64_t records = 0;  // acknowledged
    std::uint64_t batches = 0;
    std::uint64_t bytes = 0;       // written, frames included
    std::uint64_t refused = 0;     // kBusy
    std::uint64_t queued = 0;      // records waiting now
    std::uint64_t segment = 0;     // the one that grows
    std::uint64_t last_batch = 0;  // records of the last batch
    std::uint64_t barrier_ns = 0;  // spent in all barriers
  };
  Stats stats() const;
  // Of a torn tail that Open cut into a quarantine file; 0: none.
  std::uint64_t recovered_bytes() const noexcept { return recovered_.cut_bytes; }
  const std::string& quarantine() const noexcept { return recovered_.quarantine; }

 private:
  struct Waiting {
    std::string json;
    Completion done;
  };
  FileAuditLog(LogOptions options, AuditKeys keys) : options_(std::move(options)), keys_(std::move(keys)) {}
  Status Begin(std::unique_ptr<Directory> directory);
  void Run();
  Status WriteBatch(std::vector<Waiting>& batch, std::size_t& acknowledged);
  Status WriteSlice(std::vector<Waiting>& batch, std::size_t& acknowledged);
  Status CheckPinned();
  void Stop(const Error& cause, std::vector<Waiting>& batch, std::size_t acknowledged);
  static void FailFrom(std::vector<Waiting>& waiting, std::size_t from, const Error& cause);

  const LogOptions options_;
  const AuditKeys keys_;
  std::unique_ptr<Directory> directory_;
  std::unique_ptr<File> lock_;
  std::unique_ptr<SegmentWriter> writer_;
  Recovered recovered_;

  // The writer thread's own.
  ChainState state_;
  Buffer out_;
  std::chrono::steady_clock::time_point pinned_at_{};

  mutable std::mutex mutex_;  // held for a push or a swap, never over a barrier
  std::condition_variable wake_;
  std::vector<Waiting> queue_;
  std::size_t queued_bytes_ = 0;
  bool closing_ = false;
  std::optional<Error> stopped_;
  Stats stats_;
  std::thread thread_;
};

}  // namespace assay::audit
