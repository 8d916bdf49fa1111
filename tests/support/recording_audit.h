// SPDX-License-Identifier: Apache-2.0
// An AuditLog that keeps its records, calls back at once, and can stop as the real one does.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "verifier/audit/audit_log.h"

namespace assay::test {

class RecordingAudit final : public audit::AuditLog {
 public:
  std::vector<std::string> records;
  std::optional<Error> stopped;
  std::optional<std::size_t> stop_after;              // records taken before it stops by itself
  std::function<void(const std::string&)> on_record;  // sees each record before it counts as durable

  Status Append(std::string json, audit::Completion done) override {
    Result<std::uint64_t> sequence = AppendAndWait(std::move(json));
    if (!sequence.ok()) return sequence.error();
    done(*sequence);
    return Ok();
  }
  Result<std::uint64_t> AppendAndWait(std::string json) override {
    const std::lock_guard lock(mutex_);
    if (stop_after && records.size() >= *stop_after)
      stopped = MakeError(Code::kUnavailable, "the audit log has stopped");
    if (stopped) return *stopped;
    if (on_record) on_record(json);
    records.push_back(std::move(json));
    return records.size();
  }
  Status Health() const override {
    if (stopped) return *stopped;
    return Ok();
  }

 private:
  std::mutex mutex_;  // of records; a test reads them when its threads are joined
};

}  // namespace assay::test
