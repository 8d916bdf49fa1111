// SPDX-License-Identifier: Apache-2.0
// The audit trail as the rest of the verifier sees it: append a record, learn when it is durable.
// No answer that a record covers may leave before its completion ran without an error.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "sdk/core/result.h"

namespace assay::audit {

inline constexpr std::size_t kMaxRecord = 64U << 10;  // bytes of one record's JSON

// Receives the record's sequence number once it is on disk, or the error that stopped the log. Runs once, on the
// writer's thread, in order of sequence; must not block and must not throw. Post to a loop for anything longer.
using Completion = std::function<void(Result<std::uint64_t> sequence)>;

class AuditLog {
 public:
  virtual ~AuditLog() = default;
  // `json`: one JSON object on one line. Any thread. An error (kLimit: too long, kMalformed: holds a newline,
  // kBusy: the queue is full, kUnavailable: the log has stopped, with the cause) means `done` is never called.
  virtual Status Append(std::string json, Completion done) = 0;
  // For command lines and start-up: waits for the barrier.
  virtual Result<std::uint64_t> AppendAndWait(std::string json) = 0;
  // Why the log stopped, or ok. Never waits for the writer.
  virtual Status Health() const = 0;
};

}  // namespace assay::audit
