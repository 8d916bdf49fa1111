// SPDX-License-Identifier: Apache-2.0
// What the verifier remembers, behind one interface: hosts, AIKs, clocks, verdicts, enrollment tokens, revocations.
// Every call is atomic and durable when it returns (SQLite: WAL, synchronous FULL). Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sdk/core/bytes.h"
#include "sdk/core/crypto.h"
#include "sdk/core/protocol.h"
#include "sdk/core/result.h"

namespace assay::store {

enum class EkClass : std::uint8_t { kChain = 0, kEkKey = 1 };  // EK certificate to a root, or a bare key

struct HostRow {
  Digest host_id{};
  std::string label;
  EkClass ek_class = EkClass::kChain;
  bool weak_device_id = false;
  Digest ek_spki_digest{};
  std::int64_t enrolled_at = 0;  // seconds since the epoch
  std::uint64_t generation = 0;  // of the current AIK
  bool reset_accepted = false;   // operator allowed one counter reset (hosts accept-reset)
  std::string state = "active";  // active | replaced
  std::optional<Digest> replaced_by;
};

struct AikRow {
  Digest attester{};
  Digest host_id{};
  std::uint64_t generation = 0;  // the host's counter: an AIK with a lower one than the host's is retired
  SignatureScheme scheme = SignatureScheme::kRsaSsaSha256;
  Buffer public_area;          // TPMT_PUBLIC
  Buffer certificate;          // X.509 DER
  std::int64_t not_after = 0;  // seconds since the epoch
};

// The fence's durable shadow: the last clock accepted of a host, kept over rotation and re-enrollment.
struct ClockRow {
  Digest host_id{};
  std::uint32_t reset_count = 0, restart_count = 0;
  std::uint64_t clock_ms = 0;
  std::uint64_t audit_sequence = 0;
  std::uint64_t runtime_index = 0;  // runtime-log entries known of this boot
  Digest pcr14{};                   // after them
};

struct VerdictRow {
  Digest host_id{};
  std::uint64_t audit_sequence = 0;
  std::int64_t at_ms = 0;  // since the epoch
  std::string outcome;     // "judged", "replay", ...
  Tier tier = Tier::kNone;
  std::string reasons_json;  // array of {code, tier, detail, fix}
  // As accepted by this record (audit_sequence of its own), or audit_sequence 0: nothing accepted, the host's clock stays.
  ClockRow clock;
};

struct Revocation {
  std::string kind;
  std::string value;
  std::int64_t until = 0;
};  // kind: "token" | "device" | "host"

class Store {
 public:
  virtual ~Store() = default;
  virtual Result<std::optional<HostRow>> FindHost(const Digest& host_id) = 0;
  virtual Result<std::optional<AikRow>> FindAik(const Digest& attester) = 0;
  virtual Result<std::vector<HostRow>> ListHosts(const std::optional<Digest>& after,
                                                 std::size_t limit) = 0;  // by host id
  // Inserts or updates the host, draws generation = old + 1 (1 for a new host; unchanged when the attester is the
  // host's current one already: a renewal), writes the AIK, and consumes `token_hash` when given (kDenied when it is
  // unknown, used or expired at `now`). All or nothing. The AIK of another host and a replaced host are
  // kConflict. Of a host that is known, enrolled_at, reset_accepted, state and replaced_by stay as they are.
  virtual Result<std::uint64_t> PutEnrollment(const HostRow& host, const AikRow& aik,
                                              const std::optional<Digest>& token_hash, std::int64_t now) = 0;
  virtual Status SetResetAccepted(const Digest& host_id, bool accepted) = 0;
  virtual Status ReplaceHost(const Digest& old_host, const Digest& new_host) = 0;
  virtual Status ForgetHost(const Digest& host_id) = 0;  // its AIKs and verdicts too; the clock row stays
  // One transaction. Raises the mark; moves a host's clock when the row's was accepted by a later record than the
  // stored one. The same host and sequence again replaces the row. A host forgotten in the meantime gets no row.
  virtual Status PutVerdicts(const std::vector<VerdictRow>& rows) = 0;
  virtual Result<std::vector<VerdictRow>> Verdicts(const Digest& host_id, std::size_t limit) = 0;  // newest first
  virtual Result<std::vector<ClockRow>> Clocks() = 0;
  virtual Status PutClocks(const std::vector<ClockRow>& rows) = 0;
  virtual Result<std::uint64_t> AuditMark() = 0;  // highest audit sequence that PutVerdicts covered
  // Could the token be used at `now`? kDenied as PutEnrollment would say; uses nothing up.
  virtual Status CheckEnrollmentToken(const Digest& token_hash, std::int64_t now) = 0;
  virtual Status AddEnrollmentToken(const Digest& token_hash, std::int64_t expires_at) = 0;
  virtual Status AddRevocation(const Revocation& revocation) = 0;
  virtual Result<std::vector<Revocation>> Revocations(std::int64_t now) = 0;
};

}  // namespace assay::store
