// SPDX-License-Identifier: Apache-2.0
// The lines of the audit trail, one JSON object each (docs/protocol.md lists the members). Values are hexadecimal,
// numbers, codes of ours, or escaped text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sdk/core/bytes.h"
#include "sdk/core/evidence.h"
#include "sdk/core/protocol.h"
#include "sdk/core/tpm.h"
#include "verifier/enrollment/service.h"

namespace assay::server {

struct AttestRecord {
  std::string_view outcome;  // "judged", "replay", "cloned_state", "tpm_cleared", "aik_retired"
  Digest host{};
  Digest attester{};
  std::uint64_t generation = 0;
  tpm::ClockInfo clock;
  std::uint64_t challenge_age_ms = 0;
  Digest policy{};
  std::uint64_t at_ms = 0;
  Tier tier = Tier::kNone;
  const std::vector<Reason>* reasons = nullptr;
  const TokenRequest* request = nullptr;
  bool token_issued = false;
};
std::string EncodeRecord(const AttestRecord& record);

// `clock`: of the quote that proved a renewal.
std::string EncodeRecord(const enrollment::EnrollmentRecord& record, const std::optional<tpm::ClockInfo>& clock,
                         std::uint64_t at_ms);

struct SystemRecord {
  std::string_view event;  // "start", "stop", "policy_loaded", "policy_refused"
  std::string detail;
  std::uint64_t at_ms = 0;
};
std::string EncodeRecord(const SystemRecord& record);

std::string ReasonsJson(const std::vector<Reason>& reasons);

// What a record says to the fence. kFence: the host, counters and generation of one that moved it ("attest" with outcome
// "judged", and renewals). kForgotten: an operator forgot `host`, so its generations begin anew. Reads what EncodeRecord
// and the operator's routes wrote; a line it cannot read is an error.
struct FenceMark {
  Digest host{};
  std::uint64_t generation = 0;
  tpm::ClockInfo clock;
};
enum class MarkKind : std::uint8_t { kNone, kFence, kForgotten };
Result<MarkKind> ReadFenceMark(std::string_view record, FenceMark& mark);

}  // namespace assay::server
