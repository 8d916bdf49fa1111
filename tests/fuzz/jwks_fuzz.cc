// SPDX-License-Identifier: Apache-2.0
// Key sets: the keys of a set that parses can be written and read again under their thumbprints.
#include <cstdlib>

#include "sdk/core/token.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto set = assay::KeySet::ParseJwks(assay::AsText({data, size}));
  if (!set.ok()) return 0;
  for (const auto& entry : set->entries()) {
    const auto json = assay::JwksJson({&entry.key});
    if (!json.ok() || !assay::KeySet::ParseJwks(*json).ok()) std::abort();
  }
  return 0;
}
