// SPDX-License-Identifier: Apache-2.0
// A few threads for what may block (store commits, operators' requests), so that neither a network loop nor the
// audit writer waits for a disk. Bounded: a full queue refuses.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace assay::server {

enum class Queued : std::uint8_t { kYes, kFull };

class WorkPool {
 public:
  WorkPool(unsigned threads, std::size_t limit);
  ~WorkPool();  // as Finish
  WorkPool(const WorkPool&) = delete;
  WorkPool& operator=(const WorkPool&) = delete;

  Queued Run(std::function<void()> work);  // kFull also once Finish was called
  void Finish();                           // runs what is queued, ends the threads; never from one of them

 private:
  void Loop();
  const std::size_t limit_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> queue_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace assay::server
