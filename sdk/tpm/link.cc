// SPDX-License-Identifier: Apache-2.0
// The shim TCTI. Callbacks are noexcept: they are called from C.
#include "sdk/tpm/link.h"

#include <poll.h>
#include <tss2/tss2_tctildr.h>
#include <tss2/tss2_tpm2_types.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <utility>

#include "sdk/tpm/rc.h"

namespace assay::tpm {
namespace {

constexpr std::uint64_t kMagic = 0x4153534159544354;  // "ASSAYTCT"
constexpr std::size_t kHeader = 10;                   // tag, size, code: Part 1 section 18.2
constexpr std::size_t kCodeOffset = 6;
constexpr int kMaxAttempts = 14;
constexpr std::chrono::milliseconds kFirstDelay{1};
constexpr std::chrono::milliseconds kLongestDelay{400};  // 14 attempts wait about two seconds in all
constexpr int kAnswerDeadlineMs = 180'000;               // making an RSA key takes a discrete TPM up to a minute
constexpr std::size_t kMaxPollHandles = 4;

// libtss2 logs to stderr unless told otherwise; failures are ours to report. An operator's setting wins.
void QuietTss2() {
  static std::once_flag once;
  std::call_once(once, [] { setenv("TSS2_LOG", "all+none", 0); });
}

bool KnownTcti(const std::string& tcti) {
  for (const std::string_view name : {"device:", "swtpm:", "mssim:", "tabrmd:"}) {
    if (tcti.size() > name.size() && tcti.compare(0, name.size(), name) == 0) return true;
  }
  return false;
}

bool PutOff(std::uint32_t rc) noexcept {
  return rc == TPM2_RC_RETRY || rc == TPM2_RC_YIELDED || rc == TPM2_RC_TESTING || rc == TPM2_RC_NV_RATE;
}

}  // namespace

Link::Link(std::string tcti, Tap* tap) : tcti_(std::move(tcti)), tap_(tap) {
  shim_.link = this;
  TSS2_TCTI_CONTEXT_COMMON_V1& v1 = shim_.common.v1;
  v1.magic = kMagic;
  v1.version = 2;
  v1.transmit = OnTransmit;
  v1.receive = OnReceive;
  v1.finalize = [](TSS2_TCTI_CONTEXT*) {};
  v1.cancel = [](TSS2_TCTI_CONTEXT*) -> TSS2_RC { return TSS2_TCTI_RC_NOT_IMPLEMENTED; };
  v1.getPollHandles = [](TSS2_TCTI_CONTEXT*, TSS2_TCTI_POLL_HANDLE*, std::size_t*) -> TSS2_RC {
    return TSS2_TCTI_RC_NOT_IMPLEMENTED;
  };
  v1.setLocality = [](TSS2_TCTI_CONTEXT*, std::uint8_t) -> TSS2_RC { return TSS2_TCTI_RC_NOT_IMPLEMENTED; };
  shim_.common.makeSticky = [](TSS2_TCTI_CONTEXT*, TPM2_HANDLE*, std::uint8_t) -> TSS2_RC {
    return TSS2_TCTI_RC_NOT_IMPLEMENTED;
  };
}

Link::~Link() { Disconnect(); }

Result<std::unique_ptr<Link>> Link::Open(const std::string& tcti, Tap* tap) {
  if (!KnownTcti(tcti)) {
    return MakeError(Code::kConfig,
                     "the TCTI '" + tcti + "' is not one of 'device:/dev/tpmrm0' and 'swtpm:path=SOCKET'");
  }
  QuietTss2();
  std::unique_ptr<Link> link(new Link(tcti, tap));
  ASSAY_CHECK_OK(link->Connect());
  return link;
}

Status Link::Connect() {
  if (lower_ != nullptr) return Ok();
  const TSS2_RC rc = Tss2_TctiLdr_Initialize(tcti_.c_str(), &lower_);
  if (rc == TSS2_RC_SUCCESS) return Ok();
  lower_ = nullptr;
  return MakeError(Code::kUnavailable,
                   "the TPM at '" + tcti_ + "' does not open: " + RcText(rc) +
                       "; check that the path exists, that this user may open it, and that nothing else holds it",
                   rc);
}

void Link::Disconnect() noexcept {
  if (lower_ != nullptr) Tss2_TctiLdr_Finalize(&lower_);
  lower_ = nullptr;
}

TSS2_RC Link::OnTransmit(TSS2_TCTI_CONTEXT* context, std::size_t size, const std::uint8_t* command) noexcept {
  Link& self = *reinterpret_cast<Shim*>(context)->link;
  if (command == nullptr || size < kHeader) return TSS2_TCTI_RC_BAD_VALUE;
  self.command_.assign(command, command + size);
  return TSS2_RC_SUCCESS;
}

TSS2_RC Link::OnReceive(TSS2_TCTI_CONTEXT* context, std::size_t* size, std::uint8_t* response, std::int32_t) noexcept {
  Link& self = *reinterpret_cast<Shim*>(context)->link;
  if (size == nullptr) return TSS2_TCTI_RC_BAD_REFERENCE;
  if (!self.command_.empty()) self.Exchange();
  if (self.response_.empty()) return TSS2_TCTI_RC_BAD_SEQUENCE;
  const bool fits = *size >= self.response_.size();
  *size = self.response_.size();
  if (response == nullptr) return TSS2_RC_SUCCESS;  // asked for the size only
  if (!fits) return TSS2_TCTI_RC_INSUFFICIENT_BUFFER;
  CopyBytes(self.response_, MutableBytes(response, self.response_.size()));
  self.response_.clear();
  return TSS2_RC_SUCCESS;
}

// Leaves an answer in response_ in every case. What was put off too often, and what the transport lost, is answered
// by TPM_RC_FAILURE: ESYS neither resubmits that nor loses its own state over it.
void Link::Exchange() {
  fault_.reset();
  std::chrono::milliseconds delay = kFirstDelay;
  for (int attempt = 1;; ++attempt) {
    const Result<std::uint32_t> rc = ExchangeOnce();
    if (!rc.ok()) {
      fault_ = rc.error();
      Disconnect();  // its state machine expects an answer that will not come
      break;
    }
    if (!PutOff(*rc)) break;
    if (attempt == kMaxAttempts) {
      fault_ = MakeError(
          Code::kBusy,
          "the TPM put the command off " + std::to_string(attempt) + " times: " + RcText(*rc) + "; try again later",
          *rc);
      break;
    }
    std::this_thread::sleep_for(delay);
    delay = std::min(delay * 2, kLongestDelay);
  }
  if (fault_) Answer(TPM2_RC_FAILURE);
  command_.clear();
}

// One command and its answer: the response code.
Result<std::uint32_t> Link::ExchangeOnce() {
  Reader header(command_);
  header.Skip(kCodeOffset);
  const std::uint32_t injected = tap_ != nullptr ? tap_->OnCommand(header.U32Be()) : 0;
  if (injected != 0) {
    Answer(injected);
    return injected;
  }
  ASSAY_CHECK_OK(Connect());
  ASSAY_CHECK_OK(Send());
  ASSAY_CHECK_OK(Receive());
  Reader answer(response_);
  answer.Skip(kCodeOffset);
  const std::uint32_t rc = answer.U32Be();
  if (!answer.ok()) return MakeError(Code::kMalformed, "the TPM's answer is shorter than a header");
  return rc;
}

Status Link::Send() {
  const TSS2_RC rc = Tss2_Tcti_Transmit(lower_, command_.size(), command_.data());
  if (rc == TSS2_RC_SUCCESS) return Ok();
  return MakeError(Code::kUnavailable, "the TPM at '" + tcti_ + "' takes no command: " + RcText(rc), rc);
}

Status Link::Receive() {
  ASSAY_CHECK_OK(AwaitAnswer());
  response_.resize(TPM2_MAX_RESPONSE_SIZE);
  std::size_t size = response_.size();
  const TSS2_RC rc = Tss2_Tcti_Receive(lower_, &size, response_.data(), TSS2_TCTI_TIMEOUT_BLOCK);
  if (rc != TSS2_RC_SUCCESS)
    return MakeError(Code::kUnavailable, "the TPM at '" + tcti_ + "' gave no answer: " + RcText(rc), rc);
  response_.resize(std::min(size, response_.size()));
  return Ok();
}

// The TCTIs block without end; the deadline is kept here, where they name a descriptor to wait on.
Status Link::AwaitAnswer() {
  std::array<TSS2_TCTI_POLL_HANDLE, kMaxPollHandles> handles{};
  std::size_t count = handles.size();
  if (Tss2_Tcti_GetPollHandles(lower_, handles.data(), &count) != TSS2_RC_SUCCESS || count == 0 ||
      count > handles.size())
    return Ok();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kAnswerDeadlineMs);
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    const int ready =
        poll(handles.data(), static_cast<nfds_t>(count), static_cast<int>(std::max<std::int64_t>(left, 0)));
    if (ready > 0) return Ok();
    if (ready == 0) return MakeError(Code::kTimeout, "the TPM at '" + tcti_ + "' did not answer within three minutes");
    if (errno != EINTR) return MakeError(Code::kIo, "waiting for the TPM failed", static_cast<std::uint32_t>(errno));
  }
}

void Link::Answer(std::uint32_t rc) {
  Writer out(kHeader);
  out.U16Be(TPM2_ST_NO_SESSIONS);
  out.U32Be(kHeader);
  out.U32Be(rc);
  response_ = std::move(out).Take();
}

}  // namespace assay::tpm
