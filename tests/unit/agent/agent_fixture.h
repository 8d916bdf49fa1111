// SPDX-License-Identifier: Apache-2.0
// An enrolled agent's parts over a fake TPM, without threads or sockets.
#pragma once

#include <memory>
#include <optional>

#include "agent/quoter/quoter.h"
#include "tests/support/fake_device.h"
#include "tests/support/temp_dir.h"

namespace assay::agent::test {

inline constexpr std::uint8_t kPcr = 14;

AgentMeasurements SampleMeasurements();
Challenge SampleChallenge();

struct QuoterFixture {
  explicit QuoterFixture(tpm::AikKind kind = tpm::AikKind::kEccP256);
  void Enroll(const PublicKey& key);
  EvidenceOrder Order() const;

  assay::test::TempDir dir;
  assay::test::FakeDevice device;
  AbsentGate gate;
  std::optional<PublicKey> aik;
  std::optional<MeasuredLog> log;
  std::unique_ptr<Quoter> quoter;
};

}  // namespace assay::agent::test
