// SPDX-License-Identifier: Apache-2.0
// The verifier's operator socket as assayctl sees it, behind a thin class so that tests can put routes there.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <variant>

#include "sdk/core/result.h"

namespace assay::ctl {

using Json = nlohmann::ordered_json;

// Documented in --help; never renumbered.
enum class Exit : int {
  kDone = 0,
  kInternal = 1,
  kUsage = 2,
  kNotFound = 3,
  kUnreachable = 4,  // no verifier at the socket
  kRefused = 5,      // by the verifier
  kCheckFailed = 6,  // policy check, audit verify: what was checked is not good
  kNotImplemented = 9,
};

struct Failure {
  Exit exit = Exit::kInternal;
  std::string code, detail, fix;
};
template <typename T>
using Outcome = std::variant<T, Failure>;

class OperatorClient {
 public:
  virtual ~OperatorClient() = default;
  struct Reply {
    unsigned status = 0;
    std::string body;
  };
  virtual Result<Reply> Call(const std::string& method, const std::string& path, const std::string& body) = 0;
};

std::unique_ptr<OperatorClient> ConnectOperator(const std::string& socket_path);

// The JSON object of a 200, or the failure told by the verifier or the socket.
Outcome<Json> Ask(OperatorClient& client, const std::string& method, const std::string& path, const Json& body);

}  // namespace assay::ctl
