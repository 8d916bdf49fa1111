// SPDX-License-Identifier: Apache-2.0
#include "agent/quoter/quoter.h"

#include <algorithm>

#include "agent/platform/platform_claims.h"
#include "sdk/config/files.h"
#include "sdk/core/crypto.h"
#include "sdk/core/host_token.h"
#include "sdk/core/limits.h"

namespace assay::agent {
namespace {

// Ascending PCR values of a quote as evidence carries them; views into `values`.
Result<PcrValues> ToPcrValues(const tpm::PcrSelection& selection, const std::vector<Digest>& values) {
  PcrValues out;
  out.hash = selection.hash;
  for (std::uint8_t pcr = 0; pcr < limits::kPcrs; ++pcr) {
    if ((selection.mask & (1U << pcr)) == 0) continue;
    if (out.count == values.size())
      return MakeError(Code::kTpm, "the TPM returned fewer PCR values than were asked for");
    out.items[out.count] = {pcr, values[out.count]};
    ++out.count;
  }
  if (out.count != values.size()) return MakeError(Code::kTpm, "the TPM returned more PCR values than were asked for");
  return out;
}

const Digest* ValueOf(const tpm::PcrSelection& selection, const std::vector<Digest>& values, std::uint8_t pcr) {
  if ((selection.mask & (1U << pcr)) == 0) return nullptr;
  const auto below = static_cast<std::size_t>(__builtin_popcount(selection.mask & ((1U << pcr) - 1)));
  return below < values.size() ? &values[below] : nullptr;
}

Status CheckSelection(const tpm::PcrSelection& selection) {
  if (selection.hash != tpm::Alg::kSha256) {
    return MakeError(Code::kUnsupported, "the challenge asks for the " + tpm::AlgName(selection.hash) +
                                             " bank; this agent quotes sha256 only");
  }
  if (selection.mask == 0) return MakeError(Code::kUnsupported, "the challenge selects no PCR at all");
  return Ok();
}

std::vector<Counter> CountersOf(const GateFacts& facts, const MeasuredLog& log) {
  std::vector<Counter> counters;
  for (const auto& [name, value] : facts.counters) counters.push_back({name, value});
  for (const LogFault fault : kLogFaults) {
    if (log.HasFault(fault)) counters.push_back({LogFaultCode(fault), 1});
  }
  return counters;
}

}  // namespace

Quoter::Quoter(Parts parts) : parts_(std::move(parts)) {
  if (parts_.firmware_log.empty()) return;
  auto log = config::ReadFile(parts_.firmware_log, limits::kFirmwareLog);
  if (log.ok()) firmware_ = std::move(log).value();  // absent: PCRs speak for themselves, the verifier judges
}

Result<config::EnrollmentRecord> Quoter::Attester() {
  const FileStamp stamp = StampOf(config::EnrollmentPath(parts_.state_dir));
  if (!loaded_ || !(stamp == stamp_)) {
    auto record = LoadAttester(parts_.state_dir, *parts_.device);
    stamp_ = stamp;
    // A busy or silent TPM is no answer: ask again next time.
    loaded_ = record.ok() || record.error().code == Code::kNotFound || record.error().code == Code::kConflict ||
              record.error().code == Code::kConfig;
    attester_.reset();
    problem_.reset();
    if (record.ok()) attester_ = std::move(record).value();
    else problem_ = std::move(record).error();
  }
  if (problem_) return *problem_;
  return *attester_;
}

Status Quoter::CloseBatch() {
  const std::vector<Digest> seen = parts_.gate->TakeFirstSeen();
  for (std::size_t at = 0; at < seen.size(); at += limits::kRuntimeBatch) {
    RuntimeEntry entry;
    entry.kind = EntryKind::kBatch;
    const std::size_t end = std::min(seen.size(), at + limits::kRuntimeBatch);
    entry.digests.assign(seen.begin() + static_cast<std::ptrdiff_t>(at),
                         seen.begin() + static_cast<std::ptrdiff_t>(end));
    ASSAY_CHECK_OK(parts_.log->Append(std::move(entry)));
  }
  return Ok();
}

Result<Quoter::Body> Quoter::BuildBody(const EvidenceOrder& order, const Digest& attester) {
  const MeasuredLog& log = *parts_.log;
  const std::uint64_t count = log.entries().size();
  EvidenceBody body;
  body.attester = attester;
  const std::uint64_t firmware_from =
      order.challenge.firmware_from <= firmware_.size() ? order.challenge.firmware_from : 0;
  body.boot.firmware_log = Bytes(firmware_).subspan(firmware_from);
  body.boot.firmware_offset = firmware_from;
  if (firmware_from > 0) body.boot.firmware_known = Sha256(Bytes(firmware_).first(firmware_from));
  const GateFacts gate = parts_.gate->Facts();
  body.runtime.agent = parts_.measurements.agent;
  body.runtime.bpf_object = gate.bpf_object;
  body.runtime.gate = gate.state;
  body.runtime.anchor = gate.anchor;
  body.runtime.hooks.assign(gate.hooks.begin(), gate.hooks.end());
  body.runtime.policy = gate.policy;
  body.runtime.policy_version = gate.policy_version;
  body.runtime.scope = gate.scope;
  body.runtime.counters = CountersOf(gate, log);
  body.runtime.drops = gate.drops;
  body.runtime.log_from = order.challenge.runtime_from <= count ? order.challenge.runtime_from : 0;
  if (count - body.runtime.log_from > limits::kRuntimeEntries) {
    return MakeError(Code::kLimit, "the agent's log outgrew one evidence: reboot this machine");
  }
  body.runtime.log_base = log.ValueBefore(body.runtime.log_from);
  for (std::uint64_t i = body.runtime.log_from; i < count; ++i) body.runtime.log.push_back(log.entries()[i]);
  const PlatformClaims platform = ReadPlatformClaims(parts_.root);
  body.platform = platform.View();
  if (order.token) {
    body.request = TokenRequest{order.token->audience, order.token->match, order.token->server_nonce,
                                order.token->session_key_hash, order.token->caller};
  }
  return Body{EncodeEvidenceBody(body), count};
}

Result<MadeEvidence> Quoter::QuoteOnce(const EvidenceOrder& order, const config::EnrollmentRecord& attester,
                                       bool& again) {
  ASSAY_CHECK_OK(CloseBatch());
  ASSAY_TRY(const Body body, BuildBody(order, attester.attester));
  const Digest extra =
      ExtraData(QuoteTag::kEvidence, order.challenge.nonce, Sha256(body.encoded), order.channel_binding);
  ASSAY_TRY(const tpm::QuoteResult quote, parts_.device->Quote(attester.aik_handle, order.challenge.selection, extra));
  if (const Digest* value = ValueOf(order.challenge.selection, quote.pcrs, parts_.pcr)) {
    ASSAY_TRY(const tpm::Attest attest, tpm::DecodeAttest(quote.attest));
    ASSAY_TRY(const auto seen, parts_.log->Observe(*value, attest.clock));
    again = seen == MeasuredLog::Observation::kReset;
  }
  Evidence evidence;
  evidence.body = body.encoded;
  evidence.quote = quote.attest;
  evidence.signature = quote.signature;
  evidence.nonce = order.challenge.nonce;
  ASSAY_TRY(evidence.pcrs, ToPcrValues(order.challenge.selection, quote.pcrs));
  MadeEvidence made;
  made.evidence = EncodeEvidence(evidence);
  made.basis = {order.challenge.selection, body.entries, parts_.log->header().reset_count, attester.attester};
  if (made.evidence.size() > limits::kEvidenceBody)
    return MakeError(Code::kLimit, "the evidence is larger than a verifier takes (4 MiB)");
  return made;
}

Result<MadeEvidence> Quoter::MakeEvidence(const EvidenceOrder& order) {
  ASSAY_CHECK_OK(CheckSelection(order.challenge.selection));
  ASSAY_TRY(const config::EnrollmentRecord attester, Attester());
  bool again = false;
  ASSAY_TRY(MadeEvidence made, QuoteOnce(order, attester, again));
  if (!again) return made;
  // The registers were reset under us: the new log starts with who we are, and the evidence is made over it.
  ASSAY_CHECK_OK(parts_.log->AppendIdentity(parts_.measurements));
  again = false;
  return QuoteOnce(order, attester, again);
}

// Entries that the token carries: what the log gained since its result.
Result<Buffer> Quoter::EntriesSince(const ResultBasis& basis, const Digest& attester) const {
  const MeasuredLog& log = *parts_.log;
  const std::uint64_t count = log.entries().size();
  if (basis.attester != attester || basis.reset_count != log.header().reset_count || basis.entries > count) {
    return MakeError(
        Code::kConflict,
        "this machine changed since its last result (another AIK or another boot): ask for a result token first");
  }
  if (count - basis.entries > kHostTokenEntries) {
    return MakeError(Code::kConflict,
                     "too much happened since the last result to fit a host token: ask for a result token first");
  }
  Writer entries;
  for (std::uint64_t i = basis.entries; i < count; ++i) {
    const Buffer& entry = log.entries()[i];
    entries.U16Le(static_cast<std::uint16_t>(entry.size()));
    entries.Put(entry);
  }
  return std::move(entries).Take();
}

Result<Buffer> Quoter::MakeHostToken(const local::HostTokenRequest& request, const ResultBasis& basis) {
  ASSAY_TRY(const config::EnrollmentRecord attester, Attester());
  ASSAY_CHECK_OK(CloseBatch());
  ASSAY_TRY(const Buffer entries, EntriesSince(basis, attester.attester));
  const GateFacts gate = parts_.gate->Facts();
  HostToken token;
  token.tag = request.heartbeat ? QuoteTag::kHeartbeat : QuoteTag::kHostToken;
  token.gate = gate.state;
  token.sequence = request.sequence;
  token.attester = attester.attester;
  token.server_nonce = request.server_nonce;
  token.session_key_hash = request.session_key_hash;
  token.policy = gate.policy;
  token.policy_version = gate.policy_version;
  token.entries = entries;
  token.entry_count = static_cast<std::uint8_t>(parts_.log->entries().size() - basis.entries);
  const tpm::PcrSelection selection{tpm::Alg::kSha256, basis.selection.mask | (1U << parts_.pcr)};
  token.pcr_mask = selection.mask;  // its count is in the part that the body digest covers
  const Digest extra = ExtraData(token.tag, request.server_nonce, HostTokenBodyDigest(token), {});
  ASSAY_TRY(const tpm::QuoteResult quote, parts_.device->Quote(attester.aik_handle, selection, extra));
  ASSAY_TRY(const PcrValues checked, ToPcrValues(selection, quote.pcrs));
  Writer values;
  for (std::size_t i = 0; i < checked.count; ++i) values.Put(checked.items[i].value);
  token.pcr_values = values.buffer();
  token.attest = quote.attest;
  token.signature = quote.signature;
  Buffer out(limits::kHostToken);
  ASSAY_TRY(const std::size_t size, SerializeHostToken(token, out));
  out.resize(size);
  return out;
}

QuoterFacts Quoter::Facts() {
  QuoterFacts facts;
  facts.log_faults = parts_.log->header().faults;
  facts.log_entries = parts_.log->entries().size();
  facts.log_value = parts_.log->Value();
  facts.gate = parts_.gate->Facts();
  facts.measurements = parts_.measurements;
  const auto attester = Attester();
  if (attester.ok()) facts.attester = *attester;
  else facts.attester_problem = attester.error().detail;
  return facts;
}

Status Quoter::OnConfigChange(const Digest& config) {
  parts_.measurements.config = config;
  return parts_.log->AppendIdentity(parts_.measurements);
}

Status Quoter::AppendEntry(EntryKind kind) {
  RuntimeEntry entry;
  entry.kind = kind;
  return parts_.log->Append(std::move(entry));
}

}  // namespace assay::agent
