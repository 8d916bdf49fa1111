// SPDX-License-Identifier: Apache-2.0
// Evidence on the wire (docs/evidence.cddl): a body, the quote that binds it, and the PCR values of the quote.
// Decoding yields views into the input. Nothing in it is believed before CheckQuote passed.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "sdk/core/bytes.h"
#include "sdk/core/limits.h"
#include "sdk/core/result.h"
#include "sdk/core/tpm.h"

namespace assay {

// What a quote's extraData stands for. The agent signs nothing outside these tags.
enum class QuoteTag : std::uint8_t { kEvidence, kHostToken, kHeartbeat };
std::string_view QuoteTagText(QuoteTag tag) noexcept;  // "assay/evidence/1", "assay/host-token/1", "assay/heartbeat/1"

// extraData = SHA-256(deterministic CBOR [tag, nonce, body digest, channel binding or null]). No allocation.
// nonce at most 64 bytes, binding empty or 32 bytes (RFC 9266 tls-exporter): longer aborts.
Digest ExtraData(QuoteTag tag, Bytes nonce, const Digest& body_digest, Bytes channel_binding) noexcept;

struct PcrValue {
  std::uint8_t pcr = 0;
  Bytes value;  // as long as the bank's digest
};
struct PcrValues {  // ascending PCR numbers, one bank
  tpm::Alg hash = tpm::Alg::kSha256;
  std::array<PcrValue, limits::kPcrs> items{};
  std::size_t count = 0;
  std::uint32_t Mask() const noexcept;
  const PcrValue* Find(std::uint8_t pcr) const noexcept;
};

enum class GateState : std::uint8_t { kAbsent = 0, kMonitor = 1, kEnforce = 2, kMaintenance = 3, kBroken = 4 };
std::string_view GateStateName(GateState state) noexcept;  // "absent", "monitor", ...
Result<GateState> GateStateFromName(std::string_view name);

enum class RuntimeAnchor : std::uint8_t { kSelfReported = 0, kMeasured = 1 };
std::string_view RuntimeAnchorName(RuntimeAnchor anchor) noexcept;  // "self_reported", "measured"

// The caller that asked for a result token, as the agent measured it.
struct CallerIdentity {
  bool measured = false;  // false: "unmeasured", and executable is all zero
  Digest executable{};    // SHA-256 of the main executable
};

// A result token was asked for.
struct TokenRequest {
  std::string_view audience;  // the title, as the policy names it
  std::string_view match;     // the server's match or session id, may be empty
  Digest server_nonce{};      // limits::kServerNonce bytes
  Digest session_key_hash{};  // SHA-256 of the live channel's public key (cnf)
  CallerIdentity caller;
};

struct BootEvidence {
  Bytes firmware_log;       // from firmware_offset on
  Digest firmware_known{};  // digest of the part the verifier already has; zero with offset 0
  std::uint64_t firmware_offset = 0;
  Bytes ima_log;  // from ima_offset on
  std::uint64_t ima_offset = 0;
  Digest ima_aggregate{};  // running PCR 10 value at ima_offset
};

struct Counter {
  std::string_view name;
  std::uint64_t value = 0;
};

struct RuntimeEvidence {
  Digest agent{};       // SHA-256 of the agent's executable
  Digest bpf_object{};  // zero while the gate is absent
  GateState gate = GateState::kAbsent;
  RuntimeAnchor anchor = RuntimeAnchor::kSelfReported;  // claimed: the verifier decides what it accepts
  std::vector<std::string_view> hooks;
  Digest policy{};
  std::uint64_t policy_version = 0;
  std::string_view scope;  // "none" while the gate is absent
  std::vector<Counter> counters;
  std::uint64_t drops = 0;
  Digest log_base{};           // PCR 14 before entry log_from
  std::uint64_t log_from = 0;  // index of the first entry carried
  std::vector<Bytes> log;      // encoded RuntimeEntry items (runtime_log.h)
};

struct PlatformEvidence {  // what the running kernel says of itself: claims, not proofs
  enum class Tri : std::uint8_t { kUnknown = 0, kOff = 1, kOn = 2 };
  Tri secure_boot = Tri::kUnknown;
  std::string_view lockdown;  // "none", "integrity", "confidentiality", "unknown"
  Tri module_signatures = Tri::kUnknown;
  Tri iommu = Tri::kUnknown;
  std::string_view kernel_release;
  std::uint64_t taint = 0;
  Tri kexec_loaded = Tri::kUnknown;
  Tri unprivileged_bpf = Tri::kUnknown;
};

inline constexpr std::uint64_t kEvidenceVersion = 1;

struct EvidenceBody {
  Digest attester{};  // SHA-256 of the AIK's SPKI
  BootEvidence boot;
  RuntimeEvidence runtime;
  PlatformEvidence platform;
  std::optional<TokenRequest> request;
};

struct Evidence {
  Bytes body;       // encoded EvidenceBody: its digest is bound by the quote
  Bytes quote;      // TPMS_ATTEST as the TPM made it
  Bytes signature;  // TPMT_SIGNATURE as the TPM made it
  Bytes nonce;      // the challenge answered, limits::kChallenge bytes
  PcrValues pcrs;
};

Buffer EncodeEvidenceBody(const EvidenceBody& body);
Result<EvidenceBody> DecodeEvidenceBody(Bytes encoded);
Buffer EncodeEvidence(const Evidence& evidence);
Result<Evidence> DecodeEvidence(Bytes encoded);

}  // namespace assay
