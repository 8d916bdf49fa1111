// SPDX-License-Identifier: Apache-2.0
// The second half of an enrollment: the TPM opened the credential, so the AIK lives beside that EK. Checks first,
// the record by the caller, then the store.
#include <algorithm>

#include "verifier/enrollment/host_id.h"
#include "verifier/enrollment/service.h"

namespace assay::enrollment {
namespace {

PrepareOutcome Refuse(std::string_view code, std::string detail, std::string fix) {
  return PrepareOutcome(ErrorReply{std::string(code), std::move(detail), std::move(fix)});
}

std::string TicketDetail(TicketOutcome outcome) {
  switch (outcome) {
    case TicketOutcome::kForeign: return "another verifier sealed this ticket, or this one before it was restarted";
    case TicketOutcome::kTampered: return "the ticket was changed on its way";
    case TicketOutcome::kExpired: return "the ticket is older than " + std::to_string(kTicketLifetimeMs / 1000) + " s";
    case TicketOutcome::kMalformed:
    case TicketOutcome::kOpened: break;
  }
  return "this is no enrollment ticket";
}

struct AikKey {
  PublicKey key;
  SignatureScheme scheme;
};

// The AIK as it was checked at begin: only its key object is made again.
Result<AikKey> AikOf(Bytes public_area) {
  ASSAY_TRY(const tpm::PublicArea area, tpm::DecodePublicArea(public_area));
  ASSAY_TRY(const tpm::AikScheme scheme, tpm::CheckAikArea(area));
  ASSAY_TRY(PublicKey key, tpm::KeyOf(area));
  return AikKey{std::move(key), scheme.scheme};
}

EnrollmentRecord::Action ActionOf(const std::optional<store::HostRow>& known,
                                  const std::optional<store::AikRow>& current) {
  if (!known) return EnrollmentRecord::Action::kEnroll;
  return current ? EnrollmentRecord::Action::kReEnroll : EnrollmentRecord::Action::kRotate;
}

bool Revoked(const std::vector<store::Revocation>& revocations, const Digest& host_id) {
  const std::string hex = ToHex(host_id);
  return std::any_of(revocations.begin(), revocations.end(),
                     [&](const store::Revocation& item) { return item.kind == "host" && item.value == hex; });
}

}  // namespace

std::string_view ActionName(EnrollmentRecord::Action action) noexcept {
  switch (action) {
    case EnrollmentRecord::Action::kEnroll: return "enroll";
    case EnrollmentRecord::Action::kReEnroll: return "re-enroll";
    case EnrollmentRecord::Action::kRotate: return "rotate";
    case EnrollmentRecord::Action::kRenew: return "renew";
  }
  return "enroll";
}

Result<std::optional<ErrorReply>> EnrollmentService::CheckToken(const std::optional<Digest>& token) const {
  using Refusal = std::optional<ErrorReply>;
  if (!token) return Refusal();
  const Status usable = deps_.store->CheckEnrollmentToken(*token, NowSeconds());
  if (usable.ok()) return Refusal();
  if (usable.error().code != Code::kDenied) return usable.error();
  return Refusal(ErrorReply{"enrollment_token_invalid", usable.error().detail,
                            "get a new token with `assayctl tokens create-enrollment`"});
}

Result<std::optional<ErrorReply>> EnrollmentService::CheckStored(const store::AikRow& aik,
                                                                 const std::optional<store::HostRow>& known) const {
  using Refusal = std::optional<ErrorReply>;
  ASSAY_TRY(const std::optional<store::AikRow> registered, deps_.store->FindAik(aik.attester));
  if (registered && registered->host_id != aik.host_id) {
    return Refusal(ErrorReply{"aik_of_other_host", "this AIK is registered for host " + ToHex(registered->host_id),
                              "draw a new AIK with `assay-enroll rotate`"});
  }
  if (known && known->state == "replaced") {
    return Refusal(ErrorReply{
        "host_replaced",
        "an operator replaced this host" + (known->replaced_by ? " by " + ToHex(*known->replaced_by) : std::string()),
        "ask the operator: `assayctl hosts show` names the replacement"});
  }
  ASSAY_TRY(const std::vector<store::Revocation> revocations, deps_.store->Revocations(NowSeconds()));
  if (Revoked(revocations, aik.host_id))
    return Refusal(ErrorReply{"host_revoked", "an operator revoked this host", "ask the operator"});
  return Refusal();
}

Result<Pending> EnrollmentService::MakePending(const TicketContent& ticket, const PublicKey& aik, store::AikRow row,
                                               bool weak) const {
  const std::int64_t now = NowSeconds();
  const std::int64_t lifetime = deps_.policy()->certificate_lifetime;
  ASSAY_TRY(row.certificate, deps_.ca->Issue({&aik, ticket.host_id, now, lifetime}));
  ASSAY_TRY(const X509Handle issued, ParseCertificate(row.certificate));
  ASSAY_TRY(row.not_after, NotAfter(issued.get()));
  ASSAY_TRY(const std::optional<store::HostRow> known, deps_.store->FindHost(ticket.host_id));
  ASSAY_TRY(std::optional<store::AikRow> current, deps_.store->FindAik(row.attester));
  if (current && known && current->generation != known->generation)
    current.reset();  // retired: it comes back as a rotation
  Pending pending;
  pending.host = known.value_or(store::HostRow{});
  pending.host.host_id = ticket.host_id;
  if (!ticket.label.empty()) pending.host.label = ticket.label;
  pending.host.ek_class = ticket.ek_class;
  pending.host.weak_device_id = weak;
  pending.host.ek_spki_digest = ticket.ek_spki;
  if (!known) pending.host.enrolled_at = now;
  const std::int64_t renew_after = row.not_after - (row.not_after - now) / 3;  // the last third begins
  pending.result = {ticket.host_id,
                    row.attester,
                    row.certificate,
                    static_cast<std::uint64_t>(row.not_after),
                    static_cast<std::uint64_t>(renew_after),
                    weak,
                    0};
  pending.token_hash = ticket.token;
  pending.record = {ActionOf(known, current),
                    ticket.host_id,
                    row.attester,
                    ticket.ek_class,
                    ticket.ek_kind,
                    weak,
                    pending.host.label,
                    ticket.anchor,
                    ticket.token,
                    known ? known->generation : 0,
                    row.not_after};
  pending.aik = std::move(row);
  return pending;
}

Result<PrepareOutcome> EnrollmentService::PrepareComplete(const EnrollComplete& message) {
  // Step 1: our own sealed state, unchanged and in time.
  const OpenedTicket opened = deps_.tickets->Open(message.ticket, deps_.clock_ms());
  if (opened.outcome != TicketOutcome::kOpened)
    return Refuse(TicketCode(opened.outcome), TicketDetail(opened.outcome), "begin the enrollment again");
  const TicketContent& ticket = opened.content;
  ASSAY_TRY(const AikKey aik, AikOf(ticket.aik_public));
  // Step 2: the same AIK as at begin.
  if (message.attester != aik.key.SpkiDigest())
    return Refuse("aik_mismatch", "the AIK is not the one that began this enrollment",
                  "begin the enrollment again with this AIK");
  // Step 3: the TPM with this EK and this AIK opened the credential.
  if (!EqualConstantTime(Sha256(message.secret), ticket.secret))
    return Refuse("credential_secret_wrong", "the credential was not opened",
                  "enroll on the machine that holds this EK");
  // Step 4: the host id's strength. A proof that is given must hold; without one the id is weak.
  bool weak = ticket.ek_kind != tpm::EkKind::kRsa2048Low || ticket.ek_class == store::EkClass::kEkKey;
  if (message.creation_attest.empty()) {
    weak = true;
  } else if (ticket.canonical_name.empty()) {
    return Refuse("canonical_ek_mismatch", "only the RSA-2048 low-range EK can be proved canonical",
                  "enroll without the proof, or with the EK at 0x01C00002");
  } else {
    const CanonicalOutcome proof = CheckCanonicalProof({message.creation_attest, message.creation_signature, &aik.key,
                                                        aik.scheme, ticket.qualifying, ticket.canonical_name});
    if (proof != CanonicalOutcome::kProved) {
      return Refuse(CanonicalCode(proof),
                    "the TPM's statement about the creation of the EK does not prove the canonical EK",
                    "create the EK from the low-range template, with no changes");
    }
  }
  if (weak && deps_.policy()->require_canonical_proof)
    return Refuse("canonical_proof_missing", "the policy asks for a proved canonical EK",
                  "enroll with the RSA-2048 EK at 0x01C00002");
  // Step 5: what is stored already.
  store::AikRow row;
  row.attester = message.attester;
  row.host_id = ticket.host_id;
  row.scheme = aik.scheme;
  row.public_area = ticket.aik_public;
  ASSAY_TRY(const std::optional<store::HostRow> known, deps_.store->FindHost(ticket.host_id));
  ASSAY_TRY(std::optional<ErrorReply> refusal, CheckStored(row, known));
  if (refusal) return PrepareOutcome(std::move(*refusal));
  ASSAY_TRY(std::optional<ErrorReply> token_refusal, CheckToken(ticket.token));
  if (token_refusal) return PrepareOutcome(std::move(*token_refusal));
  // Step 6: the certificate. Nothing is written yet.
  ASSAY_TRY(Pending pending, MakePending(ticket, aik.key, std::move(row), weak));
  return PrepareOutcome(std::move(pending));
}

Result<PrepareOutcome> EnrollmentService::PrepareRenew(const Digest& attester) {
  ASSAY_TRY(std::optional<store::AikRow> row, deps_.store->FindAik(attester));
  if (!row) return Refuse("attester_unknown", "no AIK with this id is enrolled", "run `assay-enroll enroll`");
  ASSAY_TRY(const std::optional<store::HostRow> known, deps_.store->FindHost(row->host_id));
  if (!known || row->generation != known->generation)
    return Refuse("aik_retired", "a newer AIK took this one's place",
                  "run `assay-enroll status`: the endpoint holds an old record");
  ASSAY_TRY(std::optional<ErrorReply> refusal, CheckStored(*row, known));
  if (refusal) return PrepareOutcome(std::move(*refusal));
  ASSAY_TRY(const AikKey aik, AikOf(row->public_area));
  TicketContent as_enrolled;
  as_enrolled.ek_class = known->ek_class;
  as_enrolled.ek_spki = known->ek_spki_digest;
  as_enrolled.host_id = known->host_id;
  ASSAY_TRY(Pending pending, MakePending(as_enrolled, aik.key, std::move(*row), known->weak_device_id));
  pending.record.action = EnrollmentRecord::Action::kRenew;
  pending.record.ek_kind.reset();
  return PrepareOutcome(std::move(pending));
}

Result<CommitOutcome> EnrollmentService::Commit(const Pending& pending) {
  const Result<std::uint64_t> generation =
      deps_.store->PutEnrollment(pending.host, pending.aik, pending.token_hash, NowSeconds());
  if (generation.ok()) {
    EnrollResult result = pending.result;
    result.generation = *generation;
    return CommitOutcome(std::move(result));
  }
  const Error& error = generation.error();
  if (error.code == Code::kDenied)
    return CommitOutcome(ErrorReply{"enrollment_token_invalid", error.detail,
                                    "get a new token with `assayctl tokens create-enrollment`"});
  if (error.code == Code::kConflict)
    return CommitOutcome(ErrorReply{"enrollment_conflict", error.detail, "begin the enrollment again"});
  return error;
}

unsigned RefusalStatus(std::string_view code) noexcept {
  if (code.starts_with("begin_limit_")) return 429;
  if (code == "aik_of_other_host" || code == "enrollment_conflict") return 409;
  if (code == "malformed" || code.ends_with("_malformed") || code == "ek_public_mismatch") return 400;
  if (code.ends_with("_unavailable")) return 503;  // a fault of ours that a renewal met on its way
  return 403;
}

}  // namespace assay::enrollment
