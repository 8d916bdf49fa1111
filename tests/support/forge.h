// SPDX-License-Identifier: Apache-2.0
// Makes quotes with software keys, so that a test can break one field at a time. Header only: few lines, one use.
#pragma once

#include <bit>
#include <string>
#include <vector>

#include "sdk/core/crypto.h"
#include "sdk/core/evidence.h"
#include "sdk/core/tpm.h"

namespace assay::test {

// Every field of a TPMS_ATTEST of a quote; the defaults are what a TPM would say.
struct QuoteFields {
  std::uint32_t magic = tpm::kGenerated;
  std::uint16_t type = static_cast<std::uint16_t>(tpm::AttestType::kQuote);
  Digest extra_data{};
  tpm::ClockInfo clock{.clock = 100'000, .reset_count = 3, .restart_count = 0, .safe = true};
  std::vector<tpm::PcrSelection> selections;
  Digest pcr_digest{};
};

inline Buffer EncodeQuote(const QuoteFields& fields) {
  Writer out;
  out.U32Be(fields.magic);
  out.U16Be(fields.type);
  out.PutU16Sized(Buffer(34, 0x0B));
  out.PutU16Sized(fields.extra_data);
  out.U64Be(fields.clock.clock);
  out.U32Be(fields.clock.reset_count);
  out.U32Be(fields.clock.restart_count);
  out.U8(fields.clock.safe ? 1 : 0);
  out.U64Be(0x2020'0312'0001'2000);
  out.U32Be(static_cast<std::uint32_t>(fields.selections.size()));
  for (const auto& selection : fields.selections) {
    out.U16Be(static_cast<std::uint16_t>(selection.hash));
    out.U8(3);
    out.U8(static_cast<std::uint8_t>(selection.mask));
    out.U8(static_cast<std::uint8_t>(selection.mask >> 8));
    out.U8(static_cast<std::uint8_t>(selection.mask >> 16));
  }
  out.PutU16Sized(fields.pcr_digest);
  return std::move(out).Take();
}

inline Buffer EncodeSignature(SignatureScheme scheme, Bytes raw) {
  Writer out;
  switch (scheme) {
    case SignatureScheme::kRsaSsaSha256: out.U16Be(0x0014); break;
    case SignatureScheme::kRsaPssSha256: out.U16Be(0x0016); break;
    default: out.U16Be(0x0018); break;
  }
  out.U16Be(0x000B);
  if (scheme == SignatureScheme::kEcdsaP256Sha256) {
    out.PutU16Sized(raw.first(32));
    out.PutU16Sized(raw.subspan(32));
  } else {
    out.PutU16Sized(raw);
  }
  return std::move(out).Take();
}

// One piece of evidence whose parts can be changed before Encode().
struct ForgedEvidence {
  Buffer body;
  Buffer quote;
  Buffer signature;
  Buffer nonce = Buffer(limits::kChallenge, 0x21);
  std::vector<std::pair<std::uint8_t, Buffer>> pcrs;
  tpm::Alg bank = tpm::Alg::kSha256;

  Evidence View() const {
    Evidence evidence{.body = body, .quote = quote, .signature = signature, .nonce = nonce, .pcrs = {}};
    evidence.pcrs.hash = bank;
    for (const auto& [pcr, value] : pcrs) evidence.pcrs.items[evidence.pcrs.count++] = {pcr, value};
    return evidence;
  }
};

inline Digest DigestOfPcrs(const std::vector<std::pair<std::uint8_t, Buffer>>& pcrs, std::uint32_t mask) {
  Writer joined;
  for (const auto& [pcr, value] : pcrs)
    if ((mask & (1U << pcr)) != 0) joined.Put(value);
  return Sha256(joined.buffer());
}

inline void SignQuote(ForgedEvidence& evidence, const PrivateKey& key, SignatureScheme scheme,
                      const QuoteFields& fields) {
  evidence.quote = EncodeQuote(fields);
  evidence.signature = EncodeSignature(scheme, key.SignDigest(scheme, Sha256(evidence.quote)).value());
}

}  // namespace assay::test
