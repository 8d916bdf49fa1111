// SPDX-License-Identifier: Apache-2.0
// The TCTI that ESYS talks to: it forwards to the real one and stands between them for three things. It repeats
// commands that the TPM put off (RETRY, YIELDED, TESTING, NV_RATE) within a bound of its own, it shows each command to a Tap,
// and it turns a transport that broke into an answer ESYS survives, keeping the cause for the device to report.
// It never looks into a command beyond its header.
#pragma once

#include <tss2/tss2_tcti.h>

#include <memory>
#include <optional>
#include <string>

#include "sdk/core/bytes.h"
#include "sdk/core/result.h"
#include "sdk/tpm/device.h"

namespace assay::tpm {

// One owner, one thread. Pinned in memory: ESYS keeps the pointer that tcti() gives.
class Link {
 public:
  // Accepts "device:..." and "swtpm:...", for developers also "mssim:..." and "tabrmd:...", and nothing else: the
  // name decides which library is loaded.
  static Result<std::unique_ptr<Link>> Open(const std::string& tcti, Tap* tap);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  TSS2_TCTI_CONTEXT* tcti() noexcept { return reinterpret_cast<TSS2_TCTI_CONTEXT*>(&shim_); }
  // Why the last command got no answer of the TPM's own, once.
  std::optional<Error> TakeFault() noexcept { return std::exchange(fault_, std::nullopt); }

 private:
  struct Shim {
    TSS2_TCTI_CONTEXT_COMMON_V2 common{};  // first: the callbacks get its address
    Link* link = nullptr;
  };
  static TSS2_RC OnTransmit(TSS2_TCTI_CONTEXT* context, std::size_t size, const std::uint8_t* command) noexcept;
  static TSS2_RC OnReceive(TSS2_TCTI_CONTEXT* context, std::size_t* size, std::uint8_t* response,
                           std::int32_t timeout) noexcept;

  Link(std::string tcti, Tap* tap);
  Status Connect();
  void Disconnect() noexcept;
  void Exchange();
  Result<std::uint32_t> ExchangeOnce();
  Status Send();
  Status Receive();
  Status AwaitAnswer();
  void Answer(std::uint32_t rc);

  std::string tcti_;
  Tap* tap_;
  Shim shim_;
  TSS2_TCTI_CONTEXT* lower_ = nullptr;
  Buffer command_;
  Buffer response_;
  std::optional<Error> fault_;
};

}  // namespace assay::tpm
