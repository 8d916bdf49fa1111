// SPDX-License-Identifier: Apache-2.0
// Host token: a fresh quote for one game server's nonce, in a fixed little-endian layout with a version byte.
// It never stands alone: the server checks it together with a valid result token (sdk/server).
//
// Layout (sizes in bytes):
//   0   "AHT" 3 | version 1
//   4   tag 1 (0 host token, 1 heartbeat) | gate state 1 | PCR count 1 | entry count 1
//   8   sequence 8
//   16  attester 32 | server nonce 32 | session key hash 32 | gate policy digest 32
//   144 policy version 8
//   152 PCR mask 4 | attest size 2 | signature size 2 | entries size 4
//   164 ---- end of the fixed part. extraData of the quote = ExtraData(tag, server nonce, body digest, no binding);
//       body digest = SHA-256(bytes 0..151 | entries); the mask and the values are bound by the quote itself
//   164 PCR values: count * 32, ascending (SHA-256 bank), PCR 14 among them
//       runtime-log entries since the result: each 2 bytes size and the encoded entry
//       TPMS_ATTEST | TPMT_SIGNATURE
#pragma once

#include <array>
#include <cstdint>

#include "sdk/core/bytes.h"
#include "sdk/core/evidence.h"
#include "sdk/core/limits.h"
#include "sdk/core/result.h"

namespace assay {

inline constexpr std::size_t kHostTokenFixed = 164;
inline constexpr std::size_t kHostTokenEntries = 64;

// All views; parsing and serializing allocate nothing.
struct HostToken {
  QuoteTag tag = QuoteTag::kHostToken;  // kHostToken or kHeartbeat
  GateState gate = GateState::kAbsent;
  std::uint64_t sequence = 0;
  Digest attester{};
  Digest server_nonce{};
  Digest session_key_hash{};
  Digest policy{};
  std::uint64_t policy_version = 0;
  std::uint32_t pcr_mask = 0;
  Bytes pcr_values;  // popcount(pcr_mask) * 32
  Bytes entries;     // the framed entries
  std::uint8_t entry_count = 0;
  Bytes attest;
  Bytes signature;
};

// kLimit when `out` is too small (limits::kHostToken is always enough); the number of bytes written.
Result<std::size_t> SerializeHostToken(const HostToken& token, MutableBytes out);
Result<HostToken> ParseHostToken(Bytes encoded);
bool TryParseHostToken(Bytes encoded, HostToken& token) noexcept;  // the same without an Error's text; false: refused
// SHA-256 of the fixed part's first 152 bytes (up to the sizes) and the entries: goes into ExtraData.
Digest HostTokenBodyDigest(const HostToken& token) noexcept;

}  // namespace assay
