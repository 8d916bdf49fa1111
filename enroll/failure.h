// SPDX-License-Identifier: Apache-2.0
// Why a run of assay-enroll ended early: for people a cause and a fix, for scripts a code and an exit status.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "sdk/core/protocol.h"
#include "sdk/core/result.h"

namespace assay::enroll {

// Documented in --help; never renumbered.
enum class Exit : int {
  kDone = 0,
  kInternal = 1,
  kUsage = 2,  // options or configuration
  kNotEnrolled = 3,
  kAlreadyEnrolled = 4,
  kTpm = 5,
  kVerifierUnreachable = 6,
  kRefused = 7,     // by the verifier
  kRenewalDue = 8,  // status: the certificate has ended or is in its last third
  kState = 9,       // the state directory cannot be read or written
};

struct Failure {
  Exit exit = Exit::kInternal;
  std::string code;  // stable: "tpm_unavailable", or the verifier's own code
  std::string detail;
  std::string fix;
};

template <typename T>
using Outcome = std::variant<T, Failure>;
using Check = std::optional<Failure>;  // nothing: go on

Failure TpmFailure(const Error& error, std::string_view while_doing);
Failure VerifierFailure(const Error& error, std::string_view url);
Failure StateFailure(const Error& error);
Failure UsageFailure(const Error& error);
Failure RefusedBy(const ErrorReply& reply);

}  // namespace assay::enroll
