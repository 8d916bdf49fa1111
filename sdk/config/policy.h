// SPDX-License-Identifier: Apache-2.0
// The appraisal policy: what a machine must show to be called good, and which titles may ask. TOML, read strictly.
// docs/operations.md describes each key; `assayctl policy check FILE` is this very parser.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sdk/core/bytes.h"
#include "sdk/core/crypto.h"
#include "sdk/core/evidence.h"
#include "sdk/core/result.h"
#include "sdk/core/secret.h"
#include "sdk/core/tpm.h"

namespace assay::config {

enum class GateRequirement : std::uint8_t { kNone, kMonitor, kEnforce };

// A relying party's title: who may ask for its result tokens, and what they carry.
struct Title {
  std::string audience;                  // exact text that the game server expects
  std::string tenant;                    // with the audience, the scope of device ids
  std::vector<Digest> executables;       // callers that the gate measured and that may ask
  Secret key;                            // shared with the title's server, 32 bytes; empty: listed executables only
  std::uint64_t lifetime_s = 300;        // of a result token
  bool host_tokens = false;              // puts AIK and PCR digest into results: the title can then correlate
  std::uint32_t host_token_entries = 0;  // bit n: EntryKind n may follow in PCR 14 after the result
};

struct Policy {
  std::string name;
  Digest digest{};                                   // of the file's bytes: what verdicts and records name
  tpm::PcrSelection selection;                       // what is quoted; PCR 14 always among it
  std::map<std::uint8_t, std::vector<Digest>> pcrs;  // accepted values of each judged PCR
  std::vector<Digest> pcr14_base;                    // before the agent's first entry; empty: zeros only
  std::vector<Digest> agents;                        // accepted agent executables; empty: not judged
  GateRequirement gate = GateRequirement::kNone;
  std::vector<Digest> gate_policies;     // accepted gate policies; empty: any
  bool runtime_anchor_measured = false;  // demand runtime_anchor = measured
  bool self_reported_may_affirm = false;
  bool runtime_not_asked = false;    // the file says by name that it asks nothing of the runtime
  bool clock_unsafe_affirms = true;  // a power cut is reported but does not lower the tier
  bool weak_device_id_affirms = false;
  bool freshness_asked = false;              // always the second round trip
  std::vector<SignatureScheme> aik_schemes;  // allowed AIK algorithms
  // Enrollment
  bool enrollment_open = false;       // else a one-time enrollment token is needed
  bool allow_ek_key = false;          // a bare EK: never affirming, no ban-grade id
  std::vector<tpm::EkKind> ek_kinds;  // beside the canonical one; host ids from these are weak
  bool require_canonical_proof = false;
  bool ek_allow_expired = true;
  bool ek_allow_sha1 = false;
  std::vector<std::string> ek_roots;  // PEM files or directories of them
  std::vector<std::string> ek_intermediates;
  std::vector<Title> titles;

  bool AcceptsPcr14Base(const Digest& base) const noexcept;
};

// Key files are resolved against the policy file's directory. kConfig with file, line, key and what is allowed.
Result<Policy> LoadPolicy(const std::string& path);
Result<Policy> ParsePolicy(std::string_view text, const std::string& name, const std::string& directory);

}  // namespace assay::config
