// SPDX-License-Identifier: Apache-2.0
// One request and one reply over the agent's socket, within a deadline. Keeps nothing; any number of threads.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "sdk/core/bytes.h"
#include "sdk/include/assay/client.h"

namespace assay::sdk {

class Deadline {
 public:
  explicit Deadline(std::uint32_t milliseconds) : end_(Clock::now() + std::chrono::milliseconds(milliseconds)) {}
  int LeftMs() const noexcept;  // for poll: 0 when it is over

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point end_;
};

struct CallOptions {
  std::uint32_t deadline_ms;
  std::size_t most;  // bytes of a payload that is taken
  assay_error* error;
};

assay_code Exchange(const std::string& path, Bytes request, const Deadline& deadline, Buffer& reply);

}  // namespace assay::sdk
