// SPDX-License-Identifier: Apache-2.0
// Host ids and the proof that an EK is the canonical one.
#include "verifier/enrollment/host_id.h"

#include "sdk/core/tpm.h"

namespace assay::enrollment {
namespace {

CanonicalOutcome CheckSigned(const CanonicalProof& proof) {
  const Result<tpm::Signature> signature = tpm::DecodeSignature(proof.signature);
  if (!signature.ok()) return CanonicalOutcome::kMalformed;
  const Result<tpm::RawSignature> raw = tpm::ToRaw(*signature);
  if (!raw.ok()) return CanonicalOutcome::kMalformed;
  if (!tpm::HasScheme(*signature, proof.scheme)) return CanonicalOutcome::kBadSignature;
  const bool valid = proof.aik->VerifyDigest(proof.scheme, Sha256(proof.attest), raw->view()) == SignatureCheck::kValid;
  return valid ? CanonicalOutcome::kProved : CanonicalOutcome::kBadSignature;
}

}  // namespace

Digest HostIdOf(const PublicKey& ek) {
  const Buffer spki = ek.Spki();
  return Sha256({AsBytes("assay/host-id/1"), Bytes(spki)});
}

Result<Buffer> CanonicalEkName(const PublicKey& ek) {
  if (ek.type() != KeyType::kRsa2048) return MakeError(Code::kUnsupported, "the canonical EK is RSA-2048");
  ASSAY_TRY(const Buffer area, tpm::EkPublicArea(tpm::EkKind::kRsa2048Low, ek));
  return tpm::ObjectName(area);
}

CanonicalOutcome CheckCanonicalProof(const CanonicalProof& proof) {
  // Step 1: the AIK signed these bytes. Nothing in them is looked at before.
  const CanonicalOutcome signed_by_aik = CheckSigned(proof);
  if (signed_by_aik != CanonicalOutcome::kProved) return signed_by_aik;
  const Result<tpm::Attest> attest = tpm::DecodeAttest(proof.attest);
  if (!attest.ok())
    return attest.error().code == Code::kUnsupported ? CanonicalOutcome::kWrongType : CanonicalOutcome::kMalformed;
  // Step 2: made inside a TPM, as a statement about a creation (Part 1, section 31.1.2).
  if (attest->magic != tpm::kGenerated) return CanonicalOutcome::kBadMagic;
  if (attest->type != static_cast<std::uint16_t>(tpm::AttestType::kCreation)) return CanonicalOutcome::kWrongType;
  // Step 3: for this enrollment, and about the EK of the low-range template with the certificate's key.
  if (!Equal(attest->extra_data, proof.qualifying)) return CanonicalOutcome::kWrongQualifying;
  if (!Equal(attest->object_name, proof.canonical_name)) return CanonicalOutcome::kOtherObject;
  return CanonicalOutcome::kProved;
}

std::string_view CanonicalCode(CanonicalOutcome outcome) noexcept {
  switch (outcome) {
    case CanonicalOutcome::kProved: return "canonical_proved";
    case CanonicalOutcome::kMalformed: return "canonical_proof_malformed";
    case CanonicalOutcome::kBadSignature: return "canonical_proof_signature";
    case CanonicalOutcome::kBadMagic: return "canonical_proof_magic";
    case CanonicalOutcome::kWrongType: return "canonical_proof_type";
    case CanonicalOutcome::kWrongQualifying: return "canonical_proof_qualifying";
    case CanonicalOutcome::kOtherObject: return "canonical_ek_mismatch";
  }
  return "canonical_proof_malformed";
}

}  // namespace assay::enrollment
