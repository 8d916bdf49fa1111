// SPDX-License-Identifier: Apache-2.0
// What the public handles of server.h hold, and small helpers of the C shims. Nothing throws across the ABI.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sdk/core/crypto.h"
#include "sdk/core/token.h"
#include "sdk/include/assay/server.h"

struct assay_keyset {
  assay::KeySet keys;
};

struct assay_revocations {
  std::int64_t expires_at = 0;
  std::uint64_t number = 0;
  std::vector<std::string> token_ids;   // sorted
  std::vector<std::string> device_ids;  // sorted
};

struct assay_attester {
  assay::PublicKey aik;
  assay::SignatureScheme scheme;
  assay_host_block host;
  assay::Digest session_key_hash;
  assay::GateState gate;
  assay::Digest gate_policy;
  std::uint64_t gate_policy_version;
  std::int64_t expires_at_s;
};

namespace assay::sdk {

inline constexpr std::int64_t kMillisecondsPerSecond = 1000;
inline constexpr std::int64_t kLatestTimeMs = std::int64_t{1} << 50;  // keeps sums of times far from overflow

inline Bytes View(const std::uint8_t* bytes, std::size_t size) noexcept { return {bytes, size}; }

// The text behind a required C string of at most `limit` bytes; false when there is none.
inline bool Text(const char* text, std::size_t limit, std::string_view& out) noexcept {
  if (text == nullptr) return false;
  std::size_t size = 0;
  while (size <= limit && text[size] != '\0') ++size;
  out = {text, size};
  return size <= limit;
}

inline bool IsTime(std::int64_t ms) noexcept { return ms > 0 && ms < kLatestTimeMs; }

// The codes of what VerifyJws refuses.
assay_code CodeOf(JwsFault fault) noexcept;

}  // namespace assay::sdk
