// SPDX-License-Identifier: Apache-2.0
// `assay-verifier init`: a directory with everything a first start needs: TLS key and certificate, a title key, a
// configuration and a policy to edit. Never overwrites.
#pragma once

#include <string>
#include <vector>

#include "sdk/core/result.h"

namespace assay::server {

struct InitOptions {
  std::string directory;
  std::vector<std::string> names = {"localhost", "127.0.0.1"};  // of the TLS certificate
  std::uint16_t port = 8443;
  std::vector<std::string> ek_roots;  // PEM files or directories; empty: the policy says where to name them
  std::string audience = "example-title";
  bool open_enrollment = false;
};

Result<std::vector<std::string>> InitDirectory(const InitOptions& options);  // the files made

}  // namespace assay::server
