// SPDX-License-Identifier: Apache-2.0
#include "enroll/renew_flow.h"

#include "enroll/local.h"
#include "sdk/core/evidence.h"

namespace assay::enroll {
namespace {

struct Quoted {
  Buffer body;
  tpm::QuoteResult quote;
  Buffer nonce;
  PcrValues pcrs;
};

// The values that the quote covers, by number, as views into `quoted`.
Check NamePcrs(const tpm::PcrSelection& selection, Quoted& quoted) {
  quoted.pcrs.hash = selection.hash;
  for (std::uint8_t pcr = 0; pcr < limits::kPcrs; ++pcr) {
    if ((selection.mask >> pcr & 1U) == 0) continue;
    if (quoted.pcrs.count == quoted.quote.pcrs.size())
      return TpmFailure(MakeError(Code::kTpm, "fewer PCR values than were asked for"), "quoting");
    quoted.pcrs.items[quoted.pcrs.count] = {pcr, quoted.quote.pcrs[quoted.pcrs.count]};
    ++quoted.pcrs.count;
  }
  if (quoted.pcrs.count != quoted.quote.pcrs.size())
    return TpmFailure(MakeError(Code::kTpm, "more PCR values than were asked for"), "quoting");
  return std::nullopt;
}

Outcome<Challenge> AskChallenge(const Deps& deps, const std::string& url, const Digest& attester) {
  Outcome<Buffer> reply = Judge(deps.verifier.Post(route::kChallenge, EncodeChallengeRequest({attester})), url);
  if (auto* failure = std::get_if<Failure>(&reply)) return std::move(*failure);
  Result<Challenge> challenge = DecodeChallenge(std::get<Buffer>(reply));
  if (!challenge.ok()) return VerifierFailure(challenge.error(), url);
  return std::move(*challenge);
}

// The evidence says nothing about the machine: only that this AIK is in use now, on this connection.
Check Quote(const Deps& deps, const config::EnrollmentRecord& record, const Challenge& challenge, Quoted& quoted) {
  EvidenceBody body;
  body.attester = record.attester;
  body.runtime.scope = "none";
  body.platform.lockdown = "unknown";
  quoted.body = EncodeEvidenceBody(body);
  quoted.nonce = challenge.nonce;
  const Result<Digest> binding = deps.verifier.ChannelBinding();
  if (!binding.ok()) return VerifierFailure(binding.error(), record.verifier_url);
  const Digest extra = ExtraData(QuoteTag::kEvidence, challenge.nonce, Sha256(quoted.body), *binding);
  Result<tpm::QuoteResult> quote = deps.device.Quote(record.aik_handle, challenge.selection, extra);
  if (!quote.ok()) return TpmFailure(quote.error(), "quoting with the AIK");
  quoted.quote = std::move(*quote);
  return NamePcrs(challenge.selection, quoted);
}

// One round: challenge, quote, request. The connection may be renewed in between; nothing was sent then.
Result<VerifierReply> AskOnce(const Deps& deps, const config::EnrollmentRecord& record, const std::string& url,
                              Check& failure) {
  deps.progress("asking " + url + " for a challenge");
  Outcome<Challenge> challenge = AskChallenge(deps, url, record.attester);
  if (auto* refused = std::get_if<Failure>(&challenge)) {
    failure = std::move(*refused);
    return VerifierReply{};
  }
  deps.progress("quoting with the AIK");
  Quoted quoted;
  failure = Quote(deps, record, std::get<Challenge>(challenge), quoted);
  if (failure) return VerifierReply{};
  deps.progress("asking for a new certificate");
  const Evidence evidence{quoted.body, quoted.quote.attest, quoted.quote.signature, quoted.nonce, quoted.pcrs};
  return deps.verifier.PostBound(route::kEnrollRenew, EncodeEvidence(evidence));
}

}  // namespace

Outcome<config::EnrollmentRecord> Renew(const Deps& deps, const config::EnrollConfig& config) {
  Outcome<config::EnrollmentRecord> loaded = LoadRecord(config.state_dir);
  if (auto* failure = std::get_if<Failure>(&loaded)) return std::move(*failure);
  auto& record = std::get<config::EnrollmentRecord>(loaded);
  Check failure;
  Result<VerifierReply> reply = AskOnce(deps, record, config.verifier, failure);
  if (!failure && !reply.ok() && reply.error().code == Code::kConflict)
    reply = AskOnce(deps, record, config.verifier, failure);
  if (failure) return std::move(*failure);
  Outcome<Buffer> body = Judge(std::move(reply), config.verifier);
  if (auto* refused = std::get_if<Failure>(&body)) return std::move(*refused);
  const Result<EnrollResult> result = DecodeEnrollResult(std::get<Buffer>(body));
  if (!result.ok()) return VerifierFailure(result.error(), config.verifier);
  if (result->attester != record.attester || result->host_id != record.host_id) {
    return VerifierFailure(MakeError(Code::kMalformed, "the certificate is for another AIK or host"), config.verifier);
  }
  record.verifier_url = config.verifier;
  if (Check unsaved = SaveResult(*result, config.state_dir, record)) return std::move(*unsaved);
  deps.progress("renewed");
  return std::move(record);
}

}  // namespace assay::enroll
