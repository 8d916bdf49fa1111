// SPDX-License-Identifier: Apache-2.0
// Names of error codes, for logs and JSON.
#include "sdk/core/result.h"

namespace assay {

const char* CodeName(Code code) noexcept {
  switch (code) {
    case Code::kMalformed: return "malformed";
    case Code::kLimit: return "limit";
    case Code::kUnsupported: return "unsupported";
    case Code::kNotFound: return "not_found";
    case Code::kDenied: return "denied";
    case Code::kConflict: return "conflict";
    case Code::kBusy: return "busy";
    case Code::kUnavailable: return "unavailable";
    case Code::kTimeout: return "timeout";
    case Code::kIo: return "io";
    case Code::kCrypto: return "crypto";
    case Code::kTpm: return "tpm";
    case Code::kConfig: return "config";
    case Code::kInternal: return "internal";
  }
  return "unknown";
}

std::string Error::ToString() const { return std::string(CodeName(code)) + ": " + detail; }

}  // namespace assay
