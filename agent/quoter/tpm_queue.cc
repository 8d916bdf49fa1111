// SPDX-License-Identifier: Apache-2.0
#include "agent/quoter/tpm_queue.h"

namespace assay::agent {

TpmQueue::TpmQueue(std::size_t max_waiting) : max_waiting_(max_waiting), thread_([this] { Run(); }) {}

TpmQueue::~TpmQueue() { Stop(); }

Status TpmQueue::Submit(Priority priority, std::function<void()> job) {
  const std::lock_guard lock(mutex_);
  auto& queue = queues_[static_cast<std::size_t>(priority)];
  if (stop_ || queue.size() >= max_waiting_)
    return MakeError(Code::kBusy, "too many quotes are waiting for the TPM: try again in a second");
  queue.push_back(std::move(job));
  wake_.notify_one();
  return Ok();
}

void TpmQueue::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    for (auto& queue : queues_) queue.clear();
    wake_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

std::size_t TpmQueue::waiting() const {
  const std::lock_guard lock(mutex_);
  std::size_t count = 0;
  for (const auto& queue : queues_) count += queue.size();
  return count;
}

void TpmQueue::Run() {
  for (;;) {
    std::function<void()> job;
    {
      std::unique_lock lock(mutex_);
      const auto first = [this]() -> std::deque<std::function<void()>>* {
        for (auto& queue : queues_)
          if (!queue.empty()) return &queue;
        return nullptr;
      };
      wake_.wait(lock, [&] { return stop_ || first() != nullptr; });
      if (stop_) return;
      auto* queue = first();
      job = std::move(queue->front());
      queue->pop_front();
    }
    job();
  }
}

}  // namespace assay::agent
