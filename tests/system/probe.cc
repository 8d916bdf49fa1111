// SPDX-License-Identifier: Apache-2.0
// assay-probe: a relay and a root user that do not play by the rules. Tests and the demo use it to show what the
// verifier refuses. It takes genuine evidence from an agent and bends it; each answer is one element of the JSON array
// it prints: {"step", "status", "code", "tier"}. Exit code 0 when every step could be tried, whatever the answers.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <thread>

#include "agent/local/client.h"
#include "sdk/config/enrollment.h"
#include "sdk/config/files.h"
#include "sdk/config/relay_config.h"
#include "sdk/core/evidence.h"
#include "sdk/core/json.h"
#include "sdk/core/protocol.h"
#include "sdk/net/https_client.h"
#include "sdk/tpm/device.h"

namespace assay {
namespace {

struct Options {
  std::string socket, url, ca, tcti, record, save;
  std::uint64_t delay_ms = 0;
  unsigned omit_pcr = 4;
};

struct Steps {
  std::string json = "[";
  void Add(std::string_view step, const net::HttpReply& reply) {
    std::string code = "ok";
    std::string tier;
    if (reply.status != 200) {
      const auto error = DecodeErrorReply(reply.body);
      code = error.ok() ? error->code : "undecodable";
    } else if (const auto answer = DecodeAttestReply(reply.body); answer.ok()) {
      tier = TierName(answer->tier);
      if (answer->outcome == AttestReply::Outcome::kFreshChallengeNeeded) code = "fresh_challenge_needed";
    }
    if (json.size() > 1) json += ',';
    json += "{\"step\":" + JsonQuote(step) + ",\"status\":" + std::to_string(reply.status) +
            ",\"code\":" + JsonQuote(code) + ",\"tier\":" + JsonQuote(tier) + "}";
  }
};

class Probe {
 public:
  explicit Probe(Options options) : options_(std::move(options)) {}

  Status Open() {
    ASSAY_TRY(record_, config::LoadEnrollment(options_.record));
    ASSAY_TRY(client_, Connect());
    return Ok();
  }
  Result<std::unique_ptr<net::HttpsClient>> Connect() const {
    ASSAY_TRY(const auto address, config::ParseVerifierUrl(options_.url));
    net::HttpsOptions https;
    https.host = address.host;
    https.port = address.port;
    https.ca_file = options_.ca;
    ASSAY_TRY(net::HttpsClient client, net::HttpsClient::Create(std::move(https)));
    return std::make_unique<net::HttpsClient>(std::move(client));
  }
  Result<Challenge> AskChallenge(net::HttpsClient& client) {
    ASSAY_TRY(const net::HttpReply reply,
              client.Post(route::kChallenge, "application/cbor", EncodeChallengeRequest({record_.attester})));
    if (reply.status != 200) return MakeError(Code::kDenied, "no challenge: status " + std::to_string(reply.status));
    ASSAY_TRY(Challenge challenge, DecodeChallenge(reply.body));
    challenge.runtime_from = 0;
    return challenge;
  }
  // Genuine evidence of the agent, as a relay gets it.
  Result<Buffer> AgentEvidence(const Challenge& challenge, const Digest& binding) {
    ASSAY_TRY(local::Client agent, local::Client::Connect(options_.socket));
    ASSAY_TRY(const local::Reply reply, agent.Call(local::EvidenceRequest{challenge, ToBuffer(binding), 0}, 30'000));
    if (!reply.ok) return MakeError(Code::kDenied, reply.error.code + ": " + reply.error.detail);
    return reply.payload;
  }
  Result<Buffer> Bound() {
    ASSAY_CHECK_OK(client_->Connect());
    ASSAY_TRY(const Challenge challenge, AskChallenge(*client_));
    ASSAY_TRY(const Digest binding, client_->ChannelBinding());
    return AgentEvidence(challenge, binding);
  }
  Status Post(std::string_view step, net::HttpsClient& client, Bytes bytes) {
    ASSAY_TRY(const net::HttpReply reply, client.Post(route::kAttest, "application/cbor", bytes));
    steps_.Add(step, reply);
    return Ok();
  }

  // The same bytes twice on their own connection, then on another.
  Status Replay() {
    ASSAY_TRY(const Buffer evidence, Bound());
    if (!options_.save.empty()) ASSAY_CHECK_OK(config::WriteFileAtomic(options_.save, evidence, 0644));
    std::this_thread::sleep_for(std::chrono::milliseconds(options_.delay_ms));
    ASSAY_CHECK_OK(Post("first", *client_, evidence));
    ASSAY_CHECK_OK(Post("again", *client_, evidence));
    ASSAY_TRY(auto other, Connect());
    return Post("again_elsewhere", *other, evidence);
  }
  // Fresh evidence of one connection on another: what a third party that got hold of it could do.
  Status Forward() {
    ASSAY_TRY(const Buffer evidence, Bound());
    ASSAY_TRY(auto other, Connect());
    return Post("forwarded", *other, evidence);
  }
  // One PCR left out of the quote and claimed to be zero.
  Status OmitPcr() {
    ASSAY_CHECK_OK(client_->Connect());
    ASSAY_TRY(const Challenge challenge, AskChallenge(*client_));
    ASSAY_TRY(const Digest binding, client_->ChannelBinding());
    ASSAY_TRY(const Buffer genuine, AgentEvidence(challenge, binding));
    ASSAY_TRY(Evidence evidence, DecodeEvidence(genuine));
    ASSAY_TRY(auto device, tpm::OpenDevice(options_.tcti));
    const tpm::PcrSelection less{challenge.selection.hash, challenge.selection.mask & ~(1U << options_.omit_pcr)};
    ASSAY_TRY(const tpm::QuoteResult quote,
              device->Quote(record_.aik_handle, less,
                            ExtraData(QuoteTag::kEvidence, challenge.nonce, Sha256(evidence.body), binding)));
    evidence.quote = quote.attest;
    evidence.signature = quote.signature;
    const Digest zero{};
    for (std::size_t i = 0; i < evidence.pcrs.count; ++i)
      if (evidence.pcrs.items[i].pcr == options_.omit_pcr) evidence.pcrs.items[i].value = zero;
    return Post("pcr_left_out", *client_, EncodeEvidence(evidence));
  }
  // This TPM's quote under another machine's attester id: the record names the victim, the TCTI is ours.
  Status Impersonate() {
    ASSAY_CHECK_OK(client_->Connect());
    ASSAY_TRY(const Challenge challenge, AskChallenge(*client_));
    ASSAY_TRY(const Digest binding, client_->ChannelBinding());
    ASSAY_TRY(auto device, tpm::OpenDevice(options_.tcti));
    EvidenceBody body;
    body.attester = record_.attester;
    body.runtime.scope = "none";
    body.platform.lockdown = "none";
    body.platform.kernel_release = "none";
    const Buffer encoded = EncodeEvidenceBody(body);
    ASSAY_TRY(const tpm::QuoteResult quote,
              device->Quote(record_.aik_handle, challenge.selection,
                            ExtraData(QuoteTag::kEvidence, challenge.nonce, Sha256(encoded), binding)));
    Evidence evidence{
        .body = encoded, .quote = quote.attest, .signature = quote.signature, .nonce = challenge.nonce, .pcrs = {}};
    std::size_t next = 0;
    for (std::uint8_t pcr = 0; pcr < limits::kPcrs; ++pcr) {
      if ((challenge.selection.mask & (1U << pcr)) != 0)
        evidence.pcrs.items[evidence.pcrs.count++] = {pcr, quote.pcrs[next++]};
    }
    return Post("impersonated", *client_, EncodeEvidence(evidence));
  }
  // Every byte of genuine evidence flipped at a stride, each refused; the untouched evidence last.
  Status Mutate() {
    ASSAY_TRY(const Buffer evidence, Bound());
    const std::size_t stride = evidence.size() / 64 + 1;
    for (std::size_t at = 0; at < evidence.size(); at += stride) {
      Buffer bad = evidence;
      bad[at] ^= 0x20;
      ASSAY_CHECK_OK(Post("flip@" + std::to_string(at), *client_, bad));
    }
    ASSAY_CHECK_OK(Post("cut", *client_, Bytes(evidence).first(evidence.size() - 1)));
    return Post("untouched", *client_, evidence);
  }
  const std::string& json() const { return steps_.json; }

 private:
  Options options_;
  config::EnrollmentRecord record_;
  std::unique_ptr<net::HttpsClient> client_;
  Steps steps_;
};

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  CLI::App cli{"Bends genuine evidence to show what a verifier refuses (tests and demo only)."};
  assay::Options options;
  cli.add_option("--socket", options.socket, "Agent's socket; run as the relay's user");
  cli.add_option("--verifier", options.url, "https://host:port")->required();
  cli.add_option("--ca", options.ca, "PEM file of the verifier's CA")->required();
  cli.add_option("--record", options.record, "enrollment.toml")->required();
  cli.add_option("--tcti", options.tcti, "TPM, for omit-pcr and impersonate");
  cli.add_option("--save", options.save, "Keep the evidence in this file");
  cli.add_option("--delay-ms", options.delay_ms, "Between quote and submission");
  cli.add_option("--pcr", options.omit_pcr, "For omit-pcr")->capture_default_str();
  auto* replay = cli.add_subcommand("replay", "The same evidence twice, and elsewhere");
  auto* forward = cli.add_subcommand("forward", "Fresh evidence on another connection");
  auto* omit = cli.add_subcommand("omit-pcr", "A PCR left out of the quote and lied about");
  auto* impersonate = cli.add_subcommand("impersonate", "This TPM under another machine's id");
  auto* mutate = cli.add_subcommand("mutate", "Flipped bytes and a cut");
  cli.require_subcommand(1);
  CLI11_PARSE(cli, argc, argv);
  assay::Probe probe(options);
  assay::Status status = probe.Open();
  if (status.ok() && *replay) status = probe.Replay();
  if (status.ok() && *forward) status = probe.Forward();
  if (status.ok() && *omit) status = probe.OmitPcr();
  if (status.ok() && *impersonate) status = probe.Impersonate();
  if (status.ok() && *mutate) status = probe.Mutate();
  std::printf("%s]\n", probe.json().c_str());
  if (status.ok()) return 0;
  std::fprintf(stderr, "assay-probe: %s\n", status.error().ToString().c_str());
  return 1;
}
