// SPDX-License-Identifier: Apache-2.0
#include "verifier/enrollment/service.h"

#include <doctest/doctest.h>

#include "tests/support/memory_store.h"
#include "tests/support/soft_tpm.h"
#include "tests/unit/enrollment/cert_maker.h"
#include "verifier/enrollment/enrollment_token.h"
#include "verifier/enrollment/host_id.h"

namespace assay::enrollment {
namespace {

using test::kNow;
using test::SoftTpm;

const PrivateKey& RootKey() {
  static const PrivateKey key = PrivateKey::Generate(KeyType::kP256).value();
  return key;
}
const test::Cert& Root() {
  static const test::Cert root = test::MakeCert(test::CaSpec("Root"), RootKey().Public().value(), nullptr, RootKey());
  return root;
}
Buffer EkCertificate(int machine, tpm::EkKind kind) {
  return test::MakeCert(test::EkSpec(), test::EkKeyOf(machine, kind).Public().value(), &Root(), RootKey()).der;
}

struct Enrollment {
  EnrollBegin begin;
  EnrollChallenge challenge;
  EnrollComplete complete;
};

struct Fixture {
  std::int64_t now_ms = kNow * 1000;
  test::MemoryStore store;
  EnrollmentCa ca = EnrollmentCa::Create("CA", kNow, 100'000'000).value();
  TicketSealer tickets;
  BeginLimits limits{{1000, 1000, 100'000}, [this] { return now_ms; }};
  EnrollmentPolicy policy;
  EnrollmentService service{{&store, &ca, &tickets, &limits,
                             [this] { return std::make_shared<const EnrollmentPolicy>(policy); },
                             [this] { return now_ms; }}};

  Fixture() {
    policy.require_token = false;
    policy.bundle = std::make_shared<const TrustBundle>(TrustBundle::FromPem(Root().pem, "").value());
  }

  // A message as assay-enroll makes it; the keys stay loaded in `device`.
  EnrollBegin Message(SoftTpm& device, int machine, tpm::AikKind aik = tpm::AikKind::kEccP256,
                      tpm::EkKind ek = tpm::EkKind::kRsa2048Low) {
    ek_key = device.CreateEk(ek).value();
    aik_key = device.CreateAik(aik, RandomArray<32>()).value();
    return {ek, EkCertificate(machine, ek), ek_key.public_area, {}, aik_key.public_area, "", "box"};
  }
  EnrollComplete Answer(SoftTpm& device, const EnrollChallenge& challenge, bool proof = true) {
    EnrollComplete out;
    out.ticket = challenge.ticket;
    out.secret = ToBuffer(
        device.ActivateCredential(aik_key.handle, ek_key.handle, challenge.credential_blob, challenge.encrypted_secret)
            .value()
            .view());
    out.attester = tpm::KeyOf(tpm::DecodePublicArea(aik_key.public_area).value()).value().SpkiDigest();
    if (!proof) return out;
    auto attested = device.CertifyCreation(aik_key.handle, ek_key, challenge.qualifying).value();
    out.creation_attest = std::move(attested.attest);
    out.creation_signature = std::move(attested.signature);
    return out;
  }
  EnrollChallenge Challenged(const EnrollBegin& message) {
    BeginOutcome outcome = service.Begin(message, "192.0.2.1").value();
    const auto* refusal = std::get_if<ErrorReply>(&outcome);
    const std::string why = refusal == nullptr ? "" : refusal->code + ": " + refusal->detail;
    REQUIRE_MESSAGE(refusal == nullptr, why);
    return std::get<EnrollChallenge>(outcome);
  }
  std::string BeginRefusal(const EnrollBegin& message) {
    const BeginOutcome outcome = service.Begin(message, "192.0.2.1").value();
    return std::holds_alternative<ErrorReply>(outcome) ? std::get<ErrorReply>(outcome).code : "accepted";
  }
  std::string CompleteRefusal(const EnrollComplete& message) {
    const PrepareOutcome outcome = service.PrepareComplete(message).value();
    return std::holds_alternative<ErrorReply>(outcome) ? std::get<ErrorReply>(outcome).code : "accepted";
  }
  Pending Prepared(const EnrollComplete& message) {
    PrepareOutcome outcome = service.PrepareComplete(message).value();
    const auto* refusal = std::get_if<ErrorReply>(&outcome);
    const std::string why = refusal == nullptr ? "" : refusal->code + ": " + refusal->detail;
    REQUIRE_MESSAGE(refusal == nullptr, why);
    return std::move(std::get<Pending>(outcome));
  }
  EnrollResult Enroll(SoftTpm& device, int machine, tpm::AikKind aik = tpm::AikKind::kEccP256) {
    const EnrollChallenge challenge = Challenged(Message(device, machine, aik));
    const Pending pending = Prepared(Answer(device, challenge));
    return std::get<EnrollResult>(service.Commit(pending).value());
  }

  tpm::CreatedKey ek_key, aik_key;
};

TEST_CASE("a TPM enrolls with each kind of AIK, and only the commit writes the store") {
  for (const auto kind : {tpm::AikKind::kRsaSsa, tpm::AikKind::kRsaPss, tpm::AikKind::kEccP256}) {
    Fixture f;
    SoftTpm device(1);
    const EnrollChallenge challenge = f.Challenged(f.Message(device, 1, kind));
    const Pending pending = f.Prepared(f.Answer(device, challenge));
    CHECK(f.store.writes == 0);
    const EnrollResult result = std::get<EnrollResult>(f.service.Commit(pending).value());
    CHECK(f.store.writes == 1);
    CHECK(result.generation == 1);
    CHECK_FALSE(result.weak_device_id);
    CHECK(result.host_id == HostIdOf(test::EkKeyOf(1, tpm::EkKind::kRsa2048Low).Public().value()));
    CHECK(result.not_after == static_cast<std::uint64_t>(kNow + 86400));
    CHECK(result.renew_after == static_cast<std::uint64_t>(kNow + 57600));
    const AikCertificateVerdict verdict = f.ca.Check(result.aik_certificate, kNow);
    CHECK(verdict.outcome == AikCertificateOutcome::kValid);
    CHECK(verdict.host_id == result.host_id);
    CHECK(verdict.attester == result.attester);
    CHECK(f.store.aiks[result.attester].public_area == f.aik_key.public_area);
    CHECK(f.store.hosts[result.host_id].label == "box");
    CHECK(pending.record.action == EnrollmentRecord::Action::kEnroll);
    CHECK(pending.record.anchor == "CN=Root");
  }
}

TEST_CASE("the credential opens for the TPM that holds this EK and this AIK only") {
  Fixture f;
  SoftTpm device(1), other(2);
  const EnrollBegin message = f.Message(device, 1);
  const EnrollChallenge challenge = f.Challenged(message);
  const auto other_ek = other.CreateEk(tpm::EkKind::kRsa2048Low).value();
  const auto other_aik = other.CreateAik(tpm::AikKind::kEccP256, RandomArray<32>()).value();
  CHECK_FALSE(
      other.ActivateCredential(other_aik.handle, other_ek.handle, challenge.credential_blob, challenge.encrypted_secret)
          .ok());
  const auto second_aik = device.CreateAik(tpm::AikKind::kEccP256, RandomArray<32>()).value();
  CHECK_FALSE(
      device
          .ActivateCredential(second_aik.handle, f.ek_key.handle, challenge.credential_blob, challenge.encrypted_secret)
          .ok());
  CHECK(
      device
          .ActivateCredential(f.aik_key.handle, f.ek_key.handle, challenge.credential_blob, challenge.encrypted_secret)
          .ok());
}

TEST_CASE(
    "a wrong secret, another AIK, and every broken ticket are refused with their own codes, and nothing changes") {
  Fixture f;
  SoftTpm device(1);
  const EnrollChallenge challenge = f.Challenged(f.Message(device, 1));
  const EnrollComplete good = f.Answer(device, challenge);
  EnrollComplete bad = good;
  bad.secret[0] ^= 1;
  CHECK(f.CompleteRefusal(bad) == "credential_secret_wrong");
  bad = good;
  bad.secret.clear();
  CHECK(f.CompleteRefusal(bad) == "credential_secret_wrong");
  bad = good;
  bad.attester[0] ^= 1;
  CHECK(f.CompleteRefusal(bad) == "aik_mismatch");
  bad = good;
  bad.ticket.back() ^= 1;
  CHECK(f.CompleteRefusal(bad) == "ticket_tampered");
  bad.ticket.resize(10);
  CHECK(f.CompleteRefusal(bad) == "ticket_malformed");
  const EnrollChallenge foreign = Fixture().Challenged(f.Message(device, 1));
  bad = good;
  bad.ticket = foreign.ticket;
  CHECK(f.CompleteRefusal(bad) == "ticket_foreign");
  f.now_ms += kTicketLifetimeMs;
  CHECK(f.CompleteRefusal(good) == "ticket_expired");
  CHECK(f.store.writes == 0);
  CHECK(f.store.hosts.empty());
}

TEST_CASE("the AIK is swapped between begin and complete: refused, also when its own credential was opened") {
  Fixture f;
  SoftTpm device(1);
  const EnrollChallenge first = f.Challenged(f.Message(device, 1));
  const EnrollComplete first_answer = f.Answer(device, first);
  const EnrollChallenge second = f.Challenged(f.Message(device, 1));  // another AIK
  EnrollComplete swapped = f.Answer(device, second);
  swapped.ticket = first.ticket;
  CHECK(f.CompleteRefusal(swapped) == "aik_mismatch");
  swapped.attester = first_answer.attester;
  CHECK(f.CompleteRefusal(swapped) == "credential_secret_wrong");
  swapped.secret = first_answer.secret;
  CHECK(f.CompleteRefusal(swapped) == "canonical_proof_signature");  // the proof was signed by the second AIK
}

TEST_CASE("an enrollment without the canonical proof is weak, and a proof that does not hold is refused") {
  Fixture f;
  SoftTpm device(1);
  const EnrollChallenge challenge = f.Challenged(f.Message(device, 1));
  CHECK(f.Prepared(f.Answer(device, challenge, false)).result.weak_device_id);
  f.policy.require_canonical_proof = true;
  CHECK(f.CompleteRefusal(f.Answer(device, challenge, false)) == "canonical_proof_missing");
  device.certify_as = tpm::EkKind::kRsa2048High;
  CHECK(f.CompleteRefusal(f.Answer(device, challenge)) == "canonical_ek_mismatch");
  device.certify_as.reset();
  EnrollComplete bad = f.Answer(device, challenge);
  for (std::size_t i = 0; i < bad.creation_attest.size(); ++i) {
    EnrollComplete changed = bad;
    changed.creation_attest[i] ^= 1;
    CHECK_MESSAGE(f.CompleteRefusal(changed) == "canonical_proof_signature", "byte " << i);
  }
  bad.creation_signature.clear();
  CHECK(f.CompleteRefusal(bad) == "canonical_proof_malformed");
  CHECK(f.store.writes == 0);
}

TEST_CASE("a high-range EK presented as the canonical one is refused, whatever its certificate says") {
  // Its key in the low-range public area: the TPM has no object with that Name to certify.
  Fixture f;
  SoftTpm device(1);
  (void)f.Message(device, 1);
  const PublicKey high = test::EkKeyOf(1, tpm::EkKind::kRsa2048High).Public().value();
  EnrollBegin message = f.Message(device, 1, tpm::AikKind::kEccP256, tpm::EkKind::kRsa2048High);
  message.ek_kind = tpm::EkKind::kRsa2048Low;
  CHECK(f.BeginRefusal(message) == "ek_public_mismatch");
  message.ek_public = tpm::EkPublicArea(tpm::EkKind::kRsa2048Low, high).value();
  const EnrollChallenge challenge = f.Challenged(message);
  CHECK(f.CompleteRefusal(f.Answer(device, challenge)) == "canonical_ek_mismatch");
  CHECK(f.Prepared(f.Answer(device, challenge, false)).result.weak_device_id);
}

TEST_CASE("statements about something else do not prove the canonical EK") {
  SoftTpm device(1);
  const auto aik = device.CreateAik(tpm::AikKind::kEccP256, RandomArray<32>()).value();
  const PublicKey aik_key = tpm::KeyOf(tpm::DecodePublicArea(aik.public_area).value()).value();
  const Buffer name = CanonicalEkName(test::EkKeyOf(1, tpm::EkKind::kRsa2048Low).Public().value()).value();
  const Buffer qualifying(32, 9);
  const auto judge = [&](const test::CreationFields& fields,
                         SignatureScheme scheme = SignatureScheme::kEcdsaP256Sha256) {
    const auto attested = SoftTpm::Sign(device.loaded().at(aik.handle), fields.Encode());
    return CheckCanonicalProof({attested.attest, attested.signature, &aik_key, scheme, qualifying, name});
  };
  test::CreationFields good;
  good.extra_data = qualifying;
  good.object_name = name;
  CHECK(judge(good) == CanonicalOutcome::kProved);
  test::CreationFields bad = good;
  bad.magic = 0xFF544346;
  CHECK(judge(bad) == CanonicalOutcome::kBadMagic);
  bad = good;
  bad.type = static_cast<std::uint16_t>(tpm::AttestType::kCertify);
  CHECK(judge(bad) == CanonicalOutcome::kWrongType);
  bad = good;
  bad.type = 0x8014;
  CHECK(judge(bad) == CanonicalOutcome::kWrongType);
  bad = good;
  bad.extra_data[31] ^= 1;
  CHECK(judge(bad) == CanonicalOutcome::kWrongQualifying);
  bad.extra_data.pop_back();
  CHECK(judge(bad) == CanonicalOutcome::kWrongQualifying);
  bad = good;
  bad.object_name[33] ^= 1;
  CHECK(judge(bad) == CanonicalOutcome::kOtherObject);
  bad.object_name.clear();
  CHECK(judge(bad) == CanonicalOutcome::kOtherObject);
  CHECK(judge(good, SignatureScheme::kRsaSsaSha256) == CanonicalOutcome::kBadSignature);
  const auto attested = SoftTpm::Sign(device.loaded().at(aik.handle), good.Encode());
  for (std::size_t i = 0; i < attested.attest.size(); ++i) {
    CHECK(CheckCanonicalProof({Bytes(attested.attest).first(i), attested.signature, &aik_key,
                               SignatureScheme::kEcdsaP256Sha256, qualifying, name}) != CanonicalOutcome::kProved);
  }
  for (std::size_t i = 0; i < attested.signature.size(); ++i) {
    CHECK(CheckCanonicalProof({attested.attest, Bytes(attested.signature).first(i), &aik_key,
                               SignatureScheme::kEcdsaP256Sha256, qualifying, name}) != CanonicalOutcome::kProved);
  }
}

TEST_CASE("keys without the properties of an AIK are refused at begin") {
  Fixture f;
  SoftTpm device(1);
  const EnrollBegin good = f.Message(device, 1);
  for (const std::uint32_t bit : {tpm::attr::kRestricted, tpm::attr::kFixedTpm, tpm::attr::kFixedParent,
                                  tpm::attr::kSensitiveDataOrigin, tpm::attr::kSignEncrypt, tpm::attr::kDecrypt}) {
    EnrollBegin message = good;
    Writer flipped;  // type 2, name algorithm 2, attributes 4
    flipped.U32Be(tpm::DecodePublicArea(good.aik_public).value().attributes ^ bit);
    CopyBytes(flipped.buffer(), MutableBytes(message.aik_public).subspan(4, 4));
    CHECK_MESSAGE(f.BeginRefusal(message) == "aik_unacceptable", "bit " << bit);
  }
  EnrollBegin message = good;
  message.aik_public = good.ek_public;
  CHECK(f.BeginRefusal(message) == "aik_unacceptable");
  message.aik_public.pop_back();
  CHECK(f.BeginRefusal(message) == "aik_malformed");
  f.policy.aik_schemes = {SignatureScheme::kRsaSsaSha256};
  CHECK(f.BeginRefusal(good) == "aik_scheme_not_allowed");
  CHECK(f.store.writes == 0);
}

TEST_CASE("an EK area that is not its template's, or not its certificate's, is refused") {
  Fixture f;
  SoftTpm device(1);
  const EnrollBegin good = f.Message(device, 1);
  for (std::size_t i = 0; i < good.ek_public.size(); ++i) {
    EnrollBegin message = good;
    message.ek_public[i] ^= 1;
    const std::string code = f.BeginRefusal(message);
    CHECK_MESSAGE((code == "ek_public_mismatch" || code == "ek_key_mismatch"), "byte " << i << " " << code);
    message.ek_public = ToBuffer(Bytes(good.ek_public).first(i));
    CHECK(f.BeginRefusal(message) == "ek_public_mismatch");
  }
  EnrollBegin message = good;
  message.ek_certificate = EkCertificate(2, tpm::EkKind::kRsa2048Low);
  CHECK(f.BeginRefusal(message) == "ek_key_mismatch");
  message.ek_certificate = {1, 2, 3};
  CHECK(f.BeginRefusal(message) == "ek_certificate_malformed");
  const PrivateKey stranger = PrivateKey::Generate(KeyType::kP256).value();
  message.ek_certificate =
      test::MakeCert(test::EkSpec(), test::EkKeyOf(1, tpm::EkKind::kRsa2048Low).Public().value(), nullptr, stranger)
          .der;
  CHECK(f.BeginRefusal(message) == "ek_chain_untrusted");
}

TEST_CASE("bare EKs and other kinds need the policy's word, and are weak then") {
  Fixture f;
  SoftTpm device(1);
  EnrollBegin bare = f.Message(device, 1);
  bare.ek_certificate.clear();
  CHECK(f.BeginRefusal(bare) == "ek_key_refused");
  f.policy.allow_ek_key = true;
  const Pending pending = f.Prepared(f.Answer(device, f.Challenged(bare)));
  CHECK(pending.result.weak_device_id);
  CHECK(pending.host.ek_class == store::EkClass::kEkKey);
  for (const auto kind :
       {tpm::EkKind::kRsa2048High, tpm::EkKind::kEccP256Low, tpm::EkKind::kEccP256High, tpm::EkKind::kEccP384High}) {
    Fixture g;
    SoftTpm second(2);
    EnrollBegin message = g.Message(second, 2, tpm::AikKind::kEccP256, kind);
    CHECK(g.BeginRefusal(message) == "ek_kind_not_allowed");
    g.policy.other_kinds = {kind};
    if (kind == tpm::EkKind::kRsa2048High || kind == tpm::EkKind::kEccP256Low || kind == tpm::EkKind::kEccP256High) {
      const EnrollChallenge challenge = g.Challenged(message);
      CHECK(g.Prepared(g.Answer(second, challenge, false)).result.weak_device_id);
      CHECK(g.CompleteRefusal(g.Answer(second, challenge, true)) == "canonical_ek_mismatch");
    } else {
      CHECK(g.BeginRefusal(message) == "accepted");  // the software TPM opens no SHA-384 credentials; swtpm does
    }
  }
}

TEST_CASE("an enrollment token is asked for, works once, and a bad one goes nowhere") {
  Fixture f;
  f.policy.require_token = true;
  SoftTpm device(1);
  EnrollBegin message = f.Message(device, 1);
  CHECK(f.BeginRefusal(message) == "enrollment_token_missing");
  message.token = "aet_guess";
  CHECK(f.BeginRefusal(message) == "enrollment_token_invalid");
  const std::string token = DrawEnrollmentToken();
  CHECK(f.store.AddEnrollmentToken(EnrollmentTokenHash(token), kNow + 10).ok());
  message.token = token;
  const EnrollChallenge challenge = f.Challenged(message);
  const Pending pending = f.Prepared(f.Answer(device, challenge));
  CHECK(pending.token_hash == EnrollmentTokenHash(token));
  CHECK(std::holds_alternative<EnrollResult>(f.service.Commit(pending).value()));
  CHECK(f.CompleteRefusal(f.Answer(device, challenge)) == "enrollment_token_invalid");
  CHECK(std::get<ErrorReply>(f.service.Commit(pending).value()).code ==
        "enrollment_token_invalid");  // raced past the check
  CHECK(f.BeginRefusal(message) == "enrollment_token_invalid");
}

TEST_CASE("re-enrollment and rotation keep the host and raise the generation, renewal keeps both") {
  Fixture f;
  SoftTpm device(1);
  const EnrollResult first = f.Enroll(device, 1);
  f.now_ms += 1000;
  const EnrollResult second = f.Enroll(device, 1);
  CHECK(second.host_id == first.host_id);
  CHECK(second.attester != first.attester);
  CHECK(second.generation == 2);
  CHECK(f.store.hosts[first.host_id].enrolled_at == kNow);
  PrepareOutcome retired = f.service.PrepareRenew(first.attester).value();
  CHECK(std::get<ErrorReply>(retired).code == "aik_retired");
  f.now_ms += 50'000'000;
  const Pending renewal = std::get<Pending>(f.service.PrepareRenew(second.attester).value());
  CHECK(renewal.record.action == EnrollmentRecord::Action::kRenew);
  const EnrollResult renewed = std::get<EnrollResult>(f.service.Commit(renewal).value());
  CHECK(renewed.generation == 2);
  CHECK(renewed.not_after > second.not_after);
  CHECK(renewed.aik_certificate != second.aik_certificate);
  CHECK(f.store.hosts[first.host_id].label == "box");
  CHECK(std::get<ErrorReply>(f.service.PrepareRenew(Digest{}).value()).code == "attester_unknown");
}

TEST_CASE("the record says what happened: enroll, rotate, re-enroll") {
  Fixture f;
  SoftTpm device(1);
  (void)f.Enroll(device, 1);
  const EnrollBegin message = f.Message(device, 1);
  const EnrollComplete answer = f.Answer(device, f.Challenged(message));
  const Pending rotation = f.Prepared(answer);
  CHECK(rotation.record.action == EnrollmentRecord::Action::kRotate);
  CHECK(rotation.record.previous_generation == 1);
  CHECK(std::get<EnrollResult>(f.service.Commit(rotation).value()).generation == 2);
  const Pending again = f.Prepared(answer);  // the same message once more, within its minute
  CHECK(again.record.action == EnrollmentRecord::Action::kReEnroll);
  CHECK(std::get<EnrollResult>(f.service.Commit(again).value()).generation == 2);
}

TEST_CASE("the AIK of another host, a replaced host and a revoked one are refused") {
  Fixture f;
  SoftTpm device(1);
  const EnrollChallenge challenge = f.Challenged(f.Message(device, 1));
  const EnrollComplete answer = f.Answer(device, challenge);
  store::AikRow foreign;
  foreign.attester = answer.attester;
  foreign.host_id[0] = 0xEE;
  f.store.aiks[answer.attester] = foreign;
  CHECK(f.CompleteRefusal(answer) == "aik_of_other_host");
  f.store.aiks.clear();
  const Pending pending = f.Prepared(answer);
  f.store.aiks[answer.attester] = foreign;
  CHECK(std::get<ErrorReply>(f.service.Commit(pending).value()).code == "enrollment_conflict");
  f.store.aiks.clear();
  store::HostRow replaced = pending.host;
  replaced.state = "replaced";
  f.store.hosts[replaced.host_id] = replaced;
  CHECK(f.CompleteRefusal(answer) == "host_replaced");
  f.store.hosts.clear();
  f.store.revocations = {{"host", ToHex(pending.host.host_id), kNow + 100}};
  CHECK(f.CompleteRefusal(answer) == "host_revoked");
  f.store.revocations[0].until = kNow;
  CHECK(f.CompleteRefusal(answer) == "accepted");
}

TEST_CASE("a store that fails is an error and no refusal, and nothing is answered") {
  Fixture f;
  SoftTpm device(1);
  const EnrollComplete answer = f.Answer(device, f.Challenged(f.Message(device, 1)));
  const Pending pending = f.Prepared(answer);
  f.store.fault = MakeError(Code::kIo, "disk");
  CHECK_FALSE(f.service.PrepareComplete(answer).ok());
  CHECK_FALSE(f.service.Commit(pending).ok());
  CHECK_FALSE(f.service.PrepareRenew(answer.attester).ok());
}

TEST_CASE("limits come first for the source and after the chain for the EK") {
  Fixture f;
  SoftTpm device(1);
  const EnrollBegin message = f.Message(device, 1);
  f.limits.SetRules({2, 1000, 1000});
  EnrollBegin junk;
  CHECK(f.BeginRefusal(junk) != "begin_limit_source");
  CHECK(f.BeginRefusal(junk) != "begin_limit_source");
  CHECK(f.BeginRefusal(message) == "begin_limit_source");
  f.limits.SetRules({1000, 1, 1000});
  EnrollBegin stolen = message;  // the key alone, without its certificate, uses up nothing
  stolen.ek_certificate = EkCertificate(2, tpm::EkKind::kRsa2048Low);
  for (int i = 0; i < 5; ++i) CHECK(f.BeginRefusal(stolen) == "ek_key_mismatch");
  CHECK(f.BeginRefusal(message) == "accepted");
  CHECK(f.BeginRefusal(message) == "begin_limit_ek");
  CHECK(RefusalStatus("begin_limit_ek") == 429);
  CHECK(RefusalStatus("ek_certificate_malformed") == 400);
  CHECK(RefusalStatus("malformed") == 400);
  CHECK(RefusalStatus("store_unavailable") == 503);
  CHECK(RefusalStatus("aik_of_other_host") == 409);
  CHECK(RefusalStatus("ek_chain_untrusted") == 403);
}

}  // namespace
}  // namespace assay::enrollment
