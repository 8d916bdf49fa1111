// SPDX-License-Identifier: Apache-2.0
#include "verifier/token/opaque.h"

#include "sdk/core/crypto.h"

namespace assay::token {

std::string NewOpaqueToken() { return kOpaquePrefix + ToBase64Url(RandomArray<kOpaqueBytes>()); }

std::optional<Digest> OpaqueTokenHash(std::string_view token) {
  constexpr std::string_view prefix = kOpaquePrefix;
  if (!token.starts_with(prefix) || token.size() > 64) return std::nullopt;
  const auto random = FromBase64Url(token.substr(prefix.size()));
  if (!random.ok() || random->size() != kOpaqueBytes) return std::nullopt;
  return Sha256(AsBytes(token));
}

}  // namespace assay::token
