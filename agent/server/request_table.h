// SPDX-License-Identifier: Apache-2.0
// Who may ask the agent for what, as data: every request goes through one row, and what has no row is refused.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "sdk/core/agent_protocol.h"

namespace assay::agent {

enum class Permit : std::uint8_t { kAnyone, kRelay, kRoot };

struct RequestRow {
  local::Kind kind;
  std::string_view name;
  Permit permit;
  std::size_t max_size;  // of the encoded request
  bool quotes;           // takes from the caller's budget of quotes
};

// Who is at the other end, as the kernel recorded it when the connection was made.
struct Caller {
  std::uint64_t connection = 0;  // never reused
  uid_t uid = 0;
  gid_t gid = 0;
  pid_t pid = 0;            // for log lines only: it can be reused
  bool relay = false;       // runs as the relay's user
  CallerIdentity identity;  // as the gate measured it
};

const RequestRow* FindRow(local::Kind kind) noexcept;
bool IsPermitted(const RequestRow& row, const Caller& caller) noexcept;
std::size_t FrameLimit(const Caller& caller) noexcept;  // the largest request that this caller may send at all

}  // namespace assay::agent
