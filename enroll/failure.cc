// SPDX-License-Identifier: Apache-2.0
#include "enroll/failure.h"

namespace assay::enroll {

Failure TpmFailure(const Error& error, std::string_view while_doing) {
  const std::string detail = "the TPM failed while " + std::string(while_doing) + ": " + error.detail;
  if (error.code == Code::kUnavailable || error.code == Code::kIo)
    return {Exit::kTpm, "tpm_unavailable", detail, "check --tcti, and that this user may open the TPM"};
  return {Exit::kTpm, "tpm_failed", detail, "run `assay-agent doctor` for the TPM's own state"};
}

Failure VerifierFailure(const Error& error, std::string_view url) {
  const std::string detail = std::string(url) + ": " + error.detail;
  switch (error.code) {
    case Code::kMalformed:
    case Code::kLimit:
      return {Exit::kVerifierUnreachable, "verifier_reply_malformed", detail,
              "check that the address is an Assay verifier's"};
    case Code::kTimeout:
      return {Exit::kVerifierUnreachable, "verifier_timeout", detail, "check the network, or raise --timeout"};
    case Code::kCrypto:
    case Code::kDenied:
      return {Exit::kVerifierUnreachable, "verifier_tls", detail,
              "check --ca: it must hold the CA of the verifier's TLS certificate"};
    default: return {Exit::kVerifierUnreachable, "verifier_unreachable", detail, "check --verifier and the network"};
  }
}

Failure StateFailure(const Error& error) {
  return {Exit::kState, "state_failed", error.detail, "check --state-dir and its permissions"};
}

Failure UsageFailure(const Error& error) {
  return {Exit::kUsage, "configuration", error.detail, "see assay-enroll --help"};
}

Failure RefusedBy(const ErrorReply& reply) { return {Exit::kRefused, reply.code, reply.detail, reply.fix}; }

}  // namespace assay::enroll
