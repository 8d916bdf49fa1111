// SPDX-License-Identifier: Apache-2.0
// The TOML files of the verifier: a document is refused with an error of configuration, or it reads whole.
#include <cstdlib>
#include <string>

#include "sdk/config/policy.h"
#include "sdk/config/verifier_config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace assay;
  const std::string_view text = AsText({data, size});
  if (text.find("key_file") != std::string_view::npos) return 0;  // reads other files
  const auto policy = config::ParsePolicy(text, "policy.toml", "/none");
  if (policy.ok() && (policy->name.empty() || (policy->selection.mask & (1U << 14)) == 0)) std::abort();
  if (!policy.ok() && policy.error().code != Code::kConfig && policy.error().code != Code::kLimit) std::abort();
  const auto verifier = config::ParseVerifierConfig(text, "verifier.toml", "/none");
  if (verifier.ok() && (verifier->issuer.empty() || verifier->tls_key.empty())) std::abort();
  if (!verifier.ok() && verifier.error().code != Code::kConfig && verifier.error().code != Code::kLimit) std::abort();
  return 0;
}
