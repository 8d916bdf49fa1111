// SPDX-License-Identifier: Apache-2.0
// Opening, retries, objects, NV and PCRs. Keys and attestations are in esys_keys.cc.
#include "sdk/tpm/esys_device.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdlib>
#include <thread>

namespace assay::tpm {
namespace {

constexpr int kRetries = 20;
constexpr auto kFirstPause = std::chrono::milliseconds(5);
constexpr auto kLongestPause = std::chrono::milliseconds(500);
constexpr std::size_t kPcrsPerRead = 8;
constexpr std::size_t kMaxRandom = 32;  // what one command surely gives

bool IsBusy(TSS2_RC rc) noexcept { return rc == TPM2_RC_RETRY || rc == TPM2_RC_YIELDED || rc == TPM2_RC_TESTING; }

}  // namespace

TPML_PCR_SELECTION ToEsys(PcrSelection selection) noexcept {
  TPML_PCR_SELECTION out{};
  out.count = 1;
  out.pcrSelections[0].hash = static_cast<TPMI_ALG_HASH>(selection.hash);
  out.pcrSelections[0].sizeofSelect = limits::kPcrs / 8;
  for (unsigned byte = 0; byte < limits::kPcrs / 8; ++byte) out.pcrSelections[0].pcrSelect[byte] = static_cast<BYTE>(selection.mask >> (8 * byte));
  return out;
}

Result<std::unique_ptr<Device>> EsysDevice::Open(const std::string& tcti, Tap* tap) {
  std::unique_ptr<EsysDevice> device(new EsysDevice());
  TSS2_TCTI_CONTEXT* loader = nullptr;
  ::setenv("TSS2_LOG", "all+none", 0);  // the TSS logs to stderr what we report in words; an operator may set it
  TSS2_RC rc = Tss2_TctiLdr_Initialize(tcti.c_str(), &loader);
  if (rc != TSS2_RC_SUCCESS) {
    Error error = TpmError(("opening the TPM through \"" + tcti + "\"").c_str(), rc);
    error.code = Code::kUnavailable;
    error.detail += "; is the path right, and may this user open it?";
    return error;
  }
  device->loader_.reset(loader);
  device->tcti_ = std::make_unique<TappedTcti>(loader, tap);
  ESYS_CONTEXT* esys = nullptr;
  rc = Esys_Initialize(&esys, device->tcti_->context(), nullptr);
  if (rc != TSS2_RC_SUCCESS) return TpmError("starting ESYS", rc);
  device->esys_.reset(esys);
  return std::unique_ptr<Device>(std::move(device));
}

EsysDevice::~EsysDevice() {
  for (const auto& [handle, object] : objects_) {
    ESYS_TR copy = object;
    if ((handle >> 24) == TPM2_HT_TRANSIENT) (void)Esys_FlushContext(esys_.get(), copy);
    else (void)Esys_TR_Close(esys_.get(), &copy);
  }
}

TSS2_RC EsysDevice::Run(const std::function<TSS2_RC()>& command) {
  auto pause = kFirstPause;
  TSS2_RC rc = TSS2_RC_SUCCESS;
  for (int attempt = 0; attempt < kRetries; ++attempt) {
    rc = command();
    if (!IsBusy(rc)) return rc;
    std::this_thread::sleep_for(pause);
    pause = std::min<std::chrono::milliseconds>(2 * pause, kLongestPause);
  }
  return rc;
}

Status EsysDevice::RunChecked(const char* what, const std::function<TSS2_RC()>& command) {
  const TSS2_RC rc = Run(command);
  if (rc != TSS2_RC_SUCCESS) return TpmError(what, rc);
  return Ok();
}

Result<ESYS_TR> EsysDevice::ObjectOf(std::uint32_t handle) {
  if (const auto known = objects_.find(handle); known != objects_.end()) return known->second;
  ESYS_TR object = ESYS_TR_NONE;
  ASSAY_CHECK_OK(RunChecked("finding a TPM object", [&] {
    return Esys_TR_FromTPMPublic(esys_.get(), handle, ESYS_TR_NONE, ESYS_TR_NONE, ESYS_TR_NONE, &object);
  }));
  objects_[handle] = object;
  return object;
}

void EsysDevice::Forget(std::uint32_t handle) {
  const auto known = objects_.find(handle);
  if (known == objects_.end()) return;
  (void)Esys_TR_Close(esys_.get(), &known->second);
  objects_.erase(known);
}

Result<Buffer> EsysDevice::ReadNv(std::uint32_t index) {
  ASSAY_TRY(const ESYS_TR object, ObjectOf(index));
  TPM2B_NV_PUBLIC* raw_public = nullptr;
  const Status described = RunChecked("reading an NV index's size", [&] {
    return Esys_NV_ReadPublic(esys_.get(), object, ESYS_TR_NONE, ESYS_TR_NONE, ESYS_TR_NONE, &raw_public, nullptr);
  });
  const EsysOwned<TPM2B_NV_PUBLIC> nv(raw_public);
  if (!described.ok()) return described.error();
  const std::size_t size = nv->nvPublic.dataSize;
  // EK certificates are readable by the owner or by whoever knows the index's own (empty) password.
  const ESYS_TR auth = (nv->nvPublic.attributes & TPMA_NV_AUTHREAD) != 0 ? object : ESYS_TR_RH_OWNER;
  constexpr std::size_t kChunk = 1024;  // MAX_NV_BUFFER_SIZE of PC client TPMs is at least this
  Buffer out;
  while (out.size() < size) {
    const auto part = static_cast<UINT16>(std::min(kChunk, size - out.size()));
    TPM2B_MAX_NV_BUFFER* raw = nullptr;
    const Status read = RunChecked("reading an NV index", [&] {
      return Esys_NV_Read(esys_.get(), auth, object, ESYS_TR_PASSWORD, ESYS_TR_NONE, ESYS_TR_NONE, part, static_cast<UINT16>(out.size()), &raw);
    });
    const EsysOwned<TPM2B_MAX_NV_BUFFER> data(raw);
    if (!read.ok()) return read.error();
    if (data->size == 0) return MakeError(Code::kTpm, "reading an NV index: the TPM returned nothing");
    out.insert(out.end(), data->buffer, data->buffer + data->size);
  }
  Forget(index);
  return out;
}

Result<Buffer> EsysDevice::ReadPublic(std::uint32_t handle) {
  ASSAY_TRY(const ESYS_TR object, ObjectOf(handle));
  TPM2B_PUBLIC* raw = nullptr;
  const Status read = RunChecked("reading a public area", [&] {
    return Esys_ReadPublic(esys_.get(), object, ESYS_TR_NONE, ESYS_TR_NONE, ESYS_TR_NONE, &raw, nullptr, nullptr);
  });
  const EsysOwned<TPM2B_PUBLIC> area(raw);
  if (!read.ok()) return read.error();
  return MarshalPublic(area->publicArea);
}

Result<std::vector<Digest>> EsysDevice::ReadPcrs(PcrSelection selection) {
  std::vector<Digest> values;
  std::uint32_t left = selection.mask;
  while (left != 0) {
    std::uint32_t part = 0;
    for (std::size_t taken = 0; taken < kPcrsPerRead && left != 0; ++taken) {
      part |= left & (~left + 1);
      left &= left - 1;
    }
    const TPML_PCR_SELECTION wanted = ToEsys({selection.hash, part});
    TPML_DIGEST* raw = nullptr;
    TPML_PCR_SELECTION* raw_selection = nullptr;
    const Status read = RunChecked("reading PCRs", [&] {
      return Esys_PCR_Read(esys_.get(), ESYS_TR_NONE, ESYS_TR_NONE, ESYS_TR_NONE, &wanted, nullptr, &raw_selection, &raw);
    });
    const EsysOwned<TPML_DIGEST> digests(raw);
    const EsysOwned<TPML_PCR_SELECTION> given(raw_selection);
    if (!read.ok()) return read.error();
    if (digests->count != static_cast<UINT32>(std::popcount(part))) {
      return MakeError(Code::kTpm, "reading PCRs: the TPM has no " + AlgName(selection.hash) + " bank for all of them; enable the bank in firmware");
    }
    for (UINT32 i = 0; i < digests->count; ++i) {
      ASSAY_TRY(const Digest value, ToDigest(Bytes(digests->digests[i].buffer, digests->digests[i].size)));
      values.push_back(value);
    }
  }
  return values;
}

Status EsysDevice::ExtendPcr(std::uint8_t pcr, const Digest& digest) {
  TPML_DIGEST_VALUES values{};
  values.count = 1;
  values.digests[0].hashAlg = TPM2_ALG_SHA256;
  CopyBytes(digest, MutableBytes(values.digests[0].digest.sha256, sizeof(values.digests[0].digest.sha256)));
  return RunChecked("extending a PCR", [&] {
    return Esys_PCR_Extend(esys_.get(), ESYS_TR_PCR0 + pcr, ESYS_TR_PASSWORD, ESYS_TR_NONE, ESYS_TR_NONE, &values);
  });
}

Result<ClockInfo> EsysDevice::ReadClock() {
  TPMS_TIME_INFO* raw = nullptr;
  const Status read = RunChecked("reading the clock", [&] { return Esys_ReadClock(esys_.get(), ESYS_TR_NONE, ESYS_TR_NONE, ESYS_TR_NONE, &raw); });
  const EsysOwned<TPMS_TIME_INFO> info(raw);
  if (!read.ok()) return read.error();
  return ClockInfo{.clock = info->clockInfo.clock, .reset_count = info->clockInfo.resetCount, .restart_count = info->clockInfo.restartCount,
                   .safe = info->clockInfo.safe == TPM2_YES};
}

Status EsysDevice::FlushTransient(std::uint32_t handle) {
  const auto known = objects_.find(handle);
  if (known == objects_.end()) return MakeError(Code::kNotFound, "flushing an object that this process did not make");
  const ESYS_TR object = known->second;
  objects_.erase(known);
  return RunChecked("flushing an object", [&] { return Esys_FlushContext(esys_.get(), object); });
}

Result<Buffer> EsysDevice::Random(std::size_t size) {
  Buffer out;
  while (out.size() < size) {
    TPM2B_DIGEST* raw = nullptr;
    const auto part = static_cast<UINT16>(std::min(kMaxRandom, size - out.size()));
    const Status got = RunChecked("drawing random bytes", [&] { return Esys_GetRandom(esys_.get(), ESYS_TR_NONE, ESYS_TR_NONE, ESYS_TR_NONE, part, &raw); });
    const EsysOwned<TPM2B_DIGEST> bytes(raw);
    if (!got.ok()) return got.error();
    if (bytes->size == 0 || bytes->size > part) return MakeError(Code::kTpm, "drawing random bytes: the TPM gave none");
    out.insert(out.end(), bytes->buffer, bytes->buffer + bytes->size);
  }
  return out;
}

Result<std::vector<std::pair<std::string, std::string>>> EsysDevice::Describe() {
  TPMS_CAPABILITY_DATA* raw = nullptr;
  TPMI_YES_NO more = TPM2_NO;
  std::map<std::uint32_t, std::uint32_t> found;
  for (const std::uint32_t first : {TPM2_PT_FIXED, TPM2_PT_VAR}) {
    raw = nullptr;
    const Status got = RunChecked("reading TPM properties", [&] {
      return Esys_GetCapability(esys_.get(), ESYS_TR_NONE, ESYS_TR_NONE, ESYS_TR_NONE, TPM2_CAP_TPM_PROPERTIES, first, TPM2_MAX_TPM_PROPERTIES, &more, &raw);
    });
    const EsysOwned<TPMS_CAPABILITY_DATA> data(raw);
    if (!got.ok()) return got.error();
    const auto& list = data->data.tpmProperties;
    for (UINT32 i = 0; i < list.count; ++i) found[list.tpmProperty[i].property] = list.tpmProperty[i].value;
  }
  Writer maker;
  maker.U32Be(found[TPM2_PT_MANUFACTURER]);
  std::string name(AsText(maker.buffer()));
  std::erase_if(name, [](char c) { return c < 0x20 || c > 0x7E; });
  return std::vector<std::pair<std::string, std::string>>{
      {"manufacturer", name},
      {"firmware_version", std::to_string(found[TPM2_PT_FIRMWARE_VERSION_1] >> 16) + "." + std::to_string(found[TPM2_PT_FIRMWARE_VERSION_1] & 0xFFFF)},
      {"lockout_counter", std::to_string(found[TPM2_PT_LOCKOUT_COUNTER])},
      {"max_auth_fail", std::to_string(found[TPM2_PT_MAX_AUTH_FAIL])},
      {"in_lockout", (found[TPM2_PT_PERMANENT] & TPMA_PERMANENT_INLOCKOUT) != 0 ? "yes" : "no"},
  };
}

Result<std::unique_ptr<Device>> OpenDevice(const std::string& tcti, Tap* tap) { return EsysDevice::Open(tcti, tap); }

}  // namespace assay::tpm
