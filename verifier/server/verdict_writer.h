// SPDX-License-Identifier: Apache-2.0
// Writes verdict rows to the store behind the trail: batched, in order, never ahead of the record that holds them.
// A row that cannot be written is not lost truth (the trail has it); the writer reports and keeps trying.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "verifier/store/store.h"

namespace assay::server {

class VerdictWriter {
 public:
  explicit VerdictWriter(store::Store& store);
  ~VerdictWriter();  // writes what is queued
  VerdictWriter(const VerdictWriter&) = delete;
  VerdictWriter& operator=(const VerdictWriter&) = delete;

  void Put(store::VerdictRow row);  // any thread; only after the row's record is durable
  void Flush();                     // waits until everything put so far was tried
  std::uint64_t failures() const noexcept;

 private:
  void Run();
  store::Store& store_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable drained_;
  std::vector<store::VerdictRow> queue_;
  bool busy_ = false;
  bool stop_ = false;
  std::uint64_t failures_ = 0;
  std::thread thread_;
};

}  // namespace assay::server
