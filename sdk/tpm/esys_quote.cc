// SPDX-License-Identifier: Apache-2.0
// Quotes and PCRs. A quote names no values: they are read beside it and believed only when their digest is the quoted
// one. In the steady state the values of the last quote still fit and a quote is one command.
#include <bit>

#include "sdk/tpm/esys_device.h"
#include "sdk/tpm/marshal.h"

namespace assay::tpm {
namespace {

constexpr std::uint32_t kAllPcrs = (1U << limits::kPcrs) - 1;
constexpr int kMaxTries = 8;  // PCRs move while the machine boots, not for ever

TPML_PCR_SELECTION Sha256Selection(std::uint32_t mask) {
  TPML_PCR_SELECTION list{};
  list.count = 1;
  list.pcrSelections[0].hash = TPM2_ALG_SHA256;
  list.pcrSelections[0].sizeofSelect = limits::kPcrs / 8;
  for (unsigned byte = 0; byte < limits::kPcrs / 8; ++byte)
    list.pcrSelections[0].pcrSelect[byte] = static_cast<BYTE>(mask >> (8 * byte));
  return list;
}

Status CheckSelection(PcrSelection selection) {
  if (selection.hash != Alg::kSha256)
    return MakeError(Code::kUnsupported, "PCRs are read from the sha256 bank, not from " + AlgName(selection.hash));
  if (selection.mask == 0 || (selection.mask & ~kAllPcrs) != 0)
    return MakeError(Code::kUnsupported, "a PCR selection names PCRs 0 to 23, at least one");
  return Ok();
}

Digest DigestOf(const std::vector<Digest>& values) {
  Sha256Stream stream;
  for (const Digest& value : values) stream.Update(value);
  return stream.Finish();
}

}  // namespace

Result<QuoteResult> EsysDevice::Quote(std::uint32_t aik, PcrSelection selection, const Digest& extra_data) {
  ASSAY_CHECK_OK(CheckSelection(selection));
  ASSAY_TRY(const ESYS_TR key, ObjectOf(aik));
  for (int attempt = 0; attempt < kMaxTries; ++attempt) {
    Result<AttestedBytes> quoted = QuoteOnce(key, selection, extra_data);
    if (!quoted.ok()) {
      if (quoted.error().code == Code::kNotFound) Forget(aik);  // another program removed it
      return std::move(quoted).error();
    }
    ASSAY_TRY(const Attest attest, DecodeAttest(quoted->attest));
    std::optional<std::vector<Digest>> values = Remembered(selection);
    if (!values || !Equal(DigestOf(*values), attest.pcr_digest)) { ASSAY_TRY(values, ReadPcrs(selection)); }
    if (Equal(DigestOf(*values), attest.pcr_digest))
      return QuoteResult{std::move(quoted->attest), std::move(quoted->signature), std::move(*values)};
  }
  return MakeError(Code::kConflict,
                   "PCRs kept changing between quote and read; try again when the machine has settled");
}

Result<AttestedBytes> EsysDevice::QuoteOnce(ESYS_TR aik, PcrSelection selection, const Digest& extra_data) {
  TPM2B_DATA data{};
  ASSAY_CHECK_OK(FillTpm2b(extra_data, data.size, data.buffer));
  const TPML_PCR_SELECTION list = Sha256Selection(selection.mask);
  TPM2B_ATTEST* attest = nullptr;
  TPMT_SIGNATURE* signature = nullptr;
  const TSS2_RC rc = Esys_Quote(esys_.get(), aik, ESYS_TR_PASSWORD, ESYS_TR_NONE, ESYS_TR_NONE, &data, &kSchemeOfKey,
                                &list, &attest, &signature);
  if (rc != TSS2_RC_SUCCESS) return Failed(rc, "quoting");
  const EsysPtr<TPM2B_ATTEST> own_attest(attest);
  const EsysPtr<TPMT_SIGNATURE> own_signature(signature);
  return Attested(*attest, *signature);
}

// One answer holds at most eight values. The update counter tells whether a PCR moved between two answers.
Result<std::vector<Digest>> EsysDevice::ReadPcrs(PcrSelection selection) {
  ASSAY_CHECK_OK(CheckSelection(selection));
  for (int attempt = 0; attempt < kMaxTries; ++attempt) {
    std::vector<Digest> values;
    std::uint32_t left = selection.mask;
    std::optional<std::uint32_t> counter;
    bool moved = false;
    while (left != 0 && !moved) {
      ASSAY_TRY(const PcrChunk chunk, ReadPcrChunk(left));
      moved = counter && *counter != chunk.update_counter;
      counter = chunk.update_counter;
      values.insert(values.end(), chunk.values.begin(), chunk.values.end());
      left &= ~chunk.mask;
    }
    if (moved) continue;
    Remember(selection, values);
    return values;
  }
  return MakeError(Code::kConflict, "PCRs kept changing while they were read; try again when the machine has settled");
}

Result<EsysDevice::PcrChunk> EsysDevice::ReadPcrChunk(std::uint32_t mask) {
  const TPML_PCR_SELECTION asked = Sha256Selection(mask);
  PcrChunk chunk;
  TPML_PCR_SELECTION* given = nullptr;
  TPML_DIGEST* values = nullptr;
  const TSS2_RC rc = Esys_PCR_Read(esys_.get(), ESYS_TR_NONE, ESYS_TR_NONE, ESYS_TR_NONE, &asked, &chunk.update_counter,
                                   &given, &values);
  if (rc != TSS2_RC_SUCCESS) return Failed(rc, "reading PCRs");
  const EsysPtr<TPML_PCR_SELECTION> own_given(given);
  const EsysPtr<TPML_DIGEST> own_values(values);
  for (UINT32 i = 0; i < given->count && given->pcrSelections[i].hash == TPM2_ALG_SHA256; ++i) {
    for (unsigned byte = 0; byte < limits::kPcrs / 8; ++byte)
      chunk.mask |= static_cast<std::uint32_t>(given->pcrSelections[i].pcrSelect[byte]) << (8 * byte);
  }
  for (UINT32 i = 0; i < values->count; ++i) {
    ASSAY_TRY(const Digest value, ToDigest(Bytes(values->digests[i].buffer, values->digests[i].size)));
    chunk.values.push_back(value);
  }
  if (chunk.mask == 0)
    return MakeError(
        Code::kTpm,
        "the TPM's sha256 bank is not active; activate it in the firmware's settings or with tpm2_pcrallocate");
  const bool ascending = std::countr_zero(chunk.mask) == std::countr_zero(mask) && (chunk.mask & ~mask) == 0;
  if (!ascending || static_cast<std::size_t>(std::popcount(chunk.mask)) != chunk.values.size()) {
    return MakeError(Code::kTpm, "the TPM answered other PCRs than the ones asked for");
  }
  return chunk;
}

Status EsysDevice::ExtendPcr(std::uint8_t pcr, const Digest& digest) {
  if (pcr >= limits::kPcrs) return MakeError(Code::kUnsupported, "there is no PCR " + std::to_string(pcr));
  TPML_DIGEST_VALUES values{};
  values.count = 1;
  values.digests[0].hashAlg = TPM2_ALG_SHA256;
  CopyBytes(digest, values.digests[0].digest.sha256);
  pcrs_.erase(pcr);  // whatever comes, the value is no longer known
  const TSS2_RC rc =
      Esys_PCR_Extend(esys_.get(), ESYS_TR_PCR0 + pcr, ESYS_TR_PASSWORD, ESYS_TR_NONE, ESYS_TR_NONE, &values);
  if (rc != TSS2_RC_SUCCESS) return Failed(rc, "extending PCR " + std::to_string(pcr));
  return Ok();
}

void EsysDevice::Remember(PcrSelection selection, const std::vector<Digest>& values) {
  auto value = values.begin();
  for (std::uint8_t pcr = 0; pcr < limits::kPcrs && value != values.end(); ++pcr) {
    if ((selection.mask & (1U << pcr)) != 0) pcrs_[pcr] = *value++;
  }
}

std::optional<std::vector<Digest>> EsysDevice::Remembered(PcrSelection selection) const {
  std::vector<Digest> values;
  for (std::uint8_t pcr = 0; pcr < limits::kPcrs; ++pcr) {
    if ((selection.mask & (1U << pcr)) == 0) continue;
    const auto known = pcrs_.find(pcr);
    if (known == pcrs_.end()) return std::nullopt;
    values.push_back(known->second);
  }
  return values;
}

}  // namespace assay::tpm
