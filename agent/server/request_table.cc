// SPDX-License-Identifier: Apache-2.0
#include "agent/server/request_table.h"

#include <algorithm>

#include "sdk/core/limits.h"

namespace assay::agent {
namespace {

using local::Kind;
constexpr std::size_t kBare = 16;
constexpr std::size_t kChallengeSize = 512;
constexpr std::size_t kTokenSize = 1024;

constexpr RequestRow kRows[] = {
    {Kind::kStatus, "status", Permit::kAnyone, kBare, false},
    {Kind::kWaitWork, "wait-work", Permit::kRelay, kBare, false},
    {Kind::kEvidence, "evidence", Permit::kRelay, kChallengeSize, true},
    {Kind::kDeliver, "deliver", Permit::kRelay, limits::kLocalRequest, false},
    {Kind::kResultToken, "result-token", Permit::kAnyone, kTokenSize, true},
    {Kind::kHostToken, "host-token", Permit::kAnyone, kTokenSize, true},
    {Kind::kShowEvidence, "show-evidence", Permit::kRoot, kBare, true},
    {Kind::kAttester, "attester", Permit::kRelay, kBare, false},
    {Kind::kDoctor, "doctor", Permit::kRoot, kBare, false},
};

}  // namespace

const RequestRow* FindRow(Kind kind) noexcept {
  for (const RequestRow& row : kRows)
    if (row.kind == kind) return &row;
  return nullptr;
}

bool IsPermitted(const RequestRow& row, const Caller& caller) noexcept {
  switch (row.permit) {
    case Permit::kAnyone: return true;
    case Permit::kRelay: return caller.relay;
    case Permit::kRoot: return caller.uid == 0;
  }
  return false;
}

std::size_t FrameLimit(const Caller& caller) noexcept {
  std::size_t limit = 0;
  for (const RequestRow& row : kRows)
    if (IsPermitted(row, caller)) limit = std::max(limit, row.max_size);
  return limit;
}

}  // namespace assay::agent
