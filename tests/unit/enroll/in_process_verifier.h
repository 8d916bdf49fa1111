// SPDX-License-Identifier: Apache-2.0
// The verifier's enrollment service behind assay-enroll's seam, through the real codecs, without a network.
#pragma once

#include <doctest/doctest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "enroll/verifier_client.h"
#include "sdk/core/evidence.h"
#include "tests/support/memory_store.h"
#include "tests/unit/enrollment/cert_maker.h"
#include "verifier/enrollment/service.h"

namespace assay::test {

class InProcessVerifier final : public enroll::VerifierClient {
 public:
  std::int64_t now_ms = kNow * 1000;
  MemoryStore store;
  enrollment::EnrollmentCa ca = enrollment::EnrollmentCa::Create("CA", kNow, 4'000'000'000).value();
  enrollment::TicketSealer tickets;
  enrollment::BeginLimits limits{{1000, 1000, 100'000}, [this] { return now_ms; }};
  enrollment::EnrollmentPolicy policy;
  enrollment::EnrollmentService service{
      {&store, &ca, &tickets, &limits, [this] { return std::make_shared<const enrollment::EnrollmentPolicy>(policy); },
       [this] { return now_ms; }}};
  std::map<std::string, Result<enroll::VerifierReply>> instead;  // by route: answered in the service's place
  std::vector<std::string> asked;
  int renewed_connections = 0;  // PostBound finds the connection renewed this often

  explicit InProcessVerifier(const std::string& roots) {
    policy.require_token = false;
    policy.bundle =
        std::make_shared<const enrollment::TrustBundle>(enrollment::TrustBundle::FromPem(roots, "").value());
  }

  Result<enroll::VerifierReply> Post(const std::string& route, Bytes body) override {
    asked.push_back(route);
    if (const auto at = instead.find(route); at != instead.end()) return at->second;
    if (route == route::kEnrollBegin) return Begin(body);
    if (route == route::kEnrollComplete) return Complete(body);
    if (route == route::kChallenge)
      return Reply(200, EncodeChallenge({Buffer(limits::kChallenge, 0x44), {tpm::Alg::kSha256, 0x4011}, 60'000, 0, 0}));
    return Reply(404, EncodeErrorReply({"no_such_route", route, ""}));
  }
  Result<enroll::VerifierReply> PostBound(const std::string& route, Bytes body) override {
    asked.push_back(route);
    if (renewed_connections > 0) {
      --renewed_connections;
      return MakeError(Code::kConflict, "the connection was renewed");
    }
    if (const auto at = instead.find(route); at != instead.end()) return at->second;
    return Renew(body);
  }
  Result<Digest> ChannelBinding() override { return Binding(); }

 private:
  static Digest Binding() { return Sha256(AsBytes("this connection")); }
  static enroll::VerifierReply Reply(unsigned status, Buffer body) { return {status, std::move(body)}; }
  static enroll::VerifierReply Refused(const ErrorReply& refusal) {
    return {enrollment::RefusalStatus(refusal.code), EncodeErrorReply(refusal)};
  }

  Result<enroll::VerifierReply> Begin(Bytes body) {
    ASSAY_TRY(const EnrollBegin message, DecodeEnrollBegin(body));
    ASSAY_TRY(const enrollment::BeginOutcome outcome, service.Begin(message, "192.0.2.1"));
    if (const auto* refusal = std::get_if<ErrorReply>(&outcome)) return Refused(*refusal);
    return Reply(200, EncodeEnrollChallenge(std::get<EnrollChallenge>(outcome)));
  }
  Result<enroll::VerifierReply> Commit(const enrollment::PrepareOutcome& prepared) {
    if (const auto* refusal = std::get_if<ErrorReply>(&prepared)) return Refused(*refusal);
    ASSAY_TRY(const enrollment::CommitOutcome outcome, service.Commit(std::get<enrollment::Pending>(prepared)));
    if (const auto* refusal = std::get_if<ErrorReply>(&outcome)) return Refused(*refusal);
    return Reply(200, EncodeEnrollResult(std::get<EnrollResult>(outcome)));
  }
  Result<enroll::VerifierReply> Complete(Bytes body) {
    ASSAY_TRY(const EnrollComplete message, DecodeEnrollComplete(body));
    ASSAY_TRY(const enrollment::PrepareOutcome prepared, service.PrepareComplete(message));
    return Commit(prepared);
  }
  // The part of the verifier's check of a quote that this room has to get right: signature, binding, selection, values.
  Result<enroll::VerifierReply> Renew(Bytes body) {
    ASSAY_TRY(const Evidence evidence, DecodeEvidence(body));
    ASSAY_TRY(const EvidenceBody content, DecodeEvidenceBody(evidence.body));
    const store::AikRow row = store.aiks.at(content.attester);
    const PublicKey aik = tpm::KeyOf(tpm::DecodePublicArea(row.public_area).value()).value();
    const auto signature = tpm::ToRaw(tpm::DecodeSignature(evidence.signature).value()).value();
    CHECK(aik.VerifyDigest(row.scheme, Sha256(evidence.quote), signature.view()) == SignatureCheck::kValid);
    const tpm::Attest attest = tpm::DecodeAttest(evidence.quote).value();
    CHECK(Equal(attest.extra_data,
                ExtraData(QuoteTag::kEvidence, Buffer(limits::kChallenge, 0x44), Sha256(evidence.body), Binding())));
    CHECK(attest.selections.count == 1);
    CHECK(attest.selections.items[0].mask == 0x4011);
    CHECK(evidence.pcrs.Mask() == 0x4011);
    ASSAY_TRY(const enrollment::PrepareOutcome prepared, service.PrepareRenew(content.attester));
    return Commit(prepared);
  }
};

}  // namespace assay::test
