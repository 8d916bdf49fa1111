// SPDX-License-Identifier: Apache-2.0
// What a revocation would take away, without doing it.
#pragma once

#include <string>
#include <vector>

#include "verifier/authz/directory.h"

namespace assay::authz {

struct ImpactEntry {
  std::string link, principal;      // a link that would fall and its grantee
  bool keeps_another_path = false;  // the grantee holds at least one of the link's rights otherwise
};
std::vector<ImpactEntry> ImpactOf(const Directory& directory, const Link& link, std::int64_t now);

// What a principal can do now: its own rules and those of live links, with the link (empty: own). A rule that its
// grantor no longer holds as a whole is marked: parts of it may still work.
struct EffectiveRule {
  const Rule* rule = nullptr;
  std::string link;
  bool whole = true;
};
std::vector<EffectiveRule> EffectiveRules(const Directory& directory, std::string_view principal, std::int64_t now);

}  // namespace assay::authz
