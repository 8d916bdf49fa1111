// SPDX-License-Identifier: Apache-2.0
#include "perf/chain_world.h"

#include <openssl/rsa.h>

#include "perf/bench.h"
#include "perf/core_scene.h"
#include "sdk/config/files.h"
#include "sdk/core/runtime_log.h"
#include "sdk/core/token.h"
#include "tests/support/forge.h"
#include "verifier/server/init.h"

namespace assay::perf {
namespace {

constexpr int kVerifiesAtOnce = 250;
constexpr std::size_t kMaxFile = 1U << 16;

void Replace(std::string& text, const std::string& old, const std::string& fresh) {
  const std::size_t at = text.find(old);
  Expect(at != std::string::npos, "the configuration of a first start has changed");
  text.replace(at, old.size(), fresh);
}

}  // namespace

Site::Site(const std::string& root_pem, const std::string& issuer_pem) {
  const std::string root = dir_ / "root.pem", issuer = dir_ / "issuer.pem";
  Expect(config::CreateFile(root, AsBytes(root_pem), 0600).ok() &&
             config::CreateFile(issuer, AsBytes(issuer_pem), 0600).ok(),
         "the roots cannot be written");
  const auto made = server::InitDirectory(
      {.directory = dir_ / "v", .ek_roots = {root, issuer}, .audience = "title", .open_enrollment = true});
  Expect(made.ok(), "the verifier's directory cannot be made");
  std::string text = config::ReadTextFile(path("verifier.toml"), kMaxFile).value();
  Replace(text, "listen_port = 8443", "listen_port = 0");
  Replace(text, "begin_per_source_minute = 10",
          "begin_per_source_minute = 100000\nbegin_per_ek_minute = 200000\nbegin_global_minute = 1000000");
  text += "\n[limits]\nconnections_per_source = 1024\n";
  Expect(config::WriteFileAtomic(path("verifier.toml"), AsBytes(text), 0600).ok(),
         "the configuration cannot be written");
}

config::Policy Site::Policy() const {
  auto policy = config::LoadPolicy(path("policy.toml"));
  Expect(policy.ok(), "the policy of a first start does not load");
  return *std::move(policy);
}

Machine::Machine(std::size_t number) : aik_(PrivateKey::Generate(KeyType::kRsa2048).value()) {
  const PublicKey key = aik_.Public().value();
  area_ = RsaAikArea(key);
  attester_ = key.SpkiDigest();
  host_ = Sha256(AsBytes("host " + std::to_string(number)));
  RuntimeEntry start;
  start.agent = Sha256(AsBytes("agent"));
  entry_ = EncodeRuntimeEntry(start);
  pcr14_ = ExtendWithEntry(Digest{}, entry_);
}

store::HostRow Machine::host_row() const {
  store::HostRow row;
  row.host_id = host_;
  row.label = "machine";
  row.ek_spki_digest = Sha256(host_);
  return row;
}

store::AikRow Machine::aik_row() const {
  store::AikRow row;
  row.attester = attester_;
  row.host_id = host_;
  row.public_area = area_;
  row.certificate = Buffer(900, 0x30);
  row.not_after = 4'000'000'000;
  return row;
}

Buffer Machine::Answer(const Challenge& challenge, const Digest& channel, const std::optional<TokenRequest>& request) {
  clock_.clock += 10;
  EvidenceBody body;
  body.attester = attester_;
  body.runtime.agent = Sha256(AsBytes("agent"));
  body.runtime.scope = "none";
  body.runtime.log_from = challenge.runtime_from;
  if (challenge.runtime_from == 0) body.runtime.log = {Bytes(entry_)};
  else body.runtime.log_base = pcr14_;
  body.platform.lockdown = "none";
  body.platform.kernel_release = "6.1.0-28-amd64";
  body.request = request;
  test::ForgedEvidence parts;
  parts.nonce = challenge.nonce;
  parts.body = EncodeEvidenceBody(body);
  for (std::uint8_t pcr = 0; pcr < limits::kPcrs; ++pcr) {
    if ((challenge.selection.mask >> pcr & 1U) == 0) continue;
    parts.pcrs.emplace_back(pcr, pcr == 14 ? ToBuffer(pcr14_) : Buffer(kSha256Size, 0));
  }
  test::QuoteFields fields;
  fields.clock = clock_;
  fields.selections = {challenge.selection};
  fields.extra_data = ExtraData(QuoteTag::kEvidence, parts.nonce, Sha256(parts.body), channel);
  fields.pcr_digest = test::DigestOfPcrs(parts.pcrs, challenge.selection.mask);
  test::SignQuote(parts, aik_, SignatureScheme::kRsaSsaSha256, fields);
  return EncodeEvidence(parts.View());
}

Challenge Accept(Bytes reply, bool with_token) {
  auto decoded = DecodeAttestReply(reply);
  Expect(decoded.ok() && decoded->outcome == AttestReply::Outcome::kJudged && decoded->tier == Tier::kAffirming,
         "a machine was not affirmed");
  Expect(decoded->result_token.empty() != with_token, "a result token is missing or was not asked for");
  Expect(decoded->audit_sequence > 0, "a verdict without its record");
  return std::move(decoded->next);
}

TokenRequest AskForToken(const config::Policy& policy) {
  TokenRequest request;
  const config::Title& title = policy.titles.front();
  request.audience = title.audience;
  request.match = "match-1";
  request.session_key_hash = Sha256(AsBytes("channel key"));
  request.server_nonce =
      MakeServerNonce(title.key.view(), title.audience, request.match, RandomArray<16>(), request.session_key_hash);
  return request;
}

void Enroll(store::Store& store, const std::vector<Machine>& machines) {
  for (const auto& machine : machines) {
    Expect(store.PutEnrollment(machine.host_row(), machine.aik_row(), std::nullopt, 0).ok(),
           "a machine cannot be enrolled");
  }
}

Yardstick::Yardstick()
    : key_(PrivateKey::Generate(KeyType::kRsa2048).value()),
      digest_(Sha256(AsBytes("message"))),
      signature_(key_.SignDigest(SignatureScheme::kRsaSsaSha256, digest_).value()),
      ctx_(EVP_PKEY_CTX_new(key_.get(), nullptr)) {
  Expect(EVP_PKEY_verify_init(ctx_.get()) == 1 && EVP_PKEY_CTX_set_rsa_padding(ctx_.get(), RSA_PKCS1_PADDING) == 1 &&
             EVP_PKEY_CTX_set_signature_md(ctx_.get(), EVP_sha256()) == 1,
         "the bare verify cannot be set up");
}

double Yardstick::Measure() const {
  const double start = CpuNanoseconds();
  for (int i = 0; i < kVerifiesAtOnce; ++i) {
    Expect(EVP_PKEY_verify(ctx_.get(), signature_.data(), signature_.size(), digest_.data(), digest_.size()) == 1,
           "a bare verify failed");
  }
  return (CpuNanoseconds() - start) / kVerifiesAtOnce;
}

}  // namespace assay::perf
