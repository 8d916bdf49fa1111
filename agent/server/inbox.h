// SPDX-License-Identifier: Apache-2.0
// What other threads want done on the server's thread. Post from anywhere; Drain on the server's thread when fd()
// is readable.
#pragma once

#include <sys/eventfd.h>

#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "sdk/core/handle.h"

namespace assay::agent {

class Inbox {
 public:
  Inbox() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  int fd() const noexcept { return fd_.get(); }

  void Post(std::function<void()> task) {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    // Fails only when the counter is full, and then it is readable already.
    (void)::eventfd_write(fd_.get(), 1);
  }

  void Drain() {
    eventfd_t count = 0;
    (void)::eventfd_read(fd_.get(), &count);
    std::vector<std::function<void()>> tasks;
    {
      const std::lock_guard lock(mutex_);
      tasks.swap(tasks_);
    }
    for (auto& task : tasks) task();
  }

 private:
  Fd fd_;
  std::mutex mutex_;
  std::vector<std::function<void()>> tasks_;
};

}  // namespace assay::agent
