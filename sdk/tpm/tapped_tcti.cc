// SPDX-License-Identifier: Apache-2.0
#include "sdk/tpm/tapped_tcti.h"

namespace assay::tpm {
namespace {

constexpr std::size_t kCommandHeader = 10;  // tag, size, command code (Part 1, section 18)
constexpr std::uint16_t kNoSessions = 0x8001;

}  // namespace

TappedTcti::TappedTcti(TSS2_TCTI_CONTEXT* inner, Tap* tap) noexcept : inner_(inner), tap_(tap) {
  layout_.common.v1.magic = 0x4153534159544350;  // any value of ours
  layout_.common.v1.version = 2;
  layout_.common.v1.transmit = &TappedTcti::Transmit;
  layout_.common.v1.receive = &TappedTcti::Receive;
  layout_.common.v1.finalize = &TappedTcti::Finalize;
  layout_.common.v1.cancel = &TappedTcti::Cancel;
  layout_.common.v1.getPollHandles = &TappedTcti::PollHandles;
  layout_.common.v1.setLocality = &TappedTcti::Locality;
  layout_.common.makeSticky = nullptr;
  layout_.self = this;
}

TSS2_RC TappedTcti::Transmit(TSS2_TCTI_CONTEXT* context, size_t size, const uint8_t* command) {
  TappedTcti& self = From(context);
  self.forced_ = 0;
  if (self.tap_ != nullptr && size >= kCommandHeader) {
    Reader header(Bytes(command, size));
    header.Skip(6);
    self.forced_ = self.tap_->OnCommand(header.U32Be());
    if (self.forced_ != 0) return TSS2_RC_SUCCESS;
  }
  return Tss2_Tcti_Transmit(self.inner_, size, command);
}

TSS2_RC TappedTcti::Receive(TSS2_TCTI_CONTEXT* context, size_t* size, uint8_t* response, int32_t timeout) {
  TappedTcti& self = From(context);
  if (self.forced_ == 0) return Tss2_Tcti_Receive(self.inner_, size, response, timeout);
  if (size == nullptr) return TSS2_TCTI_RC_BAD_REFERENCE;
  if (response == nullptr) {
    *size = kCommandHeader;
    return TSS2_RC_SUCCESS;
  }
  if (*size < kCommandHeader) return TSS2_TCTI_RC_INSUFFICIENT_BUFFER;
  Writer answer;
  answer.U16Be(kNoSessions);
  answer.U32Be(kCommandHeader);
  answer.U32Be(self.forced_);
  CopyBytes(answer.buffer(), MutableBytes(response, kCommandHeader));
  *size = kCommandHeader;
  return TSS2_RC_SUCCESS;
}

void TappedTcti::Finalize(TSS2_TCTI_CONTEXT*) {}  // the inner context is its owner's
TSS2_RC TappedTcti::Cancel(TSS2_TCTI_CONTEXT* context) { return Tss2_Tcti_Cancel(From(context).inner_); }
TSS2_RC TappedTcti::PollHandles(TSS2_TCTI_CONTEXT* context, TSS2_TCTI_POLL_HANDLE* handles, size_t* count) {
  return Tss2_Tcti_GetPollHandles(From(context).inner_, handles, count);
}
TSS2_RC TappedTcti::Locality(TSS2_TCTI_CONTEXT* context, uint8_t locality) { return Tss2_Tcti_SetLocality(From(context).inner_, locality); }

}  // namespace assay::tpm
