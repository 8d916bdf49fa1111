// SPDX-License-Identifier: Apache-2.0
// The device against a software TPM: keys, quotes, clocks, and what is left behind by failures.
#include <bit>

#include "tests/unit/tpm/scene.h"
#include "verifier/enrollment/make_credential.h"

using namespace assay;
using namespace assay::test;

namespace {

const Digest kExtra = Sha256(AsBytes("what a quote binds"));
const std::vector<tpm::AikKind> kAikKinds = {tpm::AikKind::kRsaSsa, tpm::AikKind::kRsaPss, tpm::AikKind::kEccP256};

Digest DigestOf(const std::vector<Digest>& values) {
  Sha256Stream stream;
  for (const Digest& value : values) stream.Update(value);
  return stream.Finish();
}

// Signature by the key, over a quote of these PCRs with these values, for this extra data.
void CheckQuoted(const tpm::QuoteResult& quote, const Buffer& aik_area, tpm::PcrSelection selection,
                 const Digest& extra) {
  const auto scheme = Must(tpm::CheckAikArea(Must(tpm::DecodePublicArea(aik_area)))).scheme;
  const auto raw = Must(tpm::ToRaw(Must(tpm::DecodeSignature(quote.signature))));
  CHECK(KeyOfArea(aik_area).VerifyDigest(scheme, Sha256(quote.attest), raw.view()) == SignatureCheck::kValid);
  const tpm::Attest attest = Must(tpm::DecodeAttest(quote.attest));
  CHECK(attest.magic == tpm::kGenerated);
  CHECK(attest.type == static_cast<std::uint16_t>(tpm::AttestType::kQuote));
  CHECK(Equal(attest.extra_data, extra));
  REQUIRE(attest.selections.count == 1);
  CHECK(attest.selections.items[0] == selection);
  CHECK(quote.pcrs.size() == static_cast<std::size_t>(std::popcount(selection.mask)));
  CHECK(Equal(attest.pcr_digest, DigestOf(quote.pcrs)));
}

// Everything a machine does at its TPM to enroll. The challenge is made here as the verifier makes it.
Status Enroll(tpm::Device& device, std::uint32_t persistent) {
  const Result<Buffer> there = device.ReadPublic(persistent);
  if (there.ok()) return MakeError(Code::kConflict, "taken");
  if (there.error().code != Code::kNotFound) return there.error();
  ASSAY_TRY(const Buffer certificate, device.ReadNv(tpm::EkCertificateIndex(tpm::EkKind::kRsa2048Low)));
  const Result<Buffer> chain = device.ReadNv(0x01C00100);
  if (!chain.ok() && chain.error().code != Code::kNotFound) return chain.error();
  ASSAY_TRY(const tpm::CreatedKey ek, device.CreateEk(tpm::EkKind::kRsa2048Low));
  struct Flush {
    tpm::Device& device;
    std::uint32_t handle;
    ~Flush() { (void)device.FlushTransient(handle).ok(); }
  };
  const Flush flush_ek{device, ek.handle};
  ASSAY_TRY(const tpm::CreatedKey aik, device.CreateAik(tpm::AikKind::kRsaSsa, RandomArray<32>()));
  const Flush flush_aik{device, aik.handle};
  const Buffer secret(32, 0x5A);
  ASSAY_TRY(const auto challenge, enrollment::MakeCredential(tpm::EkKind::kRsa2048Low, KeyOfCertificate(certificate),
                                                             Must(tpm::ObjectName(aik.public_area)), secret));
  ASSAY_TRY(const Secret activated,
            device.ActivateCredential(aik.handle, ek.handle, challenge.credential_blob, challenge.encrypted_secret));
  CHECK(Equal(activated.view(), secret));
  ASSAY_TRY(const tpm::AttestedBytes proof, device.CertifyCreation(aik.handle, ek, kExtra));
  const tpm::Attest attest = Must(tpm::DecodeAttest(proof.attest));
  CHECK(Equal(attest.object_name,
              Must(tpm::ObjectName(Must(tpm::EkPublicArea(tpm::EkKind::kRsa2048Low, KeyOfCertificate(certificate)))))));
  return device.Persist(aik.handle, persistent);
}

}  // namespace

TEST_CASE("an EK made from its template is the one that the manufacturer certified") {
  Bench bench;
  for (const tpm::EkKind kind : {tpm::EkKind::kRsa2048Low, tpm::EkKind::kEccP384High}) {
    const Buffer certificate = Must(bench.device->ReadNv(tpm::EkCertificateIndex(kind)));
    const tpm::CreatedKey ek = Must(bench.device->CreateEk(kind));
    const PublicKey certified = KeyOfCertificate(certificate);
    CHECK(KeyOfArea(ek.public_area).SpkiDigest() == certified.SpkiDigest());
    CHECK(Must(tpm::EkPublicArea(kind, certified)) == ek.public_area);
    CHECK(bench.device->FlushTransient(ek.handle).ok());
  }
}

TEST_CASE("the TPM accepts every EK template and reports the area that we compute for its key") {
  Bench bench;
  for (const tpm::EkKind kind : {tpm::EkKind::kRsa2048Low, tpm::EkKind::kRsa2048High, tpm::EkKind::kEccP256Low,
                                 tpm::EkKind::kEccP256High, tpm::EkKind::kEccP384High}) {
    const tpm::CreatedKey ek = Must(bench.device->CreateEk(kind));
    CHECK(Must(tpm::EkPublicArea(kind, KeyOfArea(ek.public_area))) == ek.public_area);
    CHECK(Must(bench.device->ReadPublic(ek.handle)) == ek.public_area);
    CHECK(bench.device->FlushTransient(ek.handle).ok());
  }
}

TEST_CASE("AIKs of all kinds are what the verifier asks for, and only the same unique gives the same key") {
  Bench bench;
  const Digest unique = Sha256(AsBytes("first"));
  const Digest other = Sha256(AsBytes("second"));
  for (const tpm::AikKind kind : kAikKinds) {
    const tpm::CreatedKey first = Must(bench.device->CreateAik(kind, unique));
    CHECK(tpm::CheckAikArea(Must(tpm::DecodePublicArea(first.public_area))).ok());
    CHECK(bench.device->FlushTransient(first.handle).ok());
    const tpm::CreatedKey again = Must(bench.device->CreateAik(kind, unique));
    CHECK(again.public_area == first.public_area);
    CHECK(bench.device->FlushTransient(again.handle).ok());
    const tpm::CreatedKey rotated = Must(bench.device->CreateAik(kind, other));
    CHECK(rotated.public_area != first.public_area);
    CHECK(bench.device->FlushTransient(rotated.handle).ok());
  }
  CheckNothingLoaded(*bench.tpm);
}

TEST_CASE("quotes of all kinds verify and carry the values whose digest was signed") {
  Bench bench;
  for (const tpm::AikKind kind : kAikKinds) {
    const tpm::CreatedKey aik = Must(bench.device->CreateAik(kind, kExtra));
    REQUIRE(bench.device->Persist(aik.handle, tpm::kDefaultAikHandle).ok());
    REQUIRE(bench.device->FlushTransient(aik.handle).ok());
    for (const std::uint32_t mask : {0x1U, 0x4000U, kSomePcrs.mask, 0xFFFFFFU}) {
      const tpm::PcrSelection selection{tpm::Alg::kSha256, mask};
      CheckQuoted(Must(bench.device->Quote(tpm::kDefaultAikHandle, selection, kExtra)), aik.public_area, selection,
                  kExtra);
    }
    REQUIRE(bench.device->RemovePersistent(tpm::kDefaultAikHandle).ok());
  }
}

TEST_CASE("a quote in the steady state is one command, and a PCR that moved is read again") {
  Bench bench;
  const tpm::CreatedKey aik = Must(bench.device->CreateAik(tpm::AikKind::kRsaSsa, kExtra));
  REQUIRE(bench.device->Persist(aik.handle, tpm::kDefaultAikHandle).ok());
  const auto second = Must(tpm::OpenDevice(bench.tpm->tcti(), &bench.tap));
  bench.tap.seen.clear();
  const auto first = Must(second->Quote(tpm::kDefaultAikHandle, kSomePcrs, kExtra));
  CHECK(bench.tap.seen.size() == 4);  // the key's public area, the quote, nine values in two answers
  const auto steady = Must(second->Quote(tpm::kDefaultAikHandle, kSomePcrs, kExtra));
  CHECK(bench.tap.seen.size() == 5);
  CHECK(steady.pcrs == first.pcrs);
  REQUIRE(TpmExtend(*bench.tpm, 14, kExtra).ok());
  const auto moved = Must(second->Quote(tpm::kDefaultAikHandle, kSomePcrs, kExtra));
  CheckQuoted(moved, aik.public_area, kSomePcrs, kExtra);
  CHECK(moved.pcrs.back() == Sha256({first.pcrs.back(), kExtra}));
}

TEST_CASE("PCRs that move between quote and read are quoted again, within a bound") {
  Bench bench;
  const tpm::CreatedKey aik = Must(bench.device->CreateAik(tpm::AikKind::kRsaSsa, kExtra));
  std::size_t quotes = 0;
  bool for_ever = false;
  std::uint32_t last = 0;
  bench.tap.answer = [&](std::size_t, std::uint32_t code) {
    if (code == 0x158) ++quotes;  // TPM2_Quote, then TPM2_PCR_Read
    const bool between = last == 0x158 && code == 0x17E;
    if (for_ever ? code == 0x17E : between && quotes == 1) CHECK(TpmExtend(*bench.tpm, 14, kExtra).ok());
    last = code;
    return 0U;
  };
  CheckQuoted(Must(bench.device->Quote(aik.handle, kSomePcrs, kExtra)), aik.public_area, kSomePcrs, kExtra);
  CHECK(quotes == 2);  // the values read after the first fit the second
  for_ever = true;
  REQUIRE(bench.device->ExtendPcr(14, kExtra).ok());
  const auto restless = bench.device->Quote(aik.handle, kSomePcrs, kExtra);
  REQUIRE_FALSE(restless.ok());
  CHECK(restless.error().code == Code::kConflict);
}

TEST_CASE("selections that are no sha256 PCRs are refused before the TPM is asked") {
  Bench bench;
  for (const tpm::PcrSelection bad : {tpm::PcrSelection{tpm::Alg::kSha1, 1}, tpm::PcrSelection{tpm::Alg::kSha256, 0},
                                      tpm::PcrSelection{tpm::Alg::kSha256, 1U << 24}}) {
    CHECK(bench.device->ReadPcrs(bad).error().code == Code::kUnsupported);
    CHECK(bench.device->Quote(tpm::kDefaultAikHandle, bad, kExtra).error().code == Code::kUnsupported);
  }
  CHECK(bench.device->ExtendPcr(24, kExtra).error().code == Code::kUnsupported);
  CHECK(bench.tap.seen.empty());
}

TEST_CASE("an enrollment takes at most fourteen commands and leaves nothing but the persistent key") {
  Bench bench;
  const Status enrolled = Enroll(*bench.device, tpm::kDefaultAikHandle);
  REQUIRE_MESSAGE(enrolled.ok(), (enrolled.ok() ? "" : enrolled.error().ToString()));
  MESSAGE("an enrollment's TPM commands: ", bench.tap.seen.size());
  CHECK(bench.tap.seen.size() <= 14);
  CheckNothingLoaded(*bench.tpm);
  const auto persistent = Must(TpmHandles(*bench.tpm, kPersistentHandles));
  CHECK(std::count(persistent.begin(), persistent.end(), tpm::kDefaultAikHandle) == 1);
}

TEST_CASE("an enrollment that fails at any of its commands leaves no object and no session") {
  Bench bench;
  std::size_t fail_at = 1;
  for (;; ++fail_at) {
    bench.tap.seen.clear();
    bench.tap.answer = [&](std::size_t number, std::uint32_t) {
      return number == fail_at ? 0x101U : 0U;
    };  // TPM_RC_FAILURE
    const Status enrolled = Enroll(*bench.device, tpm::kDefaultAikHandle);
    const bool reached = bench.tap.seen.size() >= fail_at;
    bench.tap.answer = nullptr;
    if (!reached) {
      CHECK(enrolled.ok());
      break;
    }
    const bool while_flushing = enrolled.ok();  // the last commands: the enrollment stands, the device keeps the handle
    if (while_flushing) {
      REQUIRE(bench.device->RemovePersistent(tpm::kDefaultAikHandle).ok());
      bench.device = Must(tpm::OpenDevice(bench.tpm->tcti(), &bench.tap));  // closing the old one flushes
    }
    CheckNothingLoaded(*bench.tpm);
  }
  CHECK(fail_at > 10);
}

TEST_CASE("a command that the TPM puts off is repeated, each try counted") {
  Bench bench;
  for (const std::uint32_t rc : {0x922U, 0x908U, 0x90AU, 0x920U}) {  // RETRY, YIELDED, TESTING, NV_RATE
    bench.tap.seen.clear();
    bench.tap.answer = [&](std::size_t number, std::uint32_t) { return number <= 3 ? rc : 0U; };
    CHECK(bench.device->ReadClock().ok());
    CHECK(bench.tap.seen.size() == 4);
  }
}

TEST_CASE("a TPM that puts a command off for ever is given up, and the device works on") {
  Bench bench;
  bench.tap.answer = [](std::size_t, std::uint32_t) { return 0x922U; };
  const auto clock = bench.device->ReadClock();
  REQUIRE_FALSE(clock.ok());
  CHECK(clock.error().code == Code::kBusy);
  CHECK(clock.error().os == 0x922);
  CHECK(bench.tap.seen.size() == 14);
  bench.tap.answer = nullptr;
  CHECK(bench.device->ReadClock().ok());
}

TEST_CASE("a lockout is reported in words with the TPM's own counters") {
  Bench bench;
  const tpm::CreatedKey aik = Must(bench.device->CreateAik(tpm::AikKind::kRsaSsa, kExtra));
  bench.tap.answer = [](std::size_t, std::uint32_t code) { return code == 0x158 ? 0x921U : 0U; };
  const auto quote = bench.device->Quote(aik.handle, kSomePcrs, kExtra);
  REQUIRE_FALSE(quote.ok());
  CHECK(quote.error().code == Code::kTpm);
  CHECK(quote.error().os == 0x921);
  for (const char* word : {"lockout", "failed tries: 0", "one is forgiven every", "tpm2_dictionarylockout"}) {
    CHECK_MESSAGE(quote.error().detail.find(word) != std::string::npos, quote.error().detail);
  }
}

TEST_CASE("what is not there is not found, and persistent keys are replaced and removed") {
  Bench bench;
  CHECK(bench.device->ReadPublic(tpm::kDefaultAikHandle).error().code == Code::kNotFound);
  CHECK(bench.device->ReadNv(0x01C00042).error().code == Code::kNotFound);
  CHECK(bench.device->Quote(tpm::kDefaultAikHandle, kSomePcrs, kExtra).error().code == Code::kNotFound);
  CHECK(bench.device->RemovePersistent(tpm::kDefaultAikHandle).error().code == Code::kNotFound);
  const tpm::CreatedKey first = Must(bench.device->CreateAik(tpm::AikKind::kRsaSsa, Sha256(AsBytes("1"))));
  const tpm::CreatedKey second = Must(bench.device->CreateAik(tpm::AikKind::kEccP256, Sha256(AsBytes("2"))));
  REQUIRE(bench.device->Persist(first.handle, tpm::kDefaultAikHandle).ok());
  CHECK(Must(bench.device->ReadPublic(tpm::kDefaultAikHandle)) == first.public_area);
  REQUIRE(bench.device->Persist(second.handle, tpm::kDefaultAikHandle).ok());
  CHECK(Must(bench.device->ReadPublic(tpm::kDefaultAikHandle)) == second.public_area);
  CheckQuoted(Must(bench.device->Quote(tpm::kDefaultAikHandle, kSomePcrs, kExtra)), second.public_area, kSomePcrs,
              kExtra);
  REQUIRE(bench.device->RemovePersistent(tpm::kDefaultAikHandle).ok());
  CHECK(bench.device->ReadPublic(tpm::kDefaultAikHandle).error().code == Code::kNotFound);
}

TEST_CASE("a key removed by another program is not found, and a key put in its place is used") {
  Bench bench;
  const tpm::CreatedKey first = Must(bench.device->CreateAik(tpm::AikKind::kRsaSsa, Sha256(AsBytes("1"))));
  REQUIRE(bench.device->Persist(first.handle, tpm::kDefaultAikHandle).ok());
  const auto other = Must(tpm::OpenDevice(bench.tpm->tcti()));
  REQUIRE(other->RemovePersistent(tpm::kDefaultAikHandle).ok());
  CHECK(bench.device->Quote(tpm::kDefaultAikHandle, kSomePcrs, kExtra).error().code == Code::kNotFound);
  const tpm::CreatedKey second = Must(other->CreateAik(tpm::AikKind::kEccP256, Sha256(AsBytes("2"))));
  REQUIRE(other->Persist(second.handle, tpm::kDefaultAikHandle).ok());
  CheckQuoted(Must(bench.device->Quote(tpm::kDefaultAikHandle, kSomePcrs, kExtra)), second.public_area, kSomePcrs,
              kExtra);
}

TEST_CASE("a TPM that is gone is unavailable, and the same device works when it is back") {
  Bench bench;
  const tpm::CreatedKey aik = Must(bench.device->CreateAik(tpm::AikKind::kEccP256, kExtra));
  REQUIRE(bench.device->Persist(aik.handle, tpm::kDefaultAikHandle).ok());
  const tpm::ClockInfo before = Must(bench.device->ReadClock());
  REQUIRE(bench.tpm->Restart().ok());
  const tpm::ClockInfo restarted = Must(bench.device->ReadClock());
  CHECK(restarted.reset_count == before.reset_count + 1);
  CHECK(restarted.safe);
  REQUIRE(bench.tpm->Kill().ok());
  const auto gone = bench.device->ReadClock();
  REQUIRE_FALSE(gone.ok());
  CHECK(gone.error().code == Code::kUnavailable);
  REQUIRE(bench.tpm->Start().ok());
  const tpm::ClockInfo cut = Must(bench.device->ReadClock());
  CHECK(cut.reset_count == before.reset_count + 2);
  CHECK_FALSE(cut.safe);
  CheckQuoted(Must(bench.device->Quote(tpm::kDefaultAikHandle, kSomePcrs, kExtra)), aik.public_area, kSomePcrs, kExtra);
  CHECK(bench.device->FlushTransient(aik.handle).ok());  // the reset flushed it: nothing to do is no failure
}

TEST_CASE("a restored copy of the state has the older counters") {
  Bench bench;
  REQUIRE(bench.tpm->Stop().ok());
  const auto saved = Must(bench.tpm->SaveState());
  REQUIRE(bench.tpm->Start().ok());
  const auto later = Must(bench.device->ReadClock());
  REQUIRE(bench.tpm->Restart().ok());
  REQUIRE(bench.tpm->Stop().ok());
  REQUIRE(bench.tpm->RestoreState(saved).ok());
  REQUIRE(bench.tpm->Start().ok());
  CHECK(Must(bench.device->ReadClock()).reset_count == later.reset_count);
}

TEST_CASE("TPM2_Clear takes the persistent key and the counters, and the same template makes the same AIK again") {
  Bench bench;
  REQUIRE(bench.tpm->Restart().ok());
  REQUIRE(bench.tpm->Restart().ok());
  const tpm::CreatedKey before = Must(bench.device->CreateAik(tpm::AikKind::kRsaSsa, kExtra));
  REQUIRE(bench.device->Persist(before.handle, tpm::kDefaultAikHandle).ok());
  const tpm::ClockInfo counted = Must(bench.device->ReadClock());
  REQUIRE(TpmClear(*bench.tpm).ok());
  CHECK(bench.device->Quote(tpm::kDefaultAikHandle, kSomePcrs, kExtra).error().code == Code::kNotFound);
  const tpm::CreatedKey after = Must(bench.device->CreateAik(tpm::AikKind::kRsaSsa, kExtra));
  CHECK(after.public_area == before.public_area);
  const tpm::ClockInfo cleared = Must(bench.device->ReadClock());
  CHECK(cleared.reset_count < counted.reset_count);
  CHECK(cleared.reset_count <= 1);
  CHECK(cleared.safe);
}

TEST_CASE("TPM2_ClockSet moves the clock that quotes carry") {
  Bench bench;
  const tpm::CreatedKey aik = Must(bench.device->CreateAik(tpm::AikKind::kEccP256, kExtra));
  const std::uint64_t later = Must(bench.device->ReadClock()).clock + 3'600'000;
  REQUIRE(TpmClockSet(*bench.tpm, later).ok());
  const auto quote = Must(bench.device->Quote(aik.handle, kSomePcrs, kExtra));
  CHECK(Must(tpm::DecodeAttest(quote.attest)).clock.clock >= later);
}

TEST_CASE("two copies of one manufactured TPM share their EK, a fresh one has its own under the same CA") {
  Bench bench;
  const auto copy = Must(Swtpm::Make());
  const auto fresh = Must(Swtpm::Fresh());
  const auto certificate_of = [](const Swtpm& tpm) {
    return Must(Must(tpm::OpenDevice(tpm.tcti()))->ReadNv(0x01C00002));
  };
  CHECK(certificate_of(*bench.tpm) == certificate_of(*copy));
  CHECK(certificate_of(*bench.tpm) != certificate_of(*fresh));
}

TEST_CASE("a TCTI that is none of ours opens nothing") {
  for (const char* bad : {"", "swtpm", "device:", "libevil.so", "cmd:sh -c true", "/tmp/lib.so:x"}) {
    const auto device = tpm::OpenDevice(bad);
    REQUIRE_FALSE(device.ok());
    CHECK(device.error().code == Code::kConfig);
  }
  const auto absent = tpm::OpenDevice("swtpm:path=/nonexistent/tpm.sock");
  REQUIRE_FALSE(absent.ok());
  CHECK(absent.error().code == Code::kUnavailable);
}

TEST_CASE("random bytes come in the number asked for, and a description names the maker") {
  Bench bench;
  CHECK(Must(bench.device->Random(100)).size() == 100);
  CHECK(Must(bench.device->Random(32)) != Must(bench.device->Random(32)));
  CHECK(bench.device->Random(5000).error().code == Code::kLimit);
  std::map<std::string, std::string> described;
  for (const auto& [name, value] : Must(bench.device->Describe())) described[name] = value;
  CHECK(described["manufacturer"] == "IBM");
  CHECK(described["in_lockout"] == "no");
  CHECK(described.count("lockout_failed_tries") == 1);
}
