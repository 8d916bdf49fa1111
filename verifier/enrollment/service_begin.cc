// SPDX-License-Identifier: Apache-2.0
// The first half of an enrollment: who asks, with which keys, and a credential that only their TPM can open.
#include <algorithm>

#include "sdk/core/cbor.h"
#include "verifier/enrollment/enrollment_token.h"
#include "verifier/enrollment/host_id.h"
#include "verifier/enrollment/make_credential.h"
#include "verifier/enrollment/service.h"

namespace assay::enrollment {

struct EnrollmentService::BegunKeys {
  PublicKey ek;
  Buffer aik_name;
  std::string anchor;
};

namespace {

constexpr std::size_t kSecretSize = 32;  // at most the digest of the EK's name algorithm (Part 1, section 24.4)

std::optional<ErrorReply> Admit(Admission admission) {
  if (admission == Admission::kAdmitted) return std::nullopt;
  return ErrorReply{std::string(AdmissionCode(admission)), "too many enrollments began within a minute",
                    "wait a minute and try again"};
}

// The EK public area must be the template's own, filled with its key: a credential for another object would prove
// something else.
std::variant<PublicKey, ErrorReply> CheckEkArea(const EnrollBegin& message) {
  const auto refuse = [](std::string detail) {
    return ErrorReply{"ek_public_mismatch", std::move(detail),
                      "create the EK from the TCG template of the kind that is named"};
  };
  const Result<tpm::PublicArea> area = tpm::DecodePublicArea(message.ek_public);
  if (!area.ok()) return refuse("the EK public area does not decode: " + area.error().detail);
  Result<PublicKey> key = tpm::KeyOf(*area);
  if (!key.ok()) return refuse("the EK's key is not usable: " + key.error().detail);
  const Result<Buffer> expected = tpm::EkPublicArea(message.ek_kind, *key);
  if (!expected.ok()) return refuse("the EK's key does not fit the template: " + expected.error().detail);
  if (!Equal(*expected, message.ek_public)) return refuse("the EK public area is not that of the template");
  return std::move(*key);
}

std::optional<ErrorReply> CheckAik(const EnrollBegin& message, const EnrollmentPolicy& policy) {
  const Result<tpm::PublicArea> area = tpm::DecodePublicArea(message.aik_public);
  if (!area.ok()) return ErrorReply{"aik_malformed", "the AIK public area does not decode: " + area.error().detail, ""};
  const Result<tpm::AikScheme> scheme = tpm::CheckAikArea(*area);
  if (!scheme.ok())
    return ErrorReply{"aik_unacceptable", scheme.error().detail,
                      "create the AIK with assay-enroll: a restricted signing key fixed to its TPM"};
  if (std::find(policy.aik_schemes.begin(), policy.aik_schemes.end(), scheme->scheme) == policy.aik_schemes.end()) {
    return ErrorReply{"aik_scheme_not_allowed",
                      std::string("the policy does not allow AIKs with ") + SchemeName(scheme->scheme),
                      "choose another --aik kind"};
  }
  return std::nullopt;
}

std::string Cut(std::string text, std::size_t limit) {
  while (text.size() > limit || !IsUtf8(text)) text.pop_back();
  return text;
}

}  // namespace

std::optional<ErrorReply> EnrollmentService::CheckPolicyOf(const EnrollBegin& message,
                                                           const EnrollmentPolicy& policy) const {
  const bool canonical = message.ek_kind == tpm::EkKind::kRsa2048Low;
  if (!canonical &&
      std::find(policy.other_kinds.begin(), policy.other_kinds.end(), message.ek_kind) == policy.other_kinds.end()) {
    return ErrorReply{"ek_kind_not_allowed", "the policy takes the canonical EK (RSA-2048, low range) only",
                      "enroll with the EK at 0x01C00002, or let the policy allow this kind"};
  }
  if (message.ek_certificate.empty() && !policy.allow_ek_key) {
    return ErrorReply{"ek_key_refused", "no EK certificate was sent and the policy refuses bare EKs",
                      "enroll a TPM that holds its manufacturer's EK certificate"};
  }
  if (message.token.empty() && policy.require_token) {
    return ErrorReply{"enrollment_token_missing", "the policy asks for an enrollment token",
                      "get one with `assayctl tokens create-enrollment` and give it with --token-file"};
  }
  return std::nullopt;
}

Result<std::variant<EnrollmentService::BegunKeys, ErrorReply>> EnrollmentService::CheckKeys(
    const EnrollBegin& message, const EnrollmentPolicy& policy) const {
  if (std::optional<ErrorReply> refusal = CheckAik(message, policy))
    return std::variant<BegunKeys, ErrorReply>(std::move(*refusal));
  auto ek = CheckEkArea(message);
  if (auto* refusal = std::get_if<ErrorReply>(&ek)) return std::variant<BegunKeys, ErrorReply>(std::move(*refusal));
  BegunKeys keys{std::move(std::get<PublicKey>(ek)), {}, {}};
  if (!message.ek_certificate.empty()) {
    EkChainVerdict verdict = CheckEkChain({message.ek_certificate, message.intermediates, message.ek_kind, &keys.ek,
                                           policy.bundle.get(), policy.chain, NowSeconds()});
    if (verdict.outcome != EkChainOutcome::kTrusted) {
      return std::variant<BegunKeys, ErrorReply>(ErrorReply{
          std::string(EkChainCode(verdict.outcome)), std::move(verdict.detail),
          "check that the manufacturer's root is in the verifier's bundle and that the intermediates are sent"});
    }
    keys.anchor = std::move(verdict.anchor);
  }
  ASSAY_TRY(keys.aik_name, tpm::ObjectName(message.aik_public));
  return std::variant<BegunKeys, ErrorReply>(std::move(keys));
}

Result<EnrollChallenge> EnrollmentService::MakeChallenge(const EnrollBegin& message, const BegunKeys& keys) const {
  TicketContent ticket;
  ticket.expires_ms = deps_.clock_ms() + kTicketLifetimeMs;
  ticket.aik_public = message.aik_public;
  ticket.ek_kind = message.ek_kind;
  ticket.ek_class = message.ek_certificate.empty() ? store::EkClass::kEkKey : store::EkClass::kChain;
  ticket.ek_spki = keys.ek.SpkiDigest();
  ticket.host_id = HostIdOf(keys.ek);
  ticket.qualifying = RandomArray<kQualifyingSize>();
  ticket.label = message.label;
  ticket.anchor = Cut(keys.anchor, limits::kShortText);
  if (!message.token.empty()) ticket.token = EnrollmentTokenHash(message.token);
  if (message.ek_kind == tpm::EkKind::kRsa2048Low) { ASSAY_TRY(ticket.canonical_name, CanonicalEkName(keys.ek)); }
  Secret secret(kSecretSize);
  RandomBytes(secret.fill());
  ticket.secret = Sha256(secret.view());
  ASSAY_TRY(MadeCredential made, MakeCredential(message.ek_kind, keys.ek, keys.aik_name, secret.view()));
  ASSAY_TRY(Buffer sealed, deps_.tickets->Seal(ticket));
  return EnrollChallenge{std::move(sealed), std::move(made.credential_blob), std::move(made.encrypted_secret),
                         ToBuffer(ticket.qualifying)};
}

Result<BeginOutcome> EnrollmentService::Begin(const EnrollBegin& message, std::string_view source) {
  // Step 1: may this source begin at all? Nothing of the message is looked at before.
  if (std::optional<ErrorReply> refusal = Admit(deps_.limits->AdmitSource(source)))
    return BeginOutcome(std::move(*refusal));
  // Step 2: what the policy refuses without any cryptography, and a token that is not good.
  const std::shared_ptr<const EnrollmentPolicy> policy = deps_.policy();
  if (std::optional<ErrorReply> refusal = CheckPolicyOf(message, *policy)) return BeginOutcome(std::move(*refusal));
  const std::optional<Digest> token =
      message.token.empty() ? std::nullopt : std::optional<Digest>(EnrollmentTokenHash(message.token));
  ASSAY_TRY(std::optional<ErrorReply> token_refusal, CheckToken(token));
  if (token_refusal) return BeginOutcome(std::move(*token_refusal));
  // Step 3: the AIK's attributes, the EK's template, the certificate's chain.
  ASSAY_TRY(auto keys, CheckKeys(message, *policy));
  if (auto* refusal = std::get_if<ErrorReply>(&keys)) return BeginOutcome(std::move(*refusal));
  const BegunKeys& begun = std::get<BegunKeys>(keys);
  // Step 4: this EK's own limit, after the chain so that strangers can't use it up with a copied key alone.
  if (std::optional<ErrorReply> refusal = Admit(deps_.limits->AdmitEk(begun.ek.SpkiDigest())))
    return BeginOutcome(std::move(*refusal));
  // Step 5: a credential for this AIK that only the TPM with this EK opens.
  ASSAY_TRY(EnrollChallenge challenge, MakeChallenge(message, begun));
  return BeginOutcome(std::move(challenge));
}

}  // namespace assay::enrollment
