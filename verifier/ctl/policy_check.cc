// SPDX-License-Identifier: Apache-2.0
// `assayctl policy check`: the verifier's own parser over a file, without a verifier.
#include "sdk/config/policy.h"
#include "verifier/ctl/commands.h"
#include "verifier/ctl/table.h"

namespace assay::ctl {

Outcome<Shown> PolicyCheck(const std::string& path) {
  const Result<config::Policy> policy = config::LoadPolicy(path);
  if (!policy.ok()) {
    const Exit exit = policy.error().code == Code::kNotFound || policy.error().code == Code::kIo ? Exit::kNotFound
                                                                                                 : Exit::kCheckFailed;
    return Failure{exit, "policy_invalid", policy.error().detail,
                   "correct the file and check again; docs/operations.md lists every key"};
  }
  Json titles = Json::array();
  std::string names;
  for (const config::Title& title : policy->titles) {
    titles.push_back(title.audience);
    names += (names.empty() ? "" : ", ") + Clean(title.audience);
  }
  const std::string digest = "sha256:" + ToHex(policy->digest);
  Json json = {{"ok", true},
               {"name", policy->name},
               {"digest", digest},
               {"titles", std::move(titles)},
               {"pcrs_judged", policy->pcrs.size()},
               {"asks_runtime", !policy->runtime_not_asked},
               {"open_enrollment", policy->enrollment_open}};
  std::string text = Clean(policy->name) + " " + digest + "\n  titles: " + (names.empty() ? "none" : names) +
                     "\n  PCRs judged: " + std::to_string(policy->pcrs.size()) + "\n";
  if (policy->runtime_not_asked) text += "  note: it asks nothing of the runtime\n";
  if (policy->enrollment_open) text += "  note: anyone with a TPM of the configured makers may enroll\n";
  return Shown{std::move(json), text};
}

}  // namespace assay::ctl
