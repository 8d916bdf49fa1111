// SPDX-License-Identifier: Apache-2.0
// The check of a host token or heartbeat against an accepted result. Pure: no clock, no state, no allocation.
#pragma once

#include "sdk/core/host_token.h"
#include "sdk/server/handles.h"

namespace assay::sdk {

// What the server itself knows and the token must answer to.
struct HostExpected {
  QuoteTag tag = QuoteTag::kHostToken;
  std::uint64_t sequence = 0;
  Bytes nonce, session_key_hash;
  std::int64_t issued_ms = 0, now_ms = 0, max_age_ms = 0;
  std::uint64_t clock_floor_ms = 0;  // the quote's clock must be higher
  std::uint32_t restart_floor = 0;   // the quote's restartCount must not be lower
};

assay_code CheckHostToken(const assay_attester& attester, Bytes encoded, const HostExpected& expected,
                          assay_host_result& out) noexcept;

}  // namespace assay::sdk
