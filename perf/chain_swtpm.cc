// SPDX-License-Identifier: Apache-2.0
#include "perf/chain_swtpm.h"

#include <chrono>
#include <filesystem>

#include "enroll/enroll_flow.h"
#include "perf/bench.h"
#include "sdk/config/enroll_config.h"
#include "sdk/core/runtime_log.h"
#include "sdk/net/https_client.h"
#include "sdk/tpm/device.h"

namespace assay::perf {
namespace {

using Clock = std::chrono::steady_clock;
double MsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

constexpr std::uint8_t kRuntimePcr = 14;

config::EnrollmentRecord EnrollOnce(tpm::Device& device, const config::EnrollConfig& config) {
  auto verifier = enroll::ConnectVerifier(config);
  Expect(verifier.ok(), "the verifier cannot be reached");
  const enroll::Deps deps{device, **verifier, [](std::string_view) {}};
  auto outcome = enroll::EnrollFlow(deps, config, "").Run(enroll::Mode::kEnroll);
  if (const auto* failure = std::get_if<enroll::Failure>(&outcome)) {
    std::fprintf(stderr, "perf: %s: %s\n", failure->code.c_str(), failure->detail.c_str());
    Expect(false, "an enrollment failed");
  }
  return std::get<config::EnrollmentRecord>(outcome);
}

class Attester {
 public:
  Attester(tpm::Device& device, const config::EnrollmentRecord& record, net::HttpsClient client)
      : device_(device), record_(record), client_(std::move(client)) {
    RuntimeEntry start;
    start.agent = Sha256(AsBytes("agent"));
    entry_ = EncodeRuntimeEntry(start);
    Expect(device_.ExtendPcr(kRuntimePcr, Sha256(entry_)).ok(), "PCR 14 cannot be extended");
    pcr14_ = ExtendWithEntry(Digest{}, entry_);
    Expect(client_.Connect().ok(), "the verifier cannot be reached");
    const auto reply = client_.Post(route::kChallenge, "application/cbor", EncodeChallengeRequest({record_.attester}));
    Expect(reply.ok() && reply->status == 200, "no challenge");
    next_ = DecodeChallenge(reply->body).value();
  }

  double Once() {
    const auto start = Clock::now();
    const Buffer body = Body();
    const Digest channel = client_.ChannelBinding().value();
    const auto quote = device_.Quote(record_.aik_handle, next_.selection,
                                     ExtraData(QuoteTag::kEvidence, next_.nonce, Sha256(body), channel));
    Expect(quote.ok(), "no quote");
    Evidence evidence{
        .body = body, .quote = quote->attest, .signature = quote->signature, .nonce = next_.nonce, .pcrs = {}};
    for (std::uint8_t pcr = 0; pcr < limits::kPcrs; ++pcr) {
      if ((next_.selection.mask >> pcr & 1U) == 0) continue;
      evidence.pcrs.items[evidence.pcrs.count] = {pcr, quote->pcrs[evidence.pcrs.count]};
      ++evidence.pcrs.count;
    }
    const auto reply = client_.PostBound(route::kAttest, "application/cbor", EncodeEvidence(evidence));
    Expect(reply.ok() && reply->status == 200, "an attestation was refused");
    auto verdict = DecodeAttestReply(reply->body);
    Expect(verdict.ok() && verdict->tier == Tier::kAffirming, "a machine was not affirmed");
    next_ = std::move(verdict->next);
    return MsSince(start);
  }

 private:
  Buffer Body() const {
    EvidenceBody body;
    body.attester = record_.attester;
    body.runtime.agent = Sha256(AsBytes("agent"));
    body.runtime.scope = "none";
    body.runtime.log_from = next_.runtime_from;
    if (next_.runtime_from == 0) body.runtime.log = {Bytes(entry_)};
    else body.runtime.log_base = pcr14_;
    body.platform.lockdown = "none";
    body.platform.kernel_release = "6.1.0-28-amd64";
    return EncodeEvidenceBody(body);
  }

  tpm::Device& device_;
  const config::EnrollmentRecord record_;
  net::HttpsClient client_;
  Buffer entry_;
  Digest pcr14_{};
  Challenge next_;
};

}  // namespace

RoundTrips MeasureRoundTrips(const test::Swtpm& tpm, const Site& site, std::uint16_t port, std::size_t count) {
  const auto device = tpm::OpenDevice(tpm.tcti());
  Expect(device.ok(), "the software TPM cannot be opened");
  test::TempDir dir;
  config::EnrollConfig config;
  config.verifier = "https://localhost:" + std::to_string(port);
  config.ca = site.path("tls/cert.pem");
  RoundTrips out;
  config::EnrollmentRecord record;
  for (std::size_t i = 0; i < count; ++i) {
    config.state_dir = dir / ("state" + std::to_string(i));
    if (i > 0) Expect((*device)->RemovePersistent(config.aik_handle).ok(), "the AIK cannot be removed");
    const auto start = Clock::now();
    record = EnrollOnce(**device, config);
    out.enroll_ms.push_back(MsSince(start));
  }
  net::HttpsOptions options;
  options.host = "localhost";
  options.port = port;
  options.ca_file = config.ca;
  Attester attester(**device, record, net::HttpsClient::Create(std::move(options)).value());
  for (std::size_t i = 0; i < count; ++i) out.attest_ms.push_back(attester.Once());
  return out;
}

}  // namespace assay::perf
