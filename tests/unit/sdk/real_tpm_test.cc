// SPDX-License-Identifier: Apache-2.0
// Host tokens over quotes of a software TPM, against results that speak of its keys, clock and registers.
#include <doctest/doctest.h>

#include "sdk/core/runtime_log.h"
#include "sdk/tpm/device.h"
#include "tests/support/swtpm.h"
#include "tests/unit/sdk/scene.h"

namespace assay::test {
namespace {

constexpr tpm::PcrSelection kSelection{tpm::Alg::kSha256, 0x40FF};
constexpr std::size_t kBootPcrs = 8;

// One machine that holds an attestation key, and what the verifier's result says of it.
struct Machine {
  std::unique_ptr<Swtpm> swtpm = Swtpm::Make().value();
  std::unique_ptr<tpm::Device> device;
  std::uint32_t aik = 0;
  Buffer spki;
  SignatureScheme scheme = SignatureScheme::kRsaSsaSha256;
  Buffer unique = Buffer(32, 0x5C);

  explicit Machine(tpm::AikKind kind) { Boot(kind); }
  void Boot(tpm::AikKind kind) {  // the same template and unique give the same key after each boot
    device = tpm::OpenDevice(swtpm->tcti()).value();
    const tpm::CreatedKey key = device->CreateAik(kind, unique).value();
    aik = key.handle;
    const tpm::PublicArea area = tpm::DecodePublicArea(key.public_area).value();
    scheme = tpm::CheckAikArea(area).value().scheme;
    spki = tpm::KeyOf(area).value().Spki();
  }
  void FillClaims(ResultClaims& claims) {
    const tpm::QuoteResult quote = device->Quote(aik, kSelection, Digest{}).value();
    const tpm::Attest attest = tpm::DecodeAttest(quote.attest).value();
    HostTokenClaims& host = *claims.host_token;
    claims.attester = Sha256(spki);
    host.aik_spki = spki;
    host.aik_scheme = scheme;
    host.reset_count = attest.clock.reset_count;
    host.restart_count = attest.clock.restart_count;
    host.clock_ms = attest.clock.clock;
    host.boot_pcr_mask = 0xFF;
    Buffer boot;
    for (std::size_t i = 0; i < kBootPcrs; ++i) boot.insert(boot.end(), quote.pcrs[i].begin(), quote.pcrs[i].end());
    host.boot_pcr_digest = Sha256(boot);
    host.pcr14 = quote.pcrs[kBootPcrs];
    host.allowed_entries = 1U << static_cast<unsigned>(EntryKind::kBatch);
  }
  Buffer MakeHostToken(const Scene& scene, const Buffer& entry) {
    HostToken token;
    token.attester = Sha256(spki);
    token.server_nonce = scene.host_request.server_nonce;
    token.session_key_hash = scene.host_request.session_key_hash;
    token.pcr_mask = kSelection.mask;
    Writer entries;
    if (!entry.empty()) {
      entries.U16Le(static_cast<std::uint16_t>(entry.size()));
      entries.Put(entry);
      token.entry_count = 1;
    }
    token.entries = entries.buffer();
    const tpm::QuoteResult quote =
        device->Quote(aik, kSelection, ExtraData(token.tag, token.server_nonce, HostTokenBodyDigest(token), {}))
            .value();
    Buffer values;
    for (const Digest& value : quote.pcrs) values.insert(values.end(), value.begin(), value.end());
    token.pcr_values = values;
    token.attest = quote.attest;
    token.signature = quote.signature;
    Buffer out(limits::kHostToken);
    out.resize(SerializeHostToken(token, out).value());
    return out;
  }
};

TEST_CASE("quotes of a TPM make host tokens that hold until the machine changes") {
  for (const tpm::AikKind kind : {tpm::AikKind::kRsaSsa, tpm::AikKind::kRsaPss, tpm::AikKind::kEccP256}) {
    Machine machine(kind);
    Scene scene;
    ResultClaims claims = scene.attester.Claims(scene.request);
    machine.FillClaims(claims);
    REQUIRE(scene.Verify(claims) == ASSAY_OK);
    assay_attester* handle = nullptr;
    REQUIRE(assay_result_prepare_host_tokens(&scene.result, &handle) == ASSAY_OK);
    const Attester attester(handle);
    const auto verify = [&](const Buffer& token) {
      return assay_verify_host_token(attester.get(), token.data(), token.size(), &scene.host_options, nullptr);
    };
    CHECK(verify(machine.MakeHostToken(scene, {})) == ASSAY_OK);
    const Buffer batch =
        EncodeRuntimeEntry({.index = 1, .kind = EntryKind::kBatch, .digests = {Sha256(AsBytes("library"))}});
    REQUIRE(machine.device->ExtendPcr(14, Sha256(batch)).ok());
    CHECK(verify(machine.MakeHostToken(scene, batch)) == ASSAY_OK);
    CHECK(verify(machine.MakeHostToken(scene, {})) == ASSAY_E_PCR14);
    REQUIRE(machine.device->ExtendPcr(4, Sha256(AsBytes("another kernel"))).ok());
    CHECK(verify(machine.MakeHostToken(scene, batch)) == ASSAY_E_BOOT_PCRS);
    machine.device.reset();
    REQUIRE(machine.swtpm->Restart().ok());
    machine.Boot(kind);
    CHECK(verify(machine.MakeHostToken(scene, {})) == ASSAY_E_RESET_COUNT);
  }
}

TEST_CASE("another machine's quote is refused, whatever it claims") {
  Machine honest(tpm::AikKind::kEccP256);
  Machine other(tpm::AikKind::kEccP256);
  other.unique = Buffer(32, 0x11);
  other.Boot(tpm::AikKind::kEccP256);
  Scene scene;
  ResultClaims claims = scene.attester.Claims(scene.request);
  honest.FillClaims(claims);
  REQUIRE(scene.Verify(claims) == ASSAY_OK);
  assay_attester* handle = nullptr;
  REQUIRE(assay_result_prepare_host_tokens(&scene.result, &handle) == ASSAY_OK);
  const Attester attester(handle);
  const auto verify = [&](const Buffer& token) {
    return assay_verify_host_token(attester.get(), token.data(), token.size(), &scene.host_options, nullptr);
  };
  CHECK(verify(other.MakeHostToken(scene, {})) == ASSAY_E_ATTESTER);
  other.spki = honest.spki;  // claims to be the honest one
  CHECK(verify(other.MakeHostToken(scene, {})) == ASSAY_E_SIGNATURE);
}

}  // namespace
}  // namespace assay::test
