// SPDX-License-Identifier: Apache-2.0
// Who a machine is: computed by the verifier from the endorsement key, and proved by the TPM, never taken from a claim.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sdk/core/bytes.h"
#include "sdk/core/crypto.h"
#include "sdk/core/result.h"

namespace assay::enrollment {

// SHA-256("assay/host-id/1" | SubjectPublicKeyInfo of the EK).
Digest HostIdOf(const PublicKey& ek);

// The Name that the TPM must certify: of the low-range RSA-2048 template with this key. kUnsupported for another key.
Result<Buffer> CanonicalEkName(const PublicKey& ek);

// TPM2_CertifyCreation of the canonical EK by the AIK: this TPM made the object with that Name from that template, so
// a key of another template (high range, or an imported one) has no such statement.
struct CanonicalProof {
  Bytes attest;     // TPMS_ATTEST
  Bytes signature;  // TPMT_SIGNATURE
  const PublicKey* aik = nullptr;
  SignatureScheme scheme = SignatureScheme::kRsaSsaSha256;  // of the AIK's record, not of the signature
  Bytes qualifying;                                         // drawn by the verifier
  Bytes canonical_name;                                     // CanonicalEkName
};
enum class CanonicalOutcome : std::uint8_t {
  kProved,
  kMalformed,
  kBadSignature,
  kBadMagic,
  kWrongType,
  kWrongQualifying,
  kOtherObject
};
std::string_view CanonicalCode(CanonicalOutcome outcome) noexcept;  // stable, "canonical_..."
CanonicalOutcome CheckCanonicalProof(const CanonicalProof& proof);

}  // namespace assay::enrollment
