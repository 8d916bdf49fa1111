// SPDX-License-Identifier: Apache-2.0
// Round trips with a software TPM and the verifier's process: what one enrollment and one attestation take, on the
// wall.
#pragma once

#include <string>
#include <vector>

#include "perf/chain_daemon.h"
#include "tests/support/swtpm.h"

namespace assay::perf {

struct RoundTrips {
  std::vector<double> enroll_ms;  // TLS connection, EK, AIK, credential, proof, certificate, all kept on disk
  std::vector<double> attest_ms;  // quote, evidence, request and verdict on a kept connection
};
RoundTrips MeasureRoundTrips(const test::Swtpm& tpm, const Site& site, std::uint16_t port, std::size_t count);

}  // namespace assay::perf
