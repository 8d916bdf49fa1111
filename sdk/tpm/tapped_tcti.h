// SPDX-License-Identifier: Apache-2.0
// A TCTI between ESYS and the real one, so that a Tap sees each command and can answer in the TPM's place.
#pragma once

#include <tss2/tss2_tcti.h>

#include <memory>

#include "sdk/core/bytes.h"
#include "sdk/tpm/device.h"

namespace assay::tpm {

// Owns nothing of the inner context or of the tap; both outlive it.
class TappedTcti {
 public:
  TappedTcti(TSS2_TCTI_CONTEXT* inner, Tap* tap) noexcept;
  TappedTcti(const TappedTcti&) = delete;
  TappedTcti& operator=(const TappedTcti&) = delete;
  TSS2_TCTI_CONTEXT* context() noexcept { return reinterpret_cast<TSS2_TCTI_CONTEXT*>(&layout_); }

 private:
  // What the TSS expects at the context's address, with our pointer behind it.
  struct Layout {
    TSS2_TCTI_CONTEXT_COMMON_V2 common;
    TappedTcti* self;
  };
  static TappedTcti& From(TSS2_TCTI_CONTEXT* context) noexcept { return *reinterpret_cast<Layout*>(context)->self; }
  static TSS2_RC Transmit(TSS2_TCTI_CONTEXT* context, size_t size, const uint8_t* command);
  static TSS2_RC Receive(TSS2_TCTI_CONTEXT* context, size_t* size, uint8_t* response, int32_t timeout);
  static void Finalize(TSS2_TCTI_CONTEXT* context);
  static TSS2_RC Cancel(TSS2_TCTI_CONTEXT* context);
  static TSS2_RC PollHandles(TSS2_TCTI_CONTEXT* context, TSS2_TCTI_POLL_HANDLE* handles, size_t* count);
  static TSS2_RC Locality(TSS2_TCTI_CONTEXT* context, uint8_t locality);

  Layout layout_{};
  TSS2_TCTI_CONTEXT* inner_;
  Tap* tap_;
  std::uint32_t forced_ = 0;  // response code to give instead of asking the TPM; 0: none
};

}  // namespace assay::tpm
