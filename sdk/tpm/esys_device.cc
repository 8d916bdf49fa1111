// SPDX-License-Identifier: Apache-2.0
// Opening a device, what a failed command is called, and letting go of handles.
#include "sdk/tpm/esys_device.h"

#include <algorithm>

#include "sdk/tpm/marshal.h"

namespace assay::tpm {

Result<std::unique_ptr<Device>> OpenDevice(const std::string& tcti, Tap* tap) {
  ASSAY_TRY(std::unique_ptr<Link> link, Link::Open(tcti, tap));
  ESYS_CONTEXT* raw = nullptr;
  TSS2_RC rc = Esys_Initialize(&raw, link->tcti(), nullptr);
  if (rc != TSS2_RC_SUCCESS) return RcError(rc, "preparing the TPM's library");
  EsysContext esys(raw);
  TSS2_SYS_CONTEXT* sys = nullptr;
  rc = Esys_GetSysContext(esys.get(), &sys);
  if (rc != TSS2_RC_SUCCESS) return RcError(rc, "preparing the TPM's library");
  return std::unique_ptr<Device>(std::make_unique<EsysDevice>(std::move(link), std::move(esys), sys));
}

EsysDevice::EsysDevice(std::unique_ptr<Link> link, EsysContext esys, TSS2_SYS_CONTEXT* sys)
    : link_(std::move(link)), esys_(std::move(esys)), sys_(sys) {}

EsysDevice::~EsysDevice() {
  for (const std::uint32_t handle : transient_)
    (void)FlushHandle(handle);  // on the way out: nothing is left to do about a failure
}

Error EsysDevice::Failed(TSS2_RC rc, std::string_view doing) {
  if (std::optional<Error> fault = link_->TakeFault()) {
    fault->detail = std::string(doing) + ": " + fault->detail;
    return std::move(*fault);
  }
  Error error = RcError(rc, doing);
  if (BaseCode(rc) == TPM2_RC_LOCKOUT) error.detail += LockoutWords();
  return error;
}

// Read with commands that need no authorization, so they work in lockout.
std::string EsysDevice::LockoutWords() {
  const auto properties = Properties(TPM2_PT_LOCKOUT_COUNTER, 4);
  std::string words;
  if (properties.ok()) {
    for (const auto& [property, value] : *properties) {
      if (property == TPM2_PT_LOCKOUT_COUNTER) words += "; failed tries: " + std::to_string(value);
      if (property == TPM2_PT_MAX_AUTH_FAIL) words += " of " + std::to_string(value);
      if (property == TPM2_PT_LOCKOUT_INTERVAL)
        words += "; one is forgiven every " + std::to_string(value) + " s of TPM time";
    }
  }
  return words + "; wait, or clear it with `tpm2_dictionarylockout --clear-lockout` and the lockout authorization";
}

Result<ESYS_TR> EsysDevice::ObjectOf(std::uint32_t handle) {
  const auto known = objects_.find(handle);
  if (known != objects_.end()) return known->second.object;
  ESYS_TR object = ESYS_TR_NONE;
  const TSS2_RC rc = Esys_TR_FromTPMPublic(esys_.get(), handle, ESYS_TR_NONE, ESYS_TR_NONE, ESYS_TR_NONE, &object);
  if (rc != TSS2_RC_SUCCESS) return Failed(rc, "looking up a key by its handle");
  objects_[handle] = {object, 0};
  return object;
}

void EsysDevice::Forget(std::uint32_t handle) noexcept {
  const auto known = objects_.find(handle);
  if (known == objects_.end()) return;
  (void)Esys_TR_Close(esys_.get(), &known->second.object);  // ESYS's own memory, no command
  objects_.erase(known);
}

// By the system API: the handle alone is enough, and ESYS need not know it.
TSS2_RC EsysDevice::FlushHandle(std::uint32_t handle) noexcept { return Tss2_Sys_FlushContext(sys_, handle); }

Status EsysDevice::FlushTransient(std::uint32_t handle) {
  const TSS2_RC rc = FlushHandle(handle);
  const bool gone = BaseCode(rc) == TPM2_RC_HANDLE;  // a TPM reset flushed it before us
  if (rc != TSS2_RC_SUCCESS && !gone) return Failed(rc, "flushing a transient object");
  Forget(handle);
  std::erase(transient_, handle);
  return Ok();
}

void EsysDevice::EndSession(ESYS_TR session) noexcept {
  TPM2_HANDLE handle = 0;
  if (Esys_TR_GetTpmHandle(esys_.get(), session, &handle) == TSS2_RC_SUCCESS &&
      FlushHandle(handle) != TSS2_RC_SUCCESS) {
    transient_.push_back(handle);  // again in the destructor
  }
  (void)Esys_TR_Close(esys_.get(), &session);
}

}  // namespace assay::tpm
