// SPDX-License-Identifier: Apache-2.0
#include "verifier/server/work_pool.h"

#include <utility>

namespace assay::server {

WorkPool::WorkPool(unsigned threads, std::size_t limit) : limit_(limit) {
  for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this] { Loop(); });
}

WorkPool::~WorkPool() { Finish(); }

void WorkPool::Finish() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (auto& thread : threads_) thread.join();
  threads_.clear();
}

Queued WorkPool::Run(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    if (stop_ || queue_.size() >= limit_) return Queued::kFull;
    queue_.push_back(std::move(work));
  }
  wake_.notify_one();
  return Queued::kYes;
}

void WorkPool::Loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stop_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const auto work = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    work();
    lock.lock();
  }
}

}  // namespace assay::server
