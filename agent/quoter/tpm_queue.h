// SPDX-License-Identifier: Apache-2.0
// The one thread that talks to the TPM, and the queue before it: evidence first, then host tokens, then the rest.
// Jobs of one priority run in order of arrival. Submit from any thread; jobs run on the queue's own.
#pragma once

#include <array>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "sdk/core/result.h"

namespace assay::agent {

enum class Priority : std::uint8_t { kEvidence = 0, kHostToken = 1, kBackground = 2 };

class TpmQueue {
 public:
  explicit TpmQueue(std::size_t max_waiting = 128);
  ~TpmQueue();  // finishes the job in hand, drops the rest
  TpmQueue(const TpmQueue&) = delete;
  TpmQueue& operator=(const TpmQueue&) = delete;

  Status Submit(Priority priority, std::function<void()> job);  // kBusy when that priority's queue is full
  void Stop();                                                  // idempotent; as the destructor
  std::size_t waiting() const;

 private:
  void Run();
  std::size_t max_waiting_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::array<std::deque<std::function<void()>>, 3> queues_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace assay::agent
