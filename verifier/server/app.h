// SPDX-License-Identifier: Apache-2.0
// The verifier as a whole: builds every room in order, serves, reloads, drains. main.cc only parses arguments.
#pragma once

#include <memory>
#include <string>

#include "sdk/config/verifier_config.h"
#include "sdk/core/result.h"

namespace assay::server {

class App {
 public:
  // Opens keys, store and trail, restores the fence from the verified trail, binds. Errors name cause and fix.
  static Result<std::unique_ptr<App>> Start(const config::VerifierConfig& config);
  virtual ~App() = default;
  virtual std::uint16_t port() const = 0;
  // A bad file keeps the policy in force; the error says what is wrong. Recorded either way.
  virtual Status ReloadPolicy() = 0;
  virtual void Stop() = 0;  // drains; idempotent
};

// Everything that Start would refuse, without starting: configuration, policy, certificate and keys.
Status CheckConfiguration(const config::VerifierConfig& config);

}  // namespace assay::server
