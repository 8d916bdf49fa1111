// SPDX-License-Identifier: Apache-2.0
// The verifier's way of a re-attestation inside this process: the real Attestation, audit log on disk and SQLite store,
// without HTTP and TLS; and the parts of that way, each alone.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "perf/chain_world.h"
#include "verifier/audit/file_log.h"
#include "verifier/server/attestation.h"
#include "verifier/store/sqlite_store.h"

namespace assay::perf {

class Inside {
 public:
  // Enrolls the machines in a store of its own. `machines` outlives it.
  Inside(const Site& site, std::vector<Machine>& machines);
  // All machines attest once, all in flight together: CPU nanoseconds an attestation, verdict rows written included.
  double Round(bool with_token);

  // One part of the way: CPU nanoseconds each.
  struct Part {
    std::string name;
    std::function<double()> measure;
  };
  std::vector<Part> Parts();

 private:
  void FirstChallenges();
  double AuditAlone();
  double RowsAlone();

  test::TempDir dir_;
  std::vector<Machine>& machines_;
  std::vector<Challenge> next_;  // of each machine
  const Digest channel_ = Sha256(AsBytes("channel"));
  std::unique_ptr<store::SqliteStore> store_;
  std::unique_ptr<audit::FileAuditLog> log_;
  store::AikCache aiks_;
  attest::Fence fence_;
  attest::ChallengeKeeper challenges_;
  server::VerdictWriter verdicts_;
  server::PolicyHolder policy_;
  token::ResultIssuer issuer_;
  server::Attestation attestation_;
  std::int64_t rows_at_ = 0;
};

}  // namespace assay::perf
