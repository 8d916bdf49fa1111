// SPDX-License-Identifier: Apache-2.0
// DPoP proofs (RFC 9449): a request's sender holds the key that its access token is bound to.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::token {

inline constexpr std::int64_t kProofAhead = 30;    // seconds a proof may be dated ahead of us
inline constexpr std::int64_t kProofBehind = 330;  // and behind
inline constexpr std::size_t kProofId = 128;
inline constexpr std::size_t kReplayEntries = 1'000'000;

// Proofs seen, until they would be too old anyway. A store that starts without what its predecessor knew refuses all
// until the window has passed. Any thread.
class ReplayStore {
 public:
  virtual ~ReplayStore() = default;
  // True when this proof was not seen before; it is seen from now on.
  virtual bool Remember(std::string_view thumbprint, std::string_view proof_id, std::int64_t iat, std::int64_t now) = 0;
};

class MemoryReplayStore final : public ReplayStore {
 public:
  // `refuse_until`: after a restart, start + kProofAhead + kProofBehind; 0 when nothing was ever accepted before.
  explicit MemoryReplayStore(std::int64_t refuse_until = 0) : refuse_until_(refuse_until) {}
  bool Remember(std::string_view thumbprint, std::string_view proof_id, std::int64_t iat, std::int64_t now) override;

 private:
  std::mutex mutex_;
  std::int64_t refuse_until_;
  std::map<std::string, std::int64_t, std::less<>> seen_;  // key, when it may be forgotten
  std::multimap<std::int64_t, std::string> by_time_;
};

enum class ProofFault : std::uint8_t {
  kNone,
  kMalformed,
  kType,
  kAlgorithm,
  kKey,
  kSignature,
  kId,
  kMethod,
  kUrl,
  kTime,
  kAccessToken,
  kReplay,  // INVALID_DPOP_PROOF
  kNonce,   // USE_DPOP_NONCE
};
std::string_view ProofFaultCode(ProofFault fault) noexcept;

struct ProofRequest {
  std::string_view proof, method, url, access_token;
  std::int64_t now = 0;
  bool nonce_required = false;
  std::vector<std::string> nonces;  // those that are good now
};
struct ProofCheck {
  ProofFault fault = ProofFault::kMalformed;
  std::string thumbprint;  // when fault is kNone
  std::string proof_id;
  std::int64_t issued_at = 0;
};
ProofCheck VerifyProof(const ProofRequest& request, ReplayStore& replay);

// The one proof of a DPoP header field, or nothing.
std::optional<std::string_view> ProofFromHeader(std::string_view header) noexcept;

// A token bound to a key needs a proof by that key, an unbound one none.
bool BindingHolds(std::optional<std::string_view> token_jkt, std::optional<std::string_view> proof_jkt) noexcept;

// An http(s) URL without query and fragment, scheme and host in lower case, the default port left out.
std::optional<std::string> NormalUrl(std::string_view url);

}  // namespace assay::token
