// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/agent/agent_fixture.h"

#include "sdk/core/crypto.h"

namespace assay::agent::test {

AgentMeasurements SampleMeasurements() { return {Sha256(AsBytes("agent")), {}, Sha256(AsBytes("config"))}; }

Challenge SampleChallenge() {
  Challenge challenge;
  challenge.nonce = Buffer(limits::kChallenge, 0x21);
  challenge.selection = {tpm::Alg::kSha256, 0xFF | (1U << kPcr)};
  challenge.lifetime_ms = 60'000;
  return challenge;
}

QuoterFixture::QuoterFixture(tpm::AikKind kind) {
  aik.emplace(device.MakeAik(kind));
  Enroll(*aik);
  log.emplace(MeasuredLog::Open({RuntimeLogPath(dir.path()), kPcr, {}}, device).value());
  if (!log->AppendIdentity(SampleMeasurements()).ok()) std::abort();
  Quoter::Parts parts;
  parts.device = &device;
  parts.log = &*log;
  parts.gate = &gate;
  parts.state_dir = dir.path();
  parts.root = dir.path();
  parts.pcr = kPcr;
  parts.measurements = SampleMeasurements();
  quoter = std::make_unique<Quoter>(std::move(parts));
}

void QuoterFixture::Enroll(const PublicKey& key) {
  config::EnrollmentRecord record;
  record.host_id = Sha256(AsBytes("host"));
  record.attester = key.SpkiDigest();
  record.aik_handle = tpm::kDefaultAikHandle;
  record.verifier_url = "https://127.0.0.1:8443";
  record.certificate_path = dir / "aik.pem";
  record.not_after = 2'000'000'000;
  record.renew_after = 1'900'000'000;
  if (!config::SaveEnrollment(config::EnrollmentPath(dir.path()), record).ok()) std::abort();
}

EvidenceOrder QuoterFixture::Order() const {
  EvidenceOrder order;
  order.challenge = SampleChallenge();
  order.channel_binding = Buffer(32, 0x42);
  return order;
}

}  // namespace assay::agent::test
