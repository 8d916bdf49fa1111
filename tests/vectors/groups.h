// SPDX-License-Identifier: Apache-2.0
// One function for each group of vectors: from a vector's input to what the core answers. None sees an id, a note or
// the expected answer. An input that lacks a member it needs throws, and that vector fails.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "verifier/authz/zone.h"

namespace assay::vectors {

using Json = nlohmann::json;

Json MatchColon(const Json& input);
Json MatchPath(const Json& input);
Json MatchAction(const Json& input);
Json SubsetColon(const Json& input);
Json Canonical(const Json& input);
Json IpAllowlist(const Json& input);
Json TimeWindow(const Json& input);
Json DpopVerify(const Json& input);
Json DpopReplay(const Json& input);
Json DpopBinding(const Json& input);
Json DpopHeader(const Json& input);
Json Thumbprint(const Json& input);
Json DeviceBundle(const Json& input);

// The answers to a scenario's steps, in order.
std::vector<Json> RunScenario(const Json& input);

authz::ZoneSource& Zones();

}  // namespace assay::vectors
