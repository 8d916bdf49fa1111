// SPDX-License-Identifier: Apache-2.0
// The agent's own measurement log behind PCR 14: entry codec and replay. Pure: files and TPM are the agent's.
#pragma once

#include <cstdint>
#include <vector>

#include "sdk/core/bytes.h"
#include "sdk/core/result.h"

namespace assay {

enum class EntryKind : std::uint8_t {
  kIdentity = 1,  // every start of an agent
  kPolicy = 2,    // a gate policy was loaded
  kBatch = 3,     // digests first seen in scope
  kRelease = 4,   // the gate was lowered; stays until reboot
  kStop = 5,      // a clean stop
};

struct RuntimeEntry {
  std::uint64_t index = 0;  // 0 is the first of this boot
  EntryKind kind = EntryKind::kIdentity;
  Digest agent{};                    // kIdentity
  Digest bpf_object{};               // kIdentity; zero while the gate is absent
  Digest config{};                   // kIdentity
  std::uint64_t predecessor = 0;     // kIdentity: entries that were there before
  Digest policy{};                   // kPolicy
  std::uint64_t policy_version = 0;  // kPolicy
  std::vector<Digest> digests;       // kBatch
};

Buffer EncodeRuntimeEntry(const RuntimeEntry& entry);  // deterministic CBOR array, docs/evidence.cddl
Result<RuntimeEntry> DecodeRuntimeEntry(Bytes encoded);

// PCR extend: SHA-256(value | SHA-256(entry)).
Digest ExtendWithEntry(const Digest& value, Bytes encoded_entry) noexcept;

}  // namespace assay
