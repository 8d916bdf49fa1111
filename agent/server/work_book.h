// SPDX-License-Identifier: Apache-2.0
// Clients' requests for result tokens, from the moment they ask until the relay delivered or the deadline passed.
// Bounded in all and per user. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "agent/quoter/quoter.h"
#include "agent/server/request_table.h"

namespace assay::agent {

struct Work {
  std::uint64_t id = 0;
  std::uint64_t client = 0;  // connection that waits for the token
  uid_t uid = 0;
  std::uint64_t deadline_ms = 0;
  std::uint64_t taken_by = 0;  // the relay's connection that has it in hand; 0: nobody
  TokenOrder order;
};

class WorkBook {
 public:
  static constexpr std::size_t kMaxWork = 64;
  static constexpr std::size_t kMaxPerUser = 8;

  Result<std::uint64_t> Add(const Caller& caller, TokenOrder order, std::uint64_t deadline_ms);  // kBusy when full
  // The oldest that nobody has in hand, taken by this relay connection; nothing when there is none.
  std::optional<std::uint64_t> TakeNext(std::uint64_t relay);
  const Work* Find(std::uint64_t id) const;
  std::optional<Work> Remove(std::uint64_t id);
  // A connection closed: a client's requests are dropped, a relay's go back. True when some went back.
  bool OnClosed(std::uint64_t connection);
  std::vector<Work> TakeExpired(std::uint64_t now_ms);
  std::uint64_t NextDeadline() const;  // UINT64_MAX when there is none
  std::size_t size() const noexcept { return works_.size(); }

 private:
  std::map<std::uint64_t, Work> works_;  // by id: ascending, so the oldest comes first
  std::uint64_t next_id_ = 1;
};

}  // namespace assay::agent
