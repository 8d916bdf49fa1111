// SPDX-License-Identifier: Apache-2.0
// Machines with software keys and a verifier's directory for the group `chain`. What a machine sends is what an agent
// without the gate sends in steady state: about 1.2 KB, no new entries of the runtime log.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sdk/config/policy.h"
#include "sdk/core/protocol.h"
#include "tests/support/temp_dir.h"
#include "verifier/store/store.h"

namespace assay::perf {

// A directory as `assay-verifier init` makes it, with limits out of the way of one source.
class Site {
 public:
  Site(const std::string& root_pem, const std::string& issuer_pem);
  std::string path(const std::string& name) const { return dir_ / ("v/" + name); }
  config::Policy Policy() const;

 private:
  test::TempDir dir_;
};

class Machine {
 public:
  explicit Machine(std::size_t number);

  const Digest& attester() const { return attester_; }
  store::HostRow host_row() const;
  store::AikRow aik_row() const;
  // Evidence for the challenge, encoded. Signs with the machine's RSA key.
  Buffer Answer(const Challenge& challenge, const Digest& channel, const std::optional<TokenRequest>& request);

 private:
  PrivateKey aik_;
  Buffer area_;
  Digest attester_{}, host_{};
  tpm::ClockInfo clock_{.clock = 100'000, .reset_count = 3, .restart_count = 0, .safe = true};
  Buffer entry_;  // the agent's start, the only entry of PCR 14
  Digest pcr14_{};
};

// The challenge that rides on a reply, which must be affirming and recorded.
Challenge Accept(Bytes reply, bool with_token);

// A request for a result token of the site's title, bound by a genuine server nonce. Views into `policy`.
TokenRequest AskForToken(const config::Policy& policy);
void Enroll(store::Store& store, const std::vector<Machine>& machines);

// One RSA-2048 verify by OpenSSL with key and context kept: the unit V, in nanoseconds of CPU, measured now.
class Yardstick {
 public:
  Yardstick();
  double Measure() const;

 private:
  PrivateKey key_;
  Digest digest_;
  Buffer signature_;
  EvpPkeyCtx ctx_;
};

}  // namespace assay::perf
