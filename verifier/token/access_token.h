// SPDX-License-Identifier: Apache-2.0
// Validation of access tokens in three modes: offline (signature and claims), cached (besides, a local denylist that
// may only be so old), live (besides, the store, each time). What cannot be asked refuses. Sessions are the same
// tokens under another type.
#pragma once

#include "verifier/token/denylist.h"
#include "verifier/token/jwt.h"

namespace assay::token {

inline constexpr char kAccessType[] = "at+jwt";  // RFC 9068
inline constexpr char kSessionType[] = "session+jwt";

// The store's word on a token id. Error: it could not be asked.
enum class Standing : std::uint8_t { kGood, kRevoked };
class RevocationStore {
 public:
  virtual ~RevocationStore() = default;
  virtual Result<Standing> Ask(std::string_view token_id) = 0;
};

enum class Mode : std::uint8_t { kOffline, kCached, kLive };

struct AccessPolicy {
  ClaimsPolicy claims;
  std::string_view type = kAccessType;
  std::string_view scope;  // empty: none needed
  Mode mode = Mode::kLive;
  const Denylist* denylist = nullptr;  // cached
  std::int64_t denylist_age_s = 60;    // cached: at most
  RevocationStore* store = nullptr;    // live
};

CheckedClaims ValidateAccessToken(const SecretRing& ring, std::string_view token, const AccessPolicy& policy);
// The same for tokens signed with a published key (ES256, EdDSA).
CheckedClaims ValidateAccessToken(const KeySet& keys, std::string_view token, const AccessPolicy& policy);

}  // namespace assay::token
