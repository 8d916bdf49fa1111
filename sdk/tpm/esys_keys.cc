// SPDX-License-Identifier: Apache-2.0
// Keys and attestations of EsysDevice.
#include <tss2/tss2_mu.h>

#include <algorithm>

#include "sdk/tpm/esys_device.h"

namespace assay::tpm {
namespace {

constexpr int kQuoteAttempts = 5;  // PCRs may move between the quote and reading them

template <typename T, typename F>
Result<Buffer> Marshal(const T& value, F marshal) {
  Buffer out(sizeof(T) + 64);
  std::size_t size = 0;
  if (const TSS2_RC rc = marshal(&value, out.data(), out.size(), &size); rc != TSS2_RC_SUCCESS) return TpmError("encoding a TPM structure", rc);
  out.resize(size);
  return out;
}

template <typename T, typename F>
Result<T> Unmarshal(Bytes bytes, F unmarshal) {
  T value{};
  std::size_t offset = 0;
  if (const TSS2_RC rc = unmarshal(bytes.data(), bytes.size(), &offset, &value); rc != TSS2_RC_SUCCESS) return TpmError("decoding a TPM structure", rc);
  if (offset != bytes.size()) return MakeError(Code::kMalformed, "a TPM structure is followed by stray bytes");
  return value;
}

Result<TPM2B_DATA> ToData(Bytes bytes) {
  TPM2B_DATA out{};
  if (bytes.size() > sizeof(out.buffer)) return MakeError(Code::kLimit, "qualifying data is too long");
  out.size = static_cast<UINT16>(bytes.size());
  CopyBytes(bytes, MutableBytes(out.buffer, bytes.size()));
  return out;
}

}  // namespace

Result<Buffer> MarshalPublic(const TPMT_PUBLIC& area) { return Marshal(area, Tss2_MU_TPMT_PUBLIC_Marshal); }

Result<CreatedKey> EsysDevice::CreatePrimary(const char* what, Bytes area) {
  TPM2B_PUBLIC in_public{};
  ASSAY_TRY(in_public.publicArea, Unmarshal<TPMT_PUBLIC>(area, Tss2_MU_TPMT_PUBLIC_Unmarshal));
  const TPM2B_SENSITIVE_CREATE sensitive{};
  const TPM2B_DATA outside{};
  const TPML_PCR_SELECTION creation_pcrs{};
  ESYS_TR object = ESYS_TR_NONE;
  TPM2B_PUBLIC* raw_public = nullptr;
  TPM2B_CREATION_DATA* raw_data = nullptr;
  TPM2B_DIGEST* raw_hash = nullptr;
  TPMT_TK_CREATION* raw_ticket = nullptr;
  ASSAY_CHECK_OK(RunChecked(what, [&] {
    return Esys_CreatePrimary(esys_.get(), ESYS_TR_RH_ENDORSEMENT, ESYS_TR_PASSWORD, ESYS_TR_NONE, ESYS_TR_NONE, &sensitive, &in_public, &outside,
                              &creation_pcrs, &object, &raw_public, &raw_data, &raw_hash, &raw_ticket);
  }));
  const EsysOwned<TPM2B_PUBLIC> made(raw_public);
  const EsysOwned<TPM2B_CREATION_DATA> data(raw_data);
  const EsysOwned<TPM2B_DIGEST> hash(raw_hash);
  const EsysOwned<TPMT_TK_CREATION> ticket(raw_ticket);
  CreatedKey key;
  TPM2_HANDLE handle = 0;
  const TSS2_RC rc = Esys_TR_GetTpmHandle(esys_.get(), object, &handle);
  auto encoded = MarshalPublic(made->publicArea);
  auto encoded_ticket = Marshal(*ticket, Tss2_MU_TPMT_TK_CREATION_Marshal);
  if (rc != TSS2_RC_SUCCESS || !encoded.ok() || !encoded_ticket.ok()) {
    (void)Esys_FlushContext(esys_.get(), object);
    return rc != TSS2_RC_SUCCESS ? TpmError(what, rc) : !encoded.ok() ? encoded.error() : encoded_ticket.error();
  }
  objects_[handle] = object;
  key.handle = handle;
  key.public_area = *std::move(encoded);
  key.creation_hash.assign(hash->buffer, hash->buffer + hash->size);
  key.creation_ticket = *std::move(encoded_ticket);
  return key;
}

Result<CreatedKey> EsysDevice::CreateEk(EkKind kind) { return CreatePrimary("creating the endorsement key", EkTemplate(kind)); }
Result<CreatedKey> EsysDevice::CreateAik(AikKind kind, Bytes unique) { return CreatePrimary("creating the attestation key", AikTemplate(kind, unique)); }

Status EsysDevice::RemovePersistent(std::uint32_t persistent) {
  ASSAY_TRY(const ESYS_TR object, ObjectOf(persistent));
  ESYS_TR gone = ESYS_TR_NONE;
  ASSAY_CHECK_OK(RunChecked("removing a persistent key", [&] {
    return Esys_EvictControl(esys_.get(), ESYS_TR_RH_OWNER, object, ESYS_TR_PASSWORD, ESYS_TR_NONE, ESYS_TR_NONE, persistent, &gone);
  }));
  objects_.erase(persistent);  // ESYS dropped the object with the eviction
  return Ok();
}

Status EsysDevice::Persist(std::uint32_t transient, std::uint32_t persistent) {
  ASSAY_TRY(const ESYS_TR object, ObjectOf(transient));
  ESYS_TR made = ESYS_TR_NONE;
  const auto persist = [&] {
    return Esys_EvictControl(esys_.get(), ESYS_TR_RH_OWNER, object, ESYS_TR_PASSWORD, ESYS_TR_NONE, ESYS_TR_NONE, persistent, &made);
  };
  TSS2_RC rc = Run(persist);
  if (rc == TPM2_RC_NV_DEFINED) {  // an older key is there: replaced
    ASSAY_CHECK_OK(RemovePersistent(persistent));
    rc = Run(persist);
  }
  if (rc != TSS2_RC_SUCCESS) return TpmError("making a key persistent", rc);
  Forget(persistent);
  objects_[persistent] = made;
  return Ok();
}

Result<Secret> EsysDevice::ActivateCredential(std::uint32_t aik, std::uint32_t ek, Bytes credential_blob, Bytes encrypted_secret) {
  ASSAY_TRY(const ESYS_TR aik_object, ObjectOf(aik));
  ASSAY_TRY(const ESYS_TR ek_object, ObjectOf(ek));
  ASSAY_TRY(const TPM2B_ID_OBJECT blob, Unmarshal<TPM2B_ID_OBJECT>(credential_blob, Tss2_MU_TPM2B_ID_OBJECT_Unmarshal));
  ASSAY_TRY(const TPM2B_ENCRYPTED_SECRET secret, Unmarshal<TPM2B_ENCRYPTED_SECRET>(encrypted_secret, Tss2_MU_TPM2B_ENCRYPTED_SECRET_Unmarshal));
  const TPMT_SYM_DEF symmetric{.algorithm = TPM2_ALG_NULL, .keyBits = {}, .mode = {}};
  ESYS_TR session = ESYS_TR_NONE;
  ASSAY_CHECK_OK(RunChecked("starting a policy session", [&] {
    return Esys_StartAuthSession(esys_.get(), ESYS_TR_NONE, ESYS_TR_NONE, ESYS_TR_NONE, ESYS_TR_NONE, ESYS_TR_NONE, nullptr, TPM2_SE_POLICY, &symmetric,
                                 TPM2_ALG_SHA256, &session);
  }));
  TPM2B_DIGEST* raw = nullptr;
  // The EK's policy: whoever holds the endorsement hierarchy's authorization (section B.6.2 of the EK profile).
  Status done = RunChecked("authorizing the endorsement key", [&] {
    return Esys_PolicySecret(esys_.get(), ESYS_TR_RH_ENDORSEMENT, session, ESYS_TR_PASSWORD, ESYS_TR_NONE, ESYS_TR_NONE, nullptr, nullptr, nullptr, 0,
                             nullptr, nullptr);
  });
  if (done.ok()) {
    done = RunChecked("activating a credential", [&] {
      return Esys_ActivateCredential(esys_.get(), aik_object, ek_object, ESYS_TR_PASSWORD, session, ESYS_TR_NONE, &blob, &secret, &raw);
    });
  }
  const EsysOwned<TPM2B_DIGEST> certificate(raw);
  if (!done.ok()) {
    (void)Esys_FlushContext(esys_.get(), session);  // a session that authorized a command successfully is gone already
    return done.error();
  }
  Secret out = Secret::CopyOf(Bytes(certificate->buffer, certificate->size));
  OPENSSL_cleanse(certificate->buffer, sizeof(certificate->buffer));
  return out;
}

Result<AttestedBytes> EsysDevice::CertifyCreation(std::uint32_t aik, const CreatedKey& object, Bytes qualifying) {
  ASSAY_TRY(const ESYS_TR aik_object, ObjectOf(aik));
  ASSAY_TRY(const ESYS_TR made, ObjectOf(object.handle));
  ASSAY_TRY(const TPM2B_DATA data, ToData(qualifying));
  ASSAY_TRY(const TPMT_TK_CREATION ticket, Unmarshal<TPMT_TK_CREATION>(object.creation_ticket, Tss2_MU_TPMT_TK_CREATION_Unmarshal));
  TPM2B_DIGEST hash{};
  if (object.creation_hash.size() > sizeof(hash.buffer)) return MakeError(Code::kMalformed, "a creation hash is too long");
  hash.size = static_cast<UINT16>(object.creation_hash.size());
  CopyBytes(object.creation_hash, MutableBytes(hash.buffer, object.creation_hash.size()));
  TPMT_SIG_SCHEME scheme{};
  scheme.scheme = TPM2_ALG_NULL;  // the key's own
  TPM2B_ATTEST* raw_attest = nullptr;
  TPMT_SIGNATURE* raw_signature = nullptr;
  const Status done = RunChecked("certifying the endorsement key", [&] {
    return Esys_CertifyCreation(esys_.get(), aik_object, made, ESYS_TR_PASSWORD, ESYS_TR_NONE, ESYS_TR_NONE, &data, &hash, &scheme, &ticket, &raw_attest,
                                &raw_signature);
  });
  const EsysOwned<TPM2B_ATTEST> attest(raw_attest);
  const EsysOwned<TPMT_SIGNATURE> signature(raw_signature);
  if (!done.ok()) return done.error();
  ASSAY_TRY(Buffer encoded, Marshal(*signature, Tss2_MU_TPMT_SIGNATURE_Marshal));
  return AttestedBytes{Buffer(attest->attestationData, attest->attestationData + attest->size), std::move(encoded)};
}

Result<QuoteResult> EsysDevice::Quote(std::uint32_t aik, PcrSelection selection, const Digest& extra_data) {
  ASSAY_TRY(const ESYS_TR aik_object, ObjectOf(aik));
  ASSAY_TRY(const TPM2B_DATA data, ToData(extra_data));
  const TPML_PCR_SELECTION wanted = ToEsys(selection);
  TPMT_SIG_SCHEME scheme{};
  scheme.scheme = TPM2_ALG_NULL;
  for (int attempt = 0; attempt < kQuoteAttempts; ++attempt) {
    TPM2B_ATTEST* raw_attest = nullptr;
    TPMT_SIGNATURE* raw_signature = nullptr;
    const Status done = RunChecked("quoting", [&] {
      return Esys_Quote(esys_.get(), aik_object, ESYS_TR_PASSWORD, ESYS_TR_NONE, ESYS_TR_NONE, &data, &scheme, &wanted, &raw_attest, &raw_signature);
    });
    const EsysOwned<TPM2B_ATTEST> attest(raw_attest);
    const EsysOwned<TPMT_SIGNATURE> signature(raw_signature);
    if (!done.ok()) return done.error();
    QuoteResult result;
    result.attest.assign(attest->attestationData, attest->attestationData + attest->size);
    ASSAY_TRY(result.signature, Marshal(*signature, Tss2_MU_TPMT_SIGNATURE_Marshal));
    ASSAY_TRY(result.pcrs, ReadPcrs(selection));
    ASSAY_TRY(const Attest decoded, DecodeAttest(result.attest));
    Writer joined;
    for (const auto& value : result.pcrs) joined.Put(value);
    if (Equal(Sha256(joined.buffer()), decoded.pcr_digest)) return result;
  }
  return MakeError(Code::kConflict, "quoting: PCRs kept changing while they were read; try again when the machine is quiet");
}

}  // namespace assay::tpm
