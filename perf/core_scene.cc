// SPDX-License-Identifier: Apache-2.0
#include "perf/core_scene.h"

#include "perf/bench.h"
#include "sdk/core/runtime_log.h"

namespace assay::perf {
namespace {

constexpr std::size_t kImaBytes = 5 << 10;
constexpr std::size_t kFirmwareBytes = 1536;
constexpr std::size_t kCertificateBytes = 1100;

Digest Named(std::string_view what, std::size_t n) {
  return Sha256(AsBytes(std::string(what) + " " + std::to_string(n)));
}

}  // namespace

SignedDigest SignRsa() {
  SignedDigest out{PrivateKey::Generate(KeyType::kRsa2048).value(), Sha256(AsBytes("message")), {}};
  out.signature = out.key.SignDigest(SignatureScheme::kRsaSsaSha256, out.digest).value();
  return out;
}

SignedDigest SignP256() {
  SignedDigest out{PrivateKey::Generate(KeyType::kP256).value(), Sha256(AsBytes("message")), {}};
  out.signature = EcdsaRawToDer(out.key.SignDigest(SignatureScheme::kEcdsaP256Sha256, out.digest).value()).value();
  return out;
}

EvidenceScene::EvidenceScene()
    : aik(PrivateKey::Generate(KeyType::kRsa2048).value()), boot(kFirmwareBytes, 0x5A), ima(kImaBytes, 0x31) {
  EvidenceBody body;
  body.attester = aik.Public().value().SpkiDigest();
  body.boot.firmware_log = boot;
  body.boot.ima_log = ima;
  body.runtime.agent = Sha256(AsBytes("agent"));
  body.runtime.bpf_object = Sha256(AsBytes("object"));
  body.runtime.gate = GateState::kEnforce;
  body.runtime.hooks = {"bprm_check_security", "mmap_file", "file_mprotect",
                        "ptrace_access_check", "bpf",       "unix_stream_connect"};
  body.runtime.scope = "/usr/games/title";
  body.runtime.counters = {{"allowed", 70'000}, {"denied", 3}, {"exec", 1200},
                           {"mmap", 66'000},    {"ptrace", 0}, {"bpf", 1}};
  body.runtime.log_from = 7;
  for (std::uint64_t i = 7; i < 11; ++i) {
    RuntimeEntry entry;
    entry.index = i;
    entry.kind = EntryKind::kBatch;
    entry.digests = {Named("program", i), Named("library", i), Named("plugin", i)};
    entries.push_back(EncodeRuntimeEntry(entry));
  }
  for (const auto& entry : entries) body.runtime.log.push_back(Bytes(entry));
  body.platform.lockdown = "integrity";
  body.platform.kernel_release = "6.1.0-28-amd64";
  parts.body = EncodeEvidenceBody(body);
  for (std::uint8_t pcr = 0; pcr < limits::kPcrs; ++pcr) {
    if ((kPcrMask >> pcr & 1U) != 0) parts.pcrs.emplace_back(pcr, Buffer(kSha256Size, pcr));
  }
  extra_data = ExtraData(QuoteTag::kEvidence, parts.nonce, Sha256(parts.body), Sha256(AsBytes("channel")));
  test::QuoteFields fields;
  fields.extra_data = extra_data;
  fields.selections = {{tpm::Alg::kSha256, kPcrMask}};
  fields.pcr_digest = test::DigestOfPcrs(parts.pcrs, kPcrMask);
  test::SignQuote(parts, aik, SignatureScheme::kRsaSsaSha256, fields);
  encoded = EncodeEvidence(parts.View());
}

Buffer RsaAikArea(const PublicKey& key) {
  Writer out;  // TPMT_PUBLIC, Part 2 table 203: restricted signing key, RSASSA over SHA-256, 2048 bits
  out.U16Be(0x0001), out.U16Be(0x000B);
  out.U32Be(tpm::attr::kFixedTpm | tpm::attr::kFixedParent | tpm::attr::kSensitiveDataOrigin |
            tpm::attr::kUserWithAuth | tpm::attr::kRestricted | tpm::attr::kSignEncrypt);
  out.PutU16Sized({});
  out.U16Be(0x0010), out.U16Be(0x0014), out.U16Be(0x000B), out.U16Be(2048), out.U32Be(0);
  out.PutU16Sized(key.Rsa().value().modulus);
  return std::move(out).Take();
}

EnrollBegin MakeEnrollBegin(const PublicKey& ek, const PublicKey& aik) {
  EnrollBegin message;
  message.ek_certificate = Buffer(kCertificateBytes, 0x30);
  message.ek_public = tpm::EkPublicArea(tpm::EkKind::kRsa2048Low, ek).value();
  message.intermediates = {Buffer(kCertificateBytes, 0x31)};
  message.aik_public = RsaAikArea(aik);
  message.token = "enrollment-token-of-32-characters";
  message.label = "machine-17";
  return message;
}

Digest StoreScene::Attester(std::size_t n) { return Named("aik", n); }

StoreScene::StoreScene(std::size_t hosts, const Buffer& aik_area)
    : store_(store::SqliteStore::Open({.path = dir_ / "store.sqlite"}).value()) {
  for (std::size_t n = 0; n < hosts; ++n) {
    store::HostRow host;
    host.host_id = Named("host", n);
    host.label = "machine";
    host.ek_spki_digest = Named("ek", n);
    store::AikRow aik;
    aik.attester = Attester(n);
    aik.host_id = host.host_id;
    aik.public_area = aik_area;
    aik.certificate = Buffer(kCertificateBytes, 0x32);
    aik.not_after = 2'000'000'000;
    Expect(store_->PutEnrollment(host, aik, std::nullopt, 0).ok(), "a host cannot be enrolled");
  }
}

}  // namespace assay::perf
