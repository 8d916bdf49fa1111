// SPDX-License-Identifier: Apache-2.0
#include "verifier/server/verdict_writer.h"

#include <algorithm>
#include <chrono>

namespace assay::server {
namespace {

constexpr std::size_t kMaxQueue = 1U << 16;  // rows kept while the store refuses; older ones stand in the trail alone
constexpr auto kRetryDelay = std::chrono::milliseconds(200);
constexpr auto kGather = std::chrono::milliseconds(20);

}  // namespace

VerdictWriter::VerdictWriter(store::Store& store) : store_(store), thread_([this] { Run(); }) {}

VerdictWriter::~VerdictWriter() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void VerdictWriter::Put(store::VerdictRow row) {
  {
    const std::lock_guard lock(mutex_);
    if (queue_.size() == kMaxQueue) queue_.erase(queue_.begin());
    queue_.push_back(std::move(row));
  }
  wake_.notify_one();
}

void VerdictWriter::Flush() {
  std::unique_lock lock(mutex_);
  wake_.notify_one();
  drained_.wait(lock, [this] { return (queue_.empty() && !busy_) || failures_ > 0; });
}

std::uint64_t VerdictWriter::failures() const noexcept {
  const std::lock_guard lock(mutex_);
  return failures_;
}

void VerdictWriter::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stop_ || !queue_.empty(); });
    if (queue_.empty()) return;                                           // stopping, and nothing is left
    if (!stop_) wake_.wait_for(lock, kGather, [this] { return stop_; });  // one transaction for what arrives together
    std::vector<store::VerdictRow> batch;
    batch.swap(queue_);
    busy_ = true;
    lock.unlock();
    std::sort(batch.begin(), batch.end(),
              [](const auto& a, const auto& b) { return a.audit_sequence < b.audit_sequence; });
    const Status written = store_.PutVerdicts(batch);
    lock.lock();
    busy_ = false;
    if (!written.ok()) {
      ++failures_;
      if (stop_) return;
      batch.insert(batch.end(), std::make_move_iterator(queue_.begin()), std::make_move_iterator(queue_.end()));
      queue_ = std::move(batch);
      if (queue_.size() > kMaxQueue)
        queue_.erase(queue_.begin(), queue_.end() - static_cast<std::ptrdiff_t>(kMaxQueue));
      wake_.wait_for(lock, kRetryDelay, [this] { return stop_; });
    } else {
      failures_ = 0;
    }
    drained_.notify_all();
  }
}

}  // namespace assay::server
