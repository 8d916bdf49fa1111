// SPDX-License-Identifier: Apache-2.0
// Device bundles: a principal's rules, signed, for decisions without the verifier. What a bundle cannot decide needs
// the verifier; what it does not know it denies.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sdk/core/token.h"
#include "verifier/authz/model.h"
#include "verifier/authz/rate.h"

namespace assay::token {

inline constexpr char kBundleType[] = "device-bundle+jwt";

struct Bundle {
  std::string device, id;
  std::int64_t expires_at = 0;  // with the skew allowed when it was opened
  std::uint64_t version = 0;    // claim "ver"; 0 when it has none
  std::vector<authz::Rule> rules;
  bool unknown = false;  // holds a rule that this build cannot read: a denial may hide in it
};

enum class BundleFault : std::uint8_t {
  kNone,
  kSignature,
  kMalformed,
  kIssuer,
  kDevice,
  kNotYetValid,
  kExpired,
  kRollback
};

struct BundleCheck {
  std::string_view device, issuer;
  std::int64_t now = 0;
  std::int64_t skew_s = 30;
  std::uint64_t least_version = 0;  // the highest version ever accepted here
};
struct OpenedBundle {
  BundleFault fault = BundleFault::kMalformed;
  Bundle bundle;
};
OpenedBundle OpenBundle(const KeySet& keys, std::string_view token, const BundleCheck& check, authz::ZoneSource& zones);

enum class BundleAnswer : std::uint8_t { kDeny, kAllow, kNeedsOnline };
std::string_view BundleAnswerName(BundleAnswer answer) noexcept;

// `calls`: a local count of calls per hour; null: such rules need the verifier.
struct BundleCall {
  std::string_view action, resource;
  authz::CallFacts facts;
};
BundleAnswer DecideBundle(const Bundle& bundle, const BundleCall& call, authz::RateLedger* calls);

}  // namespace assay::token
