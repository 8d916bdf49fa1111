// SPDX-License-Identifier: Apache-2.0
// Is this quote a fresh signature of that TPM over exactly what was asked? One mark a step, in a fixed order.
// Nothing of the evidence may be used before the result says kNone. Pure; any thread; no allocation.
#pragma once

#include <cstdint>

#include "sdk/core/crypto.h"
#include "sdk/core/evidence.h"
#include "sdk/core/tpm.h"

namespace assay::attest {

enum class QuoteFault : std::uint8_t {
  kNone,
  kMalformed,  // the structures do not decode
  kScheme,     // 1: another algorithm than the AIK's record says
  kSignature,  // 2
  kMagic,      // 3: not made inside a TPM
  kType,       // 4: a TPM statement, but no quote
  kBinding,    // 5: extraData is not that of this nonce, body and channel
  kSelection,  // 6: other PCRs, another bank, or more than one
  kPcrDigest,  // 7: the PCR values sent are not those signed
};
std::string_view QuoteFaultCode(QuoteFault fault) noexcept;  // stable codes: "signature_invalid", ...

struct QuoteExpectation {
  const PublicKey* key = nullptr;  // the AIK
  SignatureScheme scheme = SignatureScheme::kRsaSsaSha256;
  Digest extra_data{};
  tpm::PcrSelection selection;
};

struct QuoteCheck {
  QuoteFault fault = QuoteFault::kMalformed;
  tpm::Attest attest;  // views into the evidence; only with kNone
};

QuoteCheck CheckQuote(const Evidence& evidence, const QuoteExpectation& expected) noexcept;

// The single marks that a test build can replace one at a time (each alone in its file).
enum class Mark : std::uint8_t { kFails, kHolds };
Mark CheckBinding(Bytes extra_data, const Digest& expected) noexcept;
Mark CheckSelection(const tpm::PcrSelections& signed_selections, tpm::PcrSelection asked) noexcept;

}  // namespace assay::attest
