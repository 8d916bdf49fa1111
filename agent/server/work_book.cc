// SPDX-License-Identifier: Apache-2.0
#include "agent/server/work_book.h"

#include <algorithm>

namespace assay::agent {

Result<std::uint64_t> WorkBook::Add(const Caller& caller, TokenOrder order, std::uint64_t deadline_ms) {
  const auto same =
      std::count_if(works_.begin(), works_.end(), [&](const auto& item) { return item.second.uid == caller.uid; });
  if (works_.size() >= kMaxWork || static_cast<std::size_t>(same) >= kMaxPerUser) {
    return MakeError(Code::kBusy, "too many requests for result tokens are waiting: try again in a second");
  }
  Work work;
  work.id = next_id_++;
  work.client = caller.connection;
  work.uid = caller.uid;
  work.deadline_ms = deadline_ms;
  work.order = std::move(order);
  const std::uint64_t id = work.id;
  works_.emplace(id, std::move(work));
  return id;
}

std::optional<std::uint64_t> WorkBook::TakeNext(std::uint64_t relay) {
  for (auto& [id, work] : works_) {
    if (work.taken_by != 0) continue;
    work.taken_by = relay;
    return id;
  }
  return std::nullopt;
}

const Work* WorkBook::Find(std::uint64_t id) const {
  const auto found = works_.find(id);
  return found == works_.end() ? nullptr : &found->second;
}

std::optional<Work> WorkBook::Remove(std::uint64_t id) {
  const auto found = works_.find(id);
  if (found == works_.end()) return std::nullopt;
  Work work = std::move(found->second);
  works_.erase(found);
  return work;
}

bool WorkBook::OnClosed(std::uint64_t connection) {
  std::erase_if(works_, [connection](const auto& item) { return item.second.client == connection; });
  bool returned = false;
  for (auto& [id, work] : works_) {
    if (work.taken_by != connection) continue;
    work.taken_by = 0;
    returned = true;
  }
  return returned;
}

std::vector<Work> WorkBook::TakeExpired(std::uint64_t now_ms) {
  std::vector<Work> expired;
  std::erase_if(works_, [&](const auto& item) {
    if (item.second.deadline_ms > now_ms) return false;
    expired.push_back(item.second);
    return true;
  });
  return expired;
}

std::uint64_t WorkBook::NextDeadline() const {
  std::uint64_t next = UINT64_MAX;
  for (const auto& [id, work] : works_) next = std::min(next, work.deadline_ms);
  return next;
}

}  // namespace assay::agent
