// SPDX-License-Identifier: Apache-2.0
#include "agent/quoter/quoter.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "sdk/config/files.h"
#include "sdk/core/crypto.h"
#include "sdk/core/host_token.h"
#include "tests/unit/agent/agent_fixture.h"

namespace assay::agent {
namespace {

using test::kPcr;
using test::QuoterFixture;
using test::SampleChallenge;
using test::SampleMeasurements;

SignatureScheme SchemeOf(QuoterFixture& fixture) {
  return tpm::CheckAikArea(tpm::DecodePublicArea(fixture.device.ReadPublic(tpm::kDefaultAikHandle).value()).value())
      .value()
      .scheme;
}

// What a verifier does first with a quote: signature, binding, selection, PCR digest.
void CheckQuoteOf(QuoterFixture& fixture, Bytes attest_bytes, Bytes signature, const Digest& extra, std::uint32_t mask,
                  Bytes values) {
  const auto raw = tpm::ToRaw(tpm::DecodeSignature(signature).value()).value();
  CHECK(fixture.aik->VerifyDigest(SchemeOf(fixture), Sha256(attest_bytes), raw.view()) == SignatureCheck::kValid);
  const auto attest = tpm::DecodeAttest(attest_bytes).value();
  CHECK(Equal(attest.extra_data, extra));
  REQUIRE(attest.selections.count == 1);
  CHECK(attest.selections.items[0].mask == mask);
  CHECK(Equal(attest.pcr_digest, Sha256(values)));
}

Buffer ValuesOf(const PcrValues& pcrs) {
  Buffer out;
  for (std::size_t i = 0; i < pcrs.count; ++i)
    out.insert(out.end(), pcrs.items[i].value.begin(), pcrs.items[i].value.end());
  return out;
}

TEST_CASE("evidence is bound by the quote to its challenge, body and channel, with every kind of AIK") {
  for (const auto kind : {tpm::AikKind::kRsaSsa, tpm::AikKind::kRsaPss, tpm::AikKind::kEccP256}) {
    QuoterFixture fixture(kind);
    const EvidenceOrder order = fixture.Order();
    const MadeEvidence made = fixture.quoter->MakeEvidence(order).value();
    const Evidence evidence = DecodeEvidence(made.evidence).value();
    const Digest extra =
        ExtraData(QuoteTag::kEvidence, order.challenge.nonce, Sha256(evidence.body), order.channel_binding);
    CheckQuoteOf(fixture, evidence.quote, evidence.signature, extra, order.challenge.selection.mask,
                 ValuesOf(evidence.pcrs));
    CHECK(Equal(evidence.nonce, order.challenge.nonce));
    CHECK(evidence.pcrs.Mask() == order.challenge.selection.mask);
  }
}

TEST_CASE("the body says who attests, that the gate is absent, and carries a log that replays to the register") {
  QuoterFixture fixture;
  const MadeEvidence made = fixture.quoter->MakeEvidence(fixture.Order()).value();
  const Evidence evidence = DecodeEvidence(made.evidence).value();
  const EvidenceBody body = DecodeEvidenceBody(evidence.body).value();
  CHECK(body.attester == fixture.aik->SpkiDigest());
  CHECK(body.runtime.agent == SampleMeasurements().agent);
  CHECK(body.runtime.gate == GateState::kAbsent);
  CHECK(body.runtime.anchor == RuntimeAnchor::kSelfReported);
  CHECK(body.runtime.scope == "none");
  CHECK(body.runtime.counters.empty());
  CHECK_FALSE(body.request.has_value());
  REQUIRE(body.runtime.log.size() == 1);
  Digest value = body.runtime.log_base;
  for (const Bytes entry : body.runtime.log) value = ExtendWithEntry(value, entry);
  CHECK(Equal(evidence.pcrs.Find(kPcr)->value, value));
  CHECK(made.basis.entries == 1);
}

TEST_CASE("a verifier that knows part of the log and of the firmware log gets the rest") {
  QuoterFixture fixture;
  REQUIRE(fixture.log->AppendIdentity(SampleMeasurements()).ok());
  const std::string firmware = fixture.dir / "firmware";
  REQUIRE(config::WriteFileAtomic(firmware, Buffer(100, 3), 0600).ok());
  Quoter::Parts parts{&fixture.device, &*fixture.log,      &fixture.gate, fixture.dir.path(),
                      firmware,        fixture.dir.path(), kPcr,          SampleMeasurements()};
  Quoter quoter(std::move(parts));
  EvidenceOrder order = fixture.Order();
  order.challenge.runtime_from = 1;
  order.challenge.firmware_from = 60;
  MadeEvidence made = quoter.MakeEvidence(order).value();
  EvidenceBody body = DecodeEvidenceBody(DecodeEvidence(made.evidence).value().body).value();
  CHECK(body.runtime.log_from == 1);
  REQUIRE(body.runtime.log.size() == 1);
  CHECK(body.runtime.log_base == fixture.log->ValueBefore(1));
  CHECK(body.boot.firmware_log.size() == 40);
  CHECK(body.boot.firmware_offset == 60);
  CHECK(body.boot.firmware_known == Sha256(Buffer(60, 3)));
  order.challenge.runtime_from = 99;  // of another boot: everything is sent
  order.challenge.firmware_from = 101;
  made = quoter.MakeEvidence(order).value();
  body = DecodeEvidenceBody(DecodeEvidence(made.evidence).value().body).value();
  CHECK(body.runtime.log_from == 0);
  CHECK(body.runtime.log.size() == 2);
  CHECK(body.boot.firmware_log.size() == 100);
  CHECK(body.boot.firmware_offset == 0);
}

TEST_CASE("a token request goes into the body as the client made it, with an unmeasured caller") {
  QuoterFixture fixture;
  EvidenceOrder order = fixture.Order();
  order.token = TokenOrder{"title", "match", Sha256(AsBytes("n")), Sha256(AsBytes("k")), {}};
  const MadeEvidence made = fixture.quoter->MakeEvidence(order).value();
  const EvidenceBody body = DecodeEvidenceBody(DecodeEvidence(made.evidence).value().body).value();
  REQUIRE(body.request.has_value());
  CHECK(body.request->audience == "title");
  CHECK(body.request->match == "match");
  CHECK(body.request->server_nonce == Sha256(AsBytes("n")));
  CHECK(body.request->session_key_hash == Sha256(AsBytes("k")));
  CHECK_FALSE(body.request->caller.measured);
}

TEST_CASE("a SHA-1 bank and an empty selection are refused before the TPM is asked") {
  QuoterFixture fixture;
  EvidenceOrder order = fixture.Order();
  order.challenge.selection.hash = tpm::Alg::kSha1;
  fixture.device.commands.clear();
  CHECK(fixture.quoter->MakeEvidence(order).error().code == Code::kUnsupported);
  order.challenge.selection = {tpm::Alg::kSha256, 0};
  CHECK(fixture.quoter->MakeEvidence(order).error().code == Code::kUnsupported);
  CHECK(fixture.device.commands.empty());
}

TEST_CASE("without enrollment, or with another key in the TPM, nothing is signed") {
  QuoterFixture fixture;
  std::filesystem::remove(config::EnrollmentPath(fixture.dir.path()));
  CHECK(fixture.quoter->MakeEvidence(fixture.Order()).error().code == Code::kNotFound);
  fixture.Enroll(*fixture.aik);
  CHECK(fixture.quoter->MakeEvidence(fixture.Order()).ok());
  const PublicKey other = fixture.device.MakeAik(tpm::AikKind::kEccP256);  // replaces the key at the handle
  fixture.Enroll(*fixture.aik);
  CHECK(fixture.quoter->MakeEvidence(fixture.Order()).error().code == Code::kConflict);
  fixture.Enroll(other);  // a rotation: taken up without a restart
  CHECK(fixture.quoter->MakeEvidence(fixture.Order()).value().basis.attester == other.SpkiDigest());
}

TEST_CASE("a stranger's extend is in the next evidence but one, as a counter of its own") {
  QuoterFixture fixture;
  REQUIRE(fixture.device.ExtendPcr(kPcr, Sha256(AsBytes("stranger"))).ok());
  (void)fixture.quoter->MakeEvidence(fixture.Order()).value();
  const MadeEvidence made = fixture.quoter->MakeEvidence(fixture.Order()).value();
  const EvidenceBody body = DecodeEvidenceBody(DecodeEvidence(made.evidence).value().body).value();
  REQUIRE(body.runtime.counters.size() == 1);
  CHECK(body.runtime.counters[0].name == "log_foreign_extend");
}

TEST_CASE("hibernation under a running agent gives evidence over a new log that says so") {
  QuoterFixture fixture;
  fixture.device.Hibernate();
  const MadeEvidence made = fixture.quoter->MakeEvidence(fixture.Order()).value();
  const Evidence evidence = DecodeEvidence(made.evidence).value();
  const EvidenceBody body = DecodeEvidenceBody(evidence.body).value();
  REQUIRE(body.runtime.log.size() == 1);
  CHECK(DecodeRuntimeEntry(body.runtime.log[0]).value().predecessor == 1);
  CHECK(Equal(evidence.pcrs.Find(kPcr)->value, ExtendWithEntry(body.runtime.log_base, body.runtime.log[0])));
  REQUIRE(body.runtime.counters.size() == 1);
  CHECK(body.runtime.counters[0].name == "hibernated");
}

local::HostTokenRequest SampleHostRequest() {
  return {"title", false, 0, Sha256(AsBytes("nonce")), Sha256(AsBytes("key"))};
}

TEST_CASE("a host token is a quote for the server's nonce over the result's registers, with the entries since") {
  QuoterFixture fixture;
  const MadeEvidence made = fixture.quoter->MakeEvidence(fixture.Order()).value();
  REQUIRE(fixture.log->AppendIdentity(SampleMeasurements()).ok());
  const Buffer encoded = fixture.quoter->MakeHostToken(SampleHostRequest(), made.basis).value();
  const HostToken token = ParseHostToken(encoded).value();
  CHECK(token.tag == QuoteTag::kHostToken);
  CHECK(token.attester == fixture.aik->SpkiDigest());
  CHECK(token.pcr_mask == SampleChallenge().selection.mask);
  CHECK(token.entry_count == 1);
  const Digest extra =
      ExtraData(QuoteTag::kHostToken, SampleHostRequest().server_nonce, HostTokenBodyDigest(token), {});
  CheckQuoteOf(fixture, token.attest, token.signature, extra, token.pcr_mask, token.pcr_values);
  Reader entries(token.entries);
  const Bytes entry = entries.Take(entries.U16Le());
  CHECK(Equal(token.pcr_values.last(kSha256Size), ExtendWithEntry(fixture.log->ValueBefore(1), entry)));
}

TEST_CASE("a heartbeat carries its sequence under a tag of its own, and PCR 14 is always quoted") {
  QuoterFixture fixture;
  EvidenceOrder order = fixture.Order();
  order.challenge.selection.mask = 0x01;
  const MadeEvidence made = fixture.quoter->MakeEvidence(order).value();
  local::HostTokenRequest request = SampleHostRequest();
  request.heartbeat = true;
  request.sequence = 9;
  const Buffer encoded = fixture.quoter->MakeHostToken(request, made.basis).value();
  const HostToken token = ParseHostToken(encoded).value();
  CHECK(token.tag == QuoteTag::kHeartbeat);
  CHECK(token.sequence == 9);
  CHECK(token.pcr_mask == (0x01U | (1U << kPcr)));
  const auto attest = tpm::DecodeAttest(token.attest).value();
  CHECK(
      Equal(attest.extra_data, ExtraData(QuoteTag::kHeartbeat, request.server_nonce, HostTokenBodyDigest(token), {})));
}

TEST_CASE("a result of another boot or another AIK, or one too far back, carries no host token") {
  QuoterFixture fixture;
  const ResultBasis basis = fixture.quoter->MakeEvidence(fixture.Order()).value().basis;
  ResultBasis other = basis;
  other.reset_count += 1;
  CHECK(fixture.quoter->MakeHostToken(SampleHostRequest(), other).error().code == Code::kConflict);
  other = basis;
  other.attester[0] ^= 1;
  CHECK(fixture.quoter->MakeHostToken(SampleHostRequest(), other).error().code == Code::kConflict);
  other = basis;
  other.entries += 1;
  CHECK(fixture.quoter->MakeHostToken(SampleHostRequest(), other).error().code == Code::kConflict);
  for (std::size_t i = 0; i < kHostTokenEntries; ++i) REQUIRE(fixture.quoter->AppendEntry(EntryKind::kStop).ok());
  CHECK(fixture.quoter->MakeHostToken(SampleHostRequest(), basis).ok());
  REQUIRE(fixture.quoter->AppendEntry(EntryKind::kStop).ok());
  CHECK(fixture.quoter->MakeHostToken(SampleHostRequest(), basis).error().code == Code::kConflict);
}

TEST_CASE("another configuration in force is an identity entry of its own") {
  QuoterFixture fixture;
  REQUIRE(fixture.quoter->OnConfigChange(Sha256(AsBytes("new"))).ok());
  const RuntimeEntry entry = DecodeRuntimeEntry(fixture.log->entries().back()).value();
  CHECK(entry.kind == EntryKind::kIdentity);
  CHECK(entry.config == Sha256(AsBytes("new")));
  CHECK(entry.predecessor == 1);
}

// A gate that saw executables, as the enforcer will.
class SeeingGate final : public Gate {
 public:
  explicit SeeingGate(std::size_t count) : left_(count) {}
  GateFacts Facts() override {
    GateFacts facts;
    facts.state = GateState::kMonitor;
    facts.scope = "title";
    return facts;
  }
  std::vector<Digest> TakeFirstSeen() override {
    return std::vector<Digest>(std::exchange(left_, 0), Sha256(AsBytes("exe")));
  }
  CallerIdentity CallerOf(int) override { return {true, Sha256(AsBytes("game"))}; }

 private:
  std::size_t left_;
};

TEST_CASE("what the gate saw is logged and extended before the quote, in batches that fit an entry") {
  QuoterFixture fixture;
  SeeingGate gate(limits::kRuntimeBatch + 1);
  Quoter quoter(
      {&fixture.device, &*fixture.log, &gate, fixture.dir.path(), "", fixture.dir.path(), kPcr, SampleMeasurements()});
  const MadeEvidence made = quoter.MakeEvidence(fixture.Order()).value();
  const Evidence evidence = DecodeEvidence(made.evidence).value();
  const EvidenceBody body = DecodeEvidenceBody(evidence.body).value();
  CHECK(body.runtime.gate == GateState::kMonitor);
  REQUIRE(body.runtime.log.size() == 3);
  CHECK(DecodeRuntimeEntry(body.runtime.log[1]).value().digests.size() == limits::kRuntimeBatch);
  CHECK(DecodeRuntimeEntry(body.runtime.log[2]).value().digests.size() == 1);
  CHECK(Equal(evidence.pcrs.Find(kPcr)->value, fixture.log->Value()));
}

}  // namespace
}  // namespace assay::agent
