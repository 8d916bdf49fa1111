// SPDX-License-Identifier: Apache-2.0
// The verifier's configuration file (TOML, read strictly). Paths are resolved against the file's directory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sdk/core/result.h"

namespace assay::config {

struct VerifierConfig {
  std::string issuer;  // URL that result tokens name, e.g. "https://verifier.example"
  std::string listen_address = "127.0.0.1";
  std::uint16_t listen_port = 8443;  // 0: any free port, printed at start
  std::string tls_certificate;       // PEM, P-256
  std::string tls_key;
  std::string operator_socket;
  std::string operator_group;          // besides root and the verifier's own user; empty: nobody
  std::string state_dir;               // store.sqlite, audit/
  std::string keys_dir;                // result.pem, device.key, enroll_ca.*, audit keys
  std::string policy;                  // policy file
  std::vector<std::string> balancers;  // ADDRESS or ADDRESS/BITS: these must speak PROXY protocol v2
  unsigned threads = 0;                // 0: one per core
  // Limits
  std::uint64_t max_connections = 4096;
  std::uint64_t max_connections_per_source = 256;
  std::uint64_t max_handshakes = 512;   // half-open, all sources together
  std::uint64_t max_large_bodies = 64;  // evidence over 64 KiB being received
  std::uint64_t max_large_bodies_per_source = 8;
  std::uint64_t handshake_timeout_ms = 5'000;
  std::uint64_t header_timeout_ms = 5'000;
  std::uint64_t body_timeout_ms = 15'000;
  std::uint64_t handler_timeout_ms = 30'000;  // from the whole request to its answer
  std::uint64_t write_timeout_ms = 10'000;
  std::uint64_t idle_timeout_ms = 180'000;
  std::uint64_t drain_timeout_ms = 10'000;
  // Attestation
  std::uint64_t reattest_interval_ms = 60'000;
  std::uint64_t challenge_lifetime_ms = 120'000;
  // Enrollment
  std::uint64_t aik_lifetime_ms = 86'400'000;
  std::uint64_t begin_per_source_minute = 10;
  std::uint64_t begin_per_ek_minute =
      20;  // twice a source's by default; always more, or one source could lock another's EK out
  std::uint64_t begin_global_minute = 6'000;
};

Result<VerifierConfig> LoadVerifierConfig(const std::string& path);
Result<VerifierConfig> ParseVerifierConfig(std::string_view text, const std::string& name,
                                           const std::string& directory);

}  // namespace assay::config
