// SPDX-License-Identifier: Apache-2.0
// Keys in the TPM: made from templates, persisted, read, certified, and the activation of a credential.
#include <algorithm>

#include "sdk/tpm/esys_device.h"
#include "sdk/tpm/marshal.h"

namespace assay::tpm {
namespace {

Result<CreatedKey> Describe(std::uint32_t handle, const TPM2B_PUBLIC& area, const TPM2B_DIGEST& hash,
                            const TPMT_TK_CREATION& ticket) {
  CreatedKey key;
  key.handle = handle;
  ASSAY_TRY(key.public_area, (Marshal<Tss2_MU_TPMT_PUBLIC_Marshal>(area.publicArea)));
  key.creation_hash = ToBuffer(Bytes(hash.buffer, hash.size));
  ASSAY_TRY(key.creation_ticket, (Marshal<Tss2_MU_TPMT_TK_CREATION_Marshal>(ticket)));
  return key;
}

// High-range EKs are authorized by their (empty) password, low-range ones by policy alone (EK Credential Profile B.6).
bool NeedsPolicy(TPMA_OBJECT attributes) noexcept { return (attributes & TPMA_OBJECT_USERWITHAUTH) == 0; }

}  // namespace

Result<CreatedKey> EsysDevice::CreateEk(EkKind kind) {
  return CreatePrimary(EkTemplate(kind), "creating the endorsement key");
}

Result<CreatedKey> EsysDevice::CreateAik(AikKind kind, Bytes unique) {
  return CreatePrimary(AikTemplate(kind, unique), "creating the attestation key");
}

Result<CreatedKey> EsysDevice::CreatePrimary(Bytes area, std::string_view doing) {
  const TPM2B_SENSITIVE_CREATE sensitive{};
  const TPM2B_DATA outside{};
  const TPML_PCR_SELECTION no_pcrs{};
  TPM2B_PUBLIC in_public{};
  ASSAY_CHECK_OK((Unmarshal<Tss2_MU_TPMT_PUBLIC_Unmarshal>(area, "a key template", in_public.publicArea)));
  ESYS_TR object = ESYS_TR_NONE;
  TPM2B_PUBLIC* out_public = nullptr;
  TPM2B_CREATION_DATA* data = nullptr;
  TPM2B_DIGEST* hash = nullptr;
  TPMT_TK_CREATION* ticket = nullptr;
  const TSS2_RC rc =
      Esys_CreatePrimary(esys_.get(), ESYS_TR_RH_ENDORSEMENT, ESYS_TR_PASSWORD, ESYS_TR_NONE, ESYS_TR_NONE, &sensitive,
                         &in_public, &outside, &no_pcrs, &object, &out_public, &data, &hash, &ticket);
  if (rc != TSS2_RC_SUCCESS) return Failed(rc, doing);
  const EsysPtr<TPM2B_PUBLIC> own_public(out_public);
  const EsysPtr<TPM2B_CREATION_DATA> own_data(data);
  const EsysPtr<TPM2B_DIGEST> own_hash(hash);
  const EsysPtr<TPMT_TK_CREATION> own_ticket(ticket);
  TPM2_HANDLE handle = 0;
  const TSS2_RC found = Esys_TR_GetTpmHandle(esys_.get(), object, &handle);
  if (found != TSS2_RC_SUCCESS) return Failed(found, doing);
  transient_.push_back(handle);
  objects_[handle] = {object, out_public->publicArea.objectAttributes};
  Result<CreatedKey> key = tpm::Describe(handle, *out_public, *hash, *ticket);
  if (!key.ok()) (void)FlushTransient(handle).ok();  // the first failure is the one to report
  return key;
}

Status EsysDevice::Evict(ESYS_TR object, std::uint32_t persistent, std::string_view doing) {
  ESYS_TR made = ESYS_TR_NONE;
  const TSS2_RC rc = Esys_EvictControl(esys_.get(), ESYS_TR_RH_OWNER, object, ESYS_TR_PASSWORD, ESYS_TR_NONE,
                                       ESYS_TR_NONE, persistent, &made);
  if (rc != TSS2_RC_SUCCESS) return Failed(rc, doing);
  if (made != ESYS_TR_NONE) objects_[persistent] = {made, 0};
  return Ok();
}

Status EsysDevice::Persist(std::uint32_t transient, std::uint32_t persistent) {
  constexpr std::string_view kDoing = "making the key persistent";
  ASSAY_TRY(const ESYS_TR object, ObjectOf(transient));
  const Status first = Evict(object, persistent, kDoing);
  if (first.ok() || first.error().code != Code::kConflict) return first;
  ASSAY_CHECK_OK(RemovePersistent(persistent));
  return Evict(object, persistent, kDoing);
}

Status EsysDevice::RemovePersistent(std::uint32_t persistent) {
  ASSAY_TRY(const ESYS_TR object, ObjectOf(persistent));
  const Status evicted = Evict(object, persistent, "removing the persistent key");
  // ESYS closes its object when it evicts; ours may also be a memory of one that another program removed.
  if (evicted.ok()) objects_.erase(persistent);
  else if (evicted.error().code == Code::kNotFound) Forget(persistent);
  return evicted;
}

Result<Buffer> EsysDevice::ReadPublic(std::uint32_t handle) {
  TPM2B_PUBLIC area{};
  TPM2B_NAME name{};
  TPM2B_NAME qualified{};
  const TSS2_RC rc = Tss2_Sys_ReadPublic(sys_, handle, nullptr, &area, &name, &qualified, nullptr);
  if (rc != TSS2_RC_SUCCESS) return Failed(rc, "reading a key's public area");
  return Marshal<Tss2_MU_TPMT_PUBLIC_Marshal>(area.publicArea);
}

Result<std::uint32_t> EsysDevice::AttributesOf(std::uint32_t handle) {
  const auto known = objects_.find(handle);
  if (known != objects_.end() && known->second.attributes != 0) return known->second.attributes;
  ASSAY_TRY(const Buffer encoded, ReadPublic(handle));
  ASSAY_TRY(const PublicArea area, DecodePublicArea(encoded));
  return area.attributes;
}

// A policy session that satisfies PolicyA: TPM2_PolicySecret with the endorsement hierarchy.
Result<ESYS_TR> EsysDevice::StartEndorsementPolicy() {
  constexpr TPMT_SYM_DEF kNoEncryption = {.algorithm = TPM2_ALG_NULL, .keyBits = {}, .mode = {}};
  ESYS_TR session = ESYS_TR_NONE;
  TSS2_RC rc = Esys_StartAuthSession(esys_.get(), ESYS_TR_NONE, ESYS_TR_NONE, ESYS_TR_NONE, ESYS_TR_NONE, ESYS_TR_NONE,
                                     nullptr, TPM2_SE_POLICY, &kNoEncryption, TPM2_ALG_SHA256, &session);
  if (rc != TSS2_RC_SUCCESS) return Failed(rc, "starting a policy session");
  rc = Esys_TRSess_SetAttributes(esys_.get(), session, 0, 0xFF);  // not continued: its use ends it
  if (rc == TSS2_RC_SUCCESS) {
    rc = Esys_PolicySecret(esys_.get(), ESYS_TR_RH_ENDORSEMENT, session, ESYS_TR_PASSWORD, ESYS_TR_NONE, ESYS_TR_NONE,
                           nullptr, nullptr, nullptr, 0, nullptr, nullptr);
  }
  if (rc == TSS2_RC_SUCCESS) return session;
  Error error = Failed(rc, "authorizing by the endorsement hierarchy");
  EndSession(session);
  return error;
}

Result<Secret> EsysDevice::ActivateCredential(std::uint32_t aik, std::uint32_t ek, Bytes credential_blob,
                                              Bytes encrypted_secret) {
  TPM2B_ID_OBJECT blob{};
  TPM2B_ENCRYPTED_SECRET secret{};
  ASSAY_CHECK_OK((Unmarshal<Tss2_MU_TPM2B_ID_OBJECT_Unmarshal>(credential_blob, "a credential", blob)));
  ASSAY_CHECK_OK(
      (Unmarshal<Tss2_MU_TPM2B_ENCRYPTED_SECRET_Unmarshal>(encrypted_secret, "a credential's secret", secret)));
  ASSAY_TRY(const ESYS_TR activated, ObjectOf(aik));
  ASSAY_TRY(const ESYS_TR key, ObjectOf(ek));
  ASSAY_TRY(const std::uint32_t attributes, AttributesOf(ek));
  const bool policy = NeedsPolicy(attributes);
  ASSAY_TRY(ESYS_TR session, policy ? StartEndorsementPolicy() : Result<ESYS_TR>(ESYS_TR_PASSWORD));
  TPM2B_DIGEST* info = nullptr;
  const TSS2_RC rc = Esys_ActivateCredential(esys_.get(), activated, key, ESYS_TR_PASSWORD, session, ESYS_TR_NONE,
                                             &blob, &secret, &info);
  if (rc != TSS2_RC_SUCCESS) {
    Error error = Failed(rc, "activating the credential");
    if (policy) EndSession(session);
    return error;
  }
  if (policy) (void)Esys_TR_Close(esys_.get(), &session);  // the TPM ended it with its use
  const EsysPtr<TPM2B_DIGEST> own(info);
  Secret out = Secret::CopyOf(Bytes(info->buffer, info->size));
  OPENSSL_cleanse(info->buffer, info->size);
  return out;
}

Result<AttestedBytes> EsysDevice::CertifyCreation(std::uint32_t aik, const CreatedKey& object, Bytes qualifying) {
  TPM2B_DATA data{};
  TPM2B_DIGEST hash{};
  TPMT_TK_CREATION ticket{};
  ASSAY_CHECK_OK(FillTpm2b(qualifying, data.size, data.buffer));
  ASSAY_CHECK_OK(FillTpm2b(object.creation_hash, hash.size, hash.buffer));
  ASSAY_CHECK_OK((Unmarshal<Tss2_MU_TPMT_TK_CREATION_Unmarshal>(object.creation_ticket, "a creation ticket", ticket)));
  ASSAY_TRY(const ESYS_TR signer, ObjectOf(aik));
  ASSAY_TRY(const ESYS_TR certified, ObjectOf(object.handle));
  TPM2B_ATTEST* attest = nullptr;
  TPMT_SIGNATURE* signature = nullptr;
  const TSS2_RC rc = Esys_CertifyCreation(esys_.get(), signer, certified, ESYS_TR_PASSWORD, ESYS_TR_NONE, ESYS_TR_NONE,
                                          &data, &hash, &kSchemeOfKey, &ticket, &attest, &signature);
  if (rc != TSS2_RC_SUCCESS) return Failed(rc, "certifying the creation of a key");
  const EsysPtr<TPM2B_ATTEST> own_attest(attest);
  const EsysPtr<TPMT_SIGNATURE> own_signature(signature);
  return Attested(*attest, *signature);
}

}  // namespace assay::tpm
