// SPDX-License-Identifier: Apache-2.0
// Steps, in this order: comparisons that can only refuse; the signature; then what the signature covers. A token that
// is stale, foreign or mismatching costs two short hashes, never a signature check.
#include "sdk/server/host_check.h"

#include <bit>

#include "sdk/core/cbor.h"
#include "sdk/core/evidence.h"
#include "sdk/core/runtime_log.h"
#include "sdk/core/tpm.h"

namespace assay::sdk {
namespace {

constexpr std::uint32_t kRuntimePcr = 14;

// Step 1: nothing here is believed. The nonce, the channel and the age are the server's own.
assay_code RefuseEarly(const assay_attester& attester, const HostToken& token, const HostExpected& e) noexcept {
  if (e.issued_ms > e.now_ms || e.now_ms - e.issued_ms > e.max_age_ms) return ASSAY_E_NONCE_AGE;
  if (e.now_ms >= attester.expires_at_s * kMillisecondsPerSecond) return ASSAY_E_EXPIRED;
  if (token.tag != e.tag) return ASSAY_E_TAG;
  if (!Equal(token.server_nonce, e.nonce)) return ASSAY_E_NONCE;
  if (!Equal(token.session_key_hash, e.session_key_hash) || !Equal(attester.session_key_hash, e.session_key_hash))
    return ASSAY_E_SESSION_KEY;
  if (!Equal(token.attester, attester.host.attester)) return ASSAY_E_ATTESTER;
  if (token.sequence != e.sequence) return ASSAY_E_SEQUENCE;
  if (token.gate != attester.gate) return ASSAY_E_GATE;
  if (token.policy != attester.gate_policy || token.policy_version != attester.gate_policy_version)
    return ASSAY_E_GATE_POLICY;
  return ASSAY_OK;
}

// Step 2. The scheme is the AIK record's, carried by the result; what the signature says of itself must agree.
bool SignatureHolds(const assay_attester& attester, const HostToken& token) noexcept {
  const auto signature = tpm::DecodeSignature(token.signature);
  if (!signature.ok() || !tpm::HasScheme(*signature, attester.scheme)) return false;
  const auto raw = tpm::ToRaw(*signature);
  return raw.ok() &&
         attester.aik.VerifyDigest(attester.scheme, Sha256(token.attest), raw->view()) == SignatureCheck::kValid;
}

// Step 3: what the TPM signed.
assay_code CheckQuote(const assay_attester& attester, const HostToken& token, const tpm::Attest& quote,
                      const HostExpected& e) noexcept {
  if (quote.magic != tpm::kGenerated) return ASSAY_E_MAGIC;
  if (quote.type != static_cast<std::uint16_t>(tpm::AttestType::kQuote)) return ASSAY_E_ATTEST_TYPE;
  const std::uint32_t wanted = attester.host.boot_pcr_mask | 1U << kRuntimePcr;
  if (quote.selections.count != 1 || quote.selections.items[0] != tpm::PcrSelection{tpm::Alg::kSha256, wanted} ||
      token.pcr_mask != wanted) {
    return ASSAY_E_SELECTION;
  }
  if (!Equal(Sha256(token.pcr_values), quote.pcr_digest)) return ASSAY_E_PCR_DIGEST;
  if (quote.clock.reset_count != attester.host.reset_count) return ASSAY_E_RESET_COUNT;
  if (quote.clock.restart_count < e.restart_floor) return ASSAY_E_RESTART_COUNT;
  if (quote.clock.clock <= e.clock_floor_ms) return ASSAY_E_CLOCK;
  return ASSAY_OK;
}

// The kind of an entry whose shape is that of runtime_log.h; 0 for any other bytes. Keeps nothing, so allocates nothing.
std::uint32_t EntryKindOf(Bytes entry) noexcept {
  CborReader in(entry);
  if (in.Array(3) != 3) in.Fail();
  (void)in.Uint();
  const std::uint64_t kind = in.Uint(static_cast<std::uint8_t>(EntryKind::kStop));
  for (std::size_t left = in.Array(limits::kRuntimeBatch); left > 0 && in.ok(); --left) {
    if (in.Peek() == CborKind::kUint) (void)in.Uint();
    else (void)in.Digest32();
  }
  return in.ok() && in.AtEnd() ? static_cast<std::uint32_t>(kind) : 0;
}

// Step 4: the boot PCRs are the result's, and PCR 14 is reached from the result's by entries that it allows.
assay_code CheckPcrs(const assay_attester& attester, const HostToken& token, assay_host_result& out) noexcept {
  const std::size_t before =
      static_cast<std::size_t>(std::popcount(token.pcr_mask & ((1U << kRuntimePcr) - 1))) * kSha256Size;
  const Bytes runtime = token.pcr_values.subspan(before, kSha256Size);
  if (!Equal(Sha256({token.pcr_values.first(before), token.pcr_values.subspan(before + kSha256Size)}),
             attester.host.boot_pcr_digest)) {
    return ASSAY_E_BOOT_PCRS;
  }
  Digest reached;
  CopyBytes(attester.host.pcr14, reached);
  Reader entries(token.entries);
  for (std::uint32_t i = 0; i < token.entry_count; ++i) {
    const Bytes entry = entries.Take(entries.U16Le());
    const std::uint32_t kind = EntryKindOf(entry);
    if (kind == 0 || (attester.host.allowed_entries >> kind & 1U) == 0) return ASSAY_E_ENTRY_KIND;
    out.entry_kinds |= 1U << kind;
    reached = ExtendWithEntry(reached, entry);
  }
  if (!Equal(reached, runtime)) return ASSAY_E_PCR14;
  out.entry_count = token.entry_count;
  CopyBytes(runtime, out.pcr14);
  return ASSAY_OK;
}

assay_code Check(const assay_attester& attester, Bytes encoded, const HostExpected& e,
                 assay_host_result& out) noexcept {
  HostToken token;
  if (!TryParseHostToken(encoded, token)) return ASSAY_E_MALFORMED;
  if (const assay_code code = RefuseEarly(attester, token, e); code != ASSAY_OK) return code;
  const auto quote = tpm::DecodeAttest(token.attest);
  if (!quote.ok()) return ASSAY_E_MALFORMED;
  if (!Equal(ExtraData(e.tag, token.server_nonce, HostTokenBodyDigest(token), {}), quote->extra_data))
    return ASSAY_E_BINDING;
  if (!SignatureHolds(attester, token)) return ASSAY_E_SIGNATURE;
  if (const assay_code code = CheckQuote(attester, token, *quote, e); code != ASSAY_OK) return code;
  if (const assay_code code = CheckPcrs(attester, token, out); code != ASSAY_OK) return code;
  out.clock_ms = quote->clock.clock;
  out.restart_count = quote->clock.restart_count;
  out.sequence = token.sequence;
  return ASSAY_OK;
}

}  // namespace

assay_code CheckHostToken(const assay_attester& attester, Bytes encoded, const HostExpected& expected,
                          assay_host_result& out) noexcept {
  const assay_code code = Check(attester, encoded, expected, out);
  if (code != ASSAY_OK) out = {};
  return code;
}

}  // namespace assay::sdk
