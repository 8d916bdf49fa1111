// SPDX-License-Identifier: Apache-2.0
// Makes evidence and host tokens: closes the batch of the runtime log, quotes, encodes. Everything here runs on the
// TPM thread. extraData is always ExtraData(tag, ...): the TPM never signs bytes that a caller chose.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/events/measured_log.h"
#include "agent/gate.h"
#include "agent/quoter/attester.h"
#include "sdk/core/agent_protocol.h"
#include "sdk/core/protocol.h"
#include "sdk/tpm/device.h"

namespace assay::agent {

// A token request that evidence carries, owned.
struct TokenOrder {
  std::string audience;
  std::string match;
  Digest server_nonce{};
  Digest session_key_hash{};
  CallerIdentity caller;
};

struct EvidenceOrder {
  Challenge challenge;
  Buffer channel_binding;  // 32 bytes; empty only for evidence that is merely shown
  std::optional<TokenOrder> token;
};

// What a result will refer to: host tokens after it use the same registers and carry the entries since.
struct ResultBasis {
  tpm::PcrSelection selection;
  std::uint64_t entries = 0;      // entries of the log that the evidence was made over
  std::uint32_t reset_count = 0;  // of the log: another value voids the basis
  Digest attester{};
};

struct MadeEvidence {
  Buffer evidence;
  ResultBasis basis;
};

// A copy for the server's thread: what status shows of log and attester.
struct QuoterFacts {
  std::uint32_t log_faults = 0;
  std::uint64_t log_entries = 0;
  Digest log_value{};
  GateFacts gate;
  AgentMeasurements measurements;
  std::optional<config::EnrollmentRecord> attester;
  std::string attester_problem;  // why there is none
};

class Quoter {
 public:
  struct Parts {
    tpm::Device* device;  // outlives the quoter
    MeasuredLog* log;
    Gate* gate;
    std::string state_dir;
    std::string firmware_log;  // path or empty
    std::string root;          // "" or a test's file tree
    std::uint8_t pcr;
    AgentMeasurements measurements;
  };
  explicit Quoter(Parts parts);

  Result<MadeEvidence> MakeEvidence(const EvidenceOrder& order);
  Result<Buffer> MakeHostToken(const local::HostTokenRequest& request, const ResultBasis& basis);
  Result<config::EnrollmentRecord> Attester();  // reloads when the enrollment file changed
  QuoterFacts Facts();
  Status AppendEntry(EntryKind kind);           // kStop, kRelease
  Status OnConfigChange(const Digest& config);  // another configuration is in force: a new identity entry
  // Written on the TPM thread by OnConfigChange: read it there.
  const AgentMeasurements& measurements() const noexcept { return parts_.measurements; }

 private:
  struct Body {
    Buffer encoded;
    std::uint64_t entries;
  };
  Status CloseBatch();
  Result<Buffer> EntriesSince(const ResultBasis& basis, const Digest& attester) const;
  Result<Body> BuildBody(const EvidenceOrder& order, const Digest& attester);
  Result<MadeEvidence> QuoteOnce(const EvidenceOrder& order, const config::EnrollmentRecord& attester, bool& again);

  Parts parts_;
  Buffer firmware_;
  FileStamp stamp_;
  bool loaded_ = false;
  std::optional<config::EnrollmentRecord> attester_;
  std::optional<Error> problem_;
};

}  // namespace assay::agent
