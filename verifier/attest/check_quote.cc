// SPDX-License-Identifier: Apache-2.0
#include "verifier/attest/check_quote.h"

namespace assay::attest {
namespace {

// The digest a TPM signs is over the values of the selected PCRs in ascending order (Part 1, 17.6). The values used
// later are those of the PCRs in the signed selection, so that is what is hashed.
Mark CheckPcrDigest(const PcrValues& values, const tpm::PcrSelections& selections, Bytes signed_digest) noexcept {
  std::array<std::uint8_t, limits::kPcrs * kSha256Size> joined;
  std::size_t size = 0;
  for (std::size_t s = 0; s < selections.count; ++s) {
    if (selections.items[s].hash != values.hash || values.hash != tpm::Alg::kSha256) return Mark::kFails;
    for (std::size_t i = 0; i < values.count; ++i) {
      if ((selections.items[s].mask & (1U << values.items[i].pcr)) == 0) continue;
      if (size + kSha256Size > joined.size()) return Mark::kFails;
      CopyBytes(values.items[i].value, MutableBytes(joined).subspan(size, kSha256Size));
      size += kSha256Size;
    }
  }
  return Equal(Sha256(Bytes(joined).first(size)), signed_digest) ? Mark::kHolds : Mark::kFails;
}

QuoteCheck Refuse(QuoteFault fault) noexcept { return {fault, {}}; }

}  // namespace

std::string_view QuoteFaultCode(QuoteFault fault) noexcept {
  switch (fault) {
    case QuoteFault::kNone: return "ok";
    case QuoteFault::kMalformed: return "quote_malformed";
    case QuoteFault::kScheme: return "signature_scheme_mismatch";
    case QuoteFault::kSignature: return "signature_invalid";
    case QuoteFault::kMagic: return "not_tpm_generated";
    case QuoteFault::kType: return "not_a_quote";
    case QuoteFault::kBinding: return "binding_mismatch";
    case QuoteFault::kSelection: return "pcr_selection_mismatch";
    case QuoteFault::kPcrDigest: return "pcr_digest_mismatch";
  }
  return "unknown";
}

QuoteCheck CheckQuote(const Evidence& evidence, const QuoteExpectation& expected) noexcept {
  const auto attest = tpm::DecodeAttest(evidence.quote);
  const auto signature = tpm::DecodeSignature(evidence.signature);
  if (!attest.ok() || !signature.ok()) return Refuse(QuoteFault::kMalformed);
  const auto raw = tpm::ToRaw(*signature);
  if (!raw.ok()) return Refuse(QuoteFault::kMalformed);

  // Comparisons that can only refuse come before the expensive check; each is made again at its own mark.
  if (tpm::HasScheme(*signature, expected.scheme) &&
      CheckBinding(attest->extra_data, expected.extra_data) == Mark::kFails && attest->magic == tpm::kGenerated &&
      attest->type == static_cast<std::uint16_t>(tpm::AttestType::kQuote)) {
    return Refuse(QuoteFault::kBinding);
  }

  // Mark 1: scheme.
  if (!tpm::HasScheme(*signature, expected.scheme)) return Refuse(QuoteFault::kScheme);
  // Mark 2: signature over the exact bytes.
  if (expected.key->VerifyDigest(expected.scheme, Sha256(evidence.quote), raw->view()) != SignatureCheck::kValid) {
    return Refuse(QuoteFault::kSignature);
  }
  // Mark 3: magic. A restricted key signs TPM_GENERATED only over what the TPM made.
  if (attest->magic != tpm::kGenerated) return Refuse(QuoteFault::kMagic);
  // Mark 4: type.
  if (attest->type != static_cast<std::uint16_t>(tpm::AttestType::kQuote)) return Refuse(QuoteFault::kType);
  // Mark 5: binding.
  if (CheckBinding(attest->extra_data, expected.extra_data) == Mark::kFails) return Refuse(QuoteFault::kBinding);
  // Mark 6: the selection inside the signed bytes.
  if (CheckSelection(attest->selections, expected.selection) == Mark::kFails) return Refuse(QuoteFault::kSelection);
  // Mark 7: PCR digest, and the values name exactly the PCRs asked.
  if (evidence.pcrs.Mask() != expected.selection.mask || evidence.pcrs.hash != expected.selection.hash)
    return Refuse(QuoteFault::kSelection);
  if (CheckPcrDigest(evidence.pcrs, attest->selections, attest->pcr_digest) == Mark::kFails)
    return Refuse(QuoteFault::kPcrDigest);
  return {QuoteFault::kNone, *attest};
}

}  // namespace assay::attest
