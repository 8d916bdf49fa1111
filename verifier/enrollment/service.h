// SPDX-License-Identifier: Apache-2.0
// Enrollment as the routes call it. Nothing is kept between begin and complete, and nothing is stored before the caller
// has made the audit record durable: PrepareComplete checks everything and changes nothing, the caller records what it
// returned and waits for the barrier, Commit then writes the store. Blocking (store reads, RSA); any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sdk/config/policy.h"
#include "sdk/core/protocol.h"
#include "sdk/core/result.h"
#include "verifier/enrollment/begin_limits.h"
#include "verifier/enrollment/ca.h"
#include "verifier/enrollment/ek_chain.h"
#include "verifier/enrollment/ticket.h"
#include "verifier/store/store.h"

namespace assay::enrollment {

// What the policy file says of enrollment, with the bundle of roots it names.
struct EnrollmentPolicy {
  bool require_token = true;             // false: open enrollment
  bool allow_ek_key = false;             // a bare EK without certificate; never affirming, always weak
  std::vector<tpm::EkKind> other_kinds;  // allowed beside the canonical RSA-2048 low-range EK; always weak
  std::vector<SignatureScheme> aik_schemes = {SignatureScheme::kRsaSsaSha256, SignatureScheme::kRsaPssSha256,
                                              SignatureScheme::kEcdsaP256Sha256};
  bool require_canonical_proof = false;  // true: an enrollment that would be weak is refused
  EkChainRules chain;
  std::int64_t certificate_lifetime = 86400;  // seconds
  // Owners: the policy in force and the requests that began under it.
  std::shared_ptr<const TrustBundle> bundle;
};

// Out of the policy file: loads the roots that it names. Fails as LoadTrustBundle does; without roots only where the
// policy allows bare EKs.
Result<std::shared_ptr<const EnrollmentPolicy>> EnrollmentPolicyOf(const config::Policy& policy,
                                                                   std::int64_t certificate_lifetime);

// What the audit record of an enrollment says. Digests are of keys and tokens, never the secrets themselves.
struct EnrollmentRecord {
  enum class Action : std::uint8_t { kEnroll, kReEnroll, kRotate, kRenew };
  Action action = Action::kEnroll;
  Digest host_id{};
  Digest attester{};
  store::EkClass ek_class = store::EkClass::kChain;
  std::optional<tpm::EkKind> ek_kind;  // not known at a renewal
  bool weak_device_id = false;
  std::string label;
  std::string anchor;  // the manufacturer's root, empty for ek-key
  std::optional<Digest> token_hash;
  std::uint64_t previous_generation = 0;  // 0: a new host
  std::int64_t not_after = 0;             // of the AIK certificate, seconds since the epoch
};
std::string_view ActionName(EnrollmentRecord::Action action) noexcept;  // "enroll", "re-enroll", "rotate", "renew"

// Checked and ready: nothing is written yet.
struct Pending {
  store::HostRow host;
  store::AikRow aik;
  EnrollResult result;  // its generation is set by Commit
  std::optional<Digest> token_hash;
  EnrollmentRecord record;
};

using BeginOutcome = std::variant<EnrollChallenge, ErrorReply>;
using PrepareOutcome = std::variant<Pending, ErrorReply>;
using CommitOutcome = std::variant<EnrollResult, ErrorReply>;

// All outlive the service.
struct ServiceDeps {
  store::Store* store = nullptr;
  const EnrollmentCa* ca = nullptr;
  const TicketSealer* tickets = nullptr;
  BeginLimits* limits = nullptr;
  std::function<std::shared_ptr<const EnrollmentPolicy>()> policy;  // in force now
  std::function<std::int64_t()> clock_ms;                           // since the epoch
};

class EnrollmentService {
 public:
  explicit EnrollmentService(ServiceDeps deps) : deps_(std::move(deps)) {}

  // `source`: the peer's address. An Error is a fault of the verifier (store, crypto), an ErrorReply a refusal.
  Result<BeginOutcome> Begin(const EnrollBegin& message, std::string_view source);
  Result<PrepareOutcome> PrepareComplete(const EnrollComplete& message);
  // For an AIK whose fresh quote was just accepted: a certificate with a new lifetime, same generation.
  Result<PrepareOutcome> PrepareRenew(const Digest& attester);
  // Only after the record is durable. A refusal here (a token used in the meantime) needs a record of its own.
  Result<CommitOutcome> Commit(const Pending& pending);

 private:
  struct BegunKeys;
  Result<std::optional<ErrorReply>> CheckToken(const std::optional<Digest>& token) const;
  std::optional<ErrorReply> CheckPolicyOf(const EnrollBegin& message, const EnrollmentPolicy& policy) const;
  Result<std::variant<BegunKeys, ErrorReply>> CheckKeys(const EnrollBegin& message,
                                                        const EnrollmentPolicy& policy) const;
  Result<EnrollChallenge> MakeChallenge(const EnrollBegin& message, const BegunKeys& keys) const;
  Result<std::optional<ErrorReply>> CheckStored(const store::AikRow& aik,
                                                const std::optional<store::HostRow>& known) const;
  Result<Pending> MakePending(const TicketContent& ticket, const PublicKey& aik, store::AikRow row, bool weak) const;
  std::int64_t NowSeconds() const { return deps_.clock_ms() / 1000; }

  ServiceDeps deps_;
};

// The HTTP status of a refusal by its code: 429 for limits, 409 for a conflict, 400 for what is malformed, 503 for what
// was no refusal but a fault of ours, else 403.
unsigned RefusalStatus(std::string_view code) noexcept;

}  // namespace assay::enrollment
