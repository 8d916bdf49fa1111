// SPDX-License-Identifier: Apache-2.0
// The steps of an enrollment in the order in which they happen. Every failure says what was being done.
#include "enroll/enroll_flow.h"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <utility>

#include "enroll/certificates.h"
#include "sdk/config/files.h"

namespace assay::enroll {
namespace {

constexpr std::uint32_t kFirstChainIndex = 0x01C00100;  // TCG EK Credential Profile 2.5, section 2.2.1.5.2
constexpr std::size_t kChainIndices = 8;
constexpr std::size_t kUniqueSize = 32;
constexpr char kCertificateFile[] = "aik.pem";

std::string Hex32(std::uint32_t value) {
  std::array<char, 11> text{};
  std::snprintf(text.data(), text.size(), "0x%08X", value);
  return text.data();
}

std::string HostName() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unnamed";
  return name.data();
}

}  // namespace

EnrollFlow::EnrollFlow(Deps deps, const config::EnrollConfig& config, std::string token)
    : deps_(std::move(deps)), config_(config), token_(std::move(token)), handle_(config.aik_handle) {}

EnrollFlow::~EnrollFlow() { Flush(); }

void EnrollFlow::Flush() noexcept {
  for (tpm::CreatedKey* key : {&ek_, &aik_}) {
    if (key->handle == 0) continue;
    (void)deps_.device.FlushTransient(key->handle).ok();  // on the way out: nothing is left to do about a failure
    key->handle = 0;
  }
}

Check EnrollFlow::CheckBefore(Mode mode) {
  const Result<config::EnrollmentRecord> known = config::LoadEnrollment(config::EnrollmentPath(config_.state_dir));
  if (!known.ok() && known.error().code != Code::kNotFound) return StateFailure(known.error());
  if (mode == Mode::kEnroll && known.ok()) {
    return Failure{Exit::kAlreadyEnrolled, "already_enrolled",
                   "this machine is enrolled as host " + ToHex(known->host_id) + " at " + known->verifier_url,
                   "use `assay-enroll renew` for a new certificate, `rotate` for a new AIK, or `remove --yes` first"};
  }
  if (mode == Mode::kRotate && !known.ok())
    return Failure{Exit::kNotEnrolled, "not_enrolled", known.error().detail, "run `assay-enroll enroll`"};
  if (mode == Mode::kRotate) handle_ = known->aik_handle;
  if (mode == Mode::kEnroll) {
    // A key of somebody else's at the handle is not ours to replace.
    const Result<Buffer> there = deps_.device.ReadPublic(handle_);
    if (there.ok()) {
      return Failure{Exit::kTpm, "handle_in_use",
                     "the TPM holds a key at " + Hex32(handle_) + " that this state directory knows nothing of",
                     "choose another --aik-handle, or evict the key with tpm2_evictcontrol if it is yours"};
    }
    if (there.error().code != Code::kNotFound) return TpmFailure(there.error(), "looking at handle " + Hex32(handle_));
  }
  return std::nullopt;
}

Check EnrollFlow::ReadCertificates() {
  if (config_.ek_without_certificate) return std::nullopt;
  if (!config_.ek_certificate.empty()) {
    Result<std::vector<Buffer>> file = ReadCertificateFile(config_.ek_certificate);
    if (!file.ok()) return UsageFailure(file.error());
    ek_certificate_ = std::move(file->front());
  } else {
    const std::uint32_t index = tpm::EkCertificateIndex(config_.ek);
    deps_.progress("reading the EK certificate at NV " + Hex32(index));
    Result<Buffer> read = deps_.device.ReadNv(index);
    if (!read.ok() && read.error().code == Code::kNotFound) {
      return Failure{Exit::kTpm, "ek_certificate_missing", "the TPM holds no EK certificate at NV " + Hex32(index),
                     "try another --ek kind, give the manufacturer's certificate with --ek-certificate, or "
                     "--ek-without-certificate where the verifier's policy allows it"};
    }
    if (!read.ok()) return TpmFailure(read.error(), "reading the EK certificate");
    ek_certificate_ = std::move(*read);
  }
  for (const std::string& path : config_.intermediates) {
    Result<std::vector<Buffer>> file = ReadCertificateFile(path);
    if (!file.ok()) return UsageFailure(file.error());
    for (Buffer& der : *file) intermediates_.push_back(std::move(der));
  }
  if (!config_.intermediates.empty()) return std::nullopt;
  Buffer chain;
  for (std::uint32_t i = 0; i < kChainIndices; ++i) {
    const Result<Buffer> part = deps_.device.ReadNv(kFirstChainIndex + i);
    if (!part.ok() && part.error().code == Code::kNotFound) break;
    if (!part.ok()) return TpmFailure(part.error(), "reading the EK certificate chain");
    chain.insert(chain.end(), part->begin(), part->end());
  }
  intermediates_ = SplitCertificates(chain);
  return std::nullopt;
}

Check EnrollFlow::CreateKeys() {
  deps_.progress("creating the EK (" + std::string(config::EkKindName(config_.ek)) + ")");
  Result<tpm::CreatedKey> ek = deps_.device.CreateEk(config_.ek);
  if (!ek.ok()) return TpmFailure(ek.error(), "creating the EK");
  ek_ = std::move(*ek);
  deps_.progress("creating an AIK (" + std::string(config::AikKindName(config_.aik)) + ")");
  Result<tpm::CreatedKey> aik = deps_.device.CreateAik(config_.aik, RandomArray<kUniqueSize>());
  if (!aik.ok()) return TpmFailure(aik.error(), "creating the AIK");
  aik_ = std::move(*aik);
  const Result<tpm::PublicArea> area = tpm::DecodePublicArea(aik_.public_area);
  const Result<PublicKey> key = area.ok() ? tpm::KeyOf(*area) : Result<PublicKey>(area.error());
  if (!key.ok()) return TpmFailure(key.error(), "reading the AIK's public area");
  attester_ = key->SpkiDigest();
  return std::nullopt;
}

Check EnrollFlow::Begin() {
  deps_.progress("beginning the enrollment at " + config_.verifier);
  EnrollBegin begin;
  begin.ek_kind = config_.ek;
  begin.ek_certificate = ek_certificate_;
  begin.ek_public = ek_.public_area;
  begin.intermediates = intermediates_;
  begin.aik_public = aik_.public_area;
  begin.token = token_;
  begin.label = config_.label.empty() ? HostName() : config_.label;
  Outcome<Buffer> reply = Judge(deps_.verifier.Post(route::kEnrollBegin, EncodeEnrollBegin(begin)), config_.verifier);
  if (auto* failure = std::get_if<Failure>(&reply)) return std::move(*failure);
  Result<EnrollChallenge> challenge = DecodeEnrollChallenge(std::get<Buffer>(reply));
  if (!challenge.ok()) return VerifierFailure(challenge.error(), config_.verifier);
  challenge_ = std::move(*challenge);
  return std::nullopt;
}

Check EnrollFlow::ProveKeys() {
  deps_.progress("activating the credential: this TPM holds both EK and AIK");
  Result<Secret> secret =
      deps_.device.ActivateCredential(aik_.handle, ek_.handle, challenge_.credential_blob, challenge_.encrypted_secret);
  if (!secret.ok()) return TpmFailure(secret.error(), "activating the credential");
  complete_.ticket = challenge_.ticket;
  complete_.secret = ToBuffer(secret->view());
  complete_.attester = attester_;
  if (config_.ek != tpm::EkKind::kRsa2048Low) return std::nullopt;  // only the canonical EK can be proved to be it
  deps_.progress("certifying the creation of the EK: the host id is proved, not claimed");
  Result<tpm::AttestedBytes> proof = deps_.device.CertifyCreation(aik_.handle, ek_, challenge_.qualifying);
  if (!proof.ok()) return TpmFailure(proof.error(), "certifying the creation of the EK");
  complete_.creation_attest = std::move(proof->attest);
  complete_.creation_signature = std::move(proof->signature);
  return std::nullopt;
}

Check EnrollFlow::Complete() {
  deps_.progress("completing the enrollment");
  Outcome<Buffer> reply =
      Judge(deps_.verifier.Post(route::kEnrollComplete, EncodeEnrollComplete(complete_)), config_.verifier);
  if (auto* failure = std::get_if<Failure>(&reply)) return std::move(*failure);
  Result<EnrollResult> result = DecodeEnrollResult(std::get<Buffer>(reply));
  if (!result.ok()) return VerifierFailure(result.error(), config_.verifier);
  if (result->attester != attester_)
    return VerifierFailure(MakeError(Code::kMalformed, "the certificate is for another AIK"), config_.verifier);
  result_ = std::move(*result);
  return std::nullopt;
}

Check EnrollFlow::Keep() {
  deps_.progress("keeping the AIK at " + Hex32(handle_));
  if (const Status kept = deps_.device.Persist(aik_.handle, handle_); !kept.ok())
    return TpmFailure(kept.error(), "making the AIK persistent");
  record_.aik_handle = handle_;
  record_.aik_kind = config_.aik;
  record_.verifier_url = config_.verifier;
  return SaveResult(result_, config_.state_dir, record_);
}

Outcome<config::EnrollmentRecord> EnrollFlow::Run(Mode mode) {
  if (Check failure = CheckBefore(mode)) return std::move(*failure);
  using Step = Check (EnrollFlow::*)();
  for (const Step step : {&EnrollFlow::ReadCertificates, &EnrollFlow::CreateKeys, &EnrollFlow::Begin,
                          &EnrollFlow::ProveKeys, &EnrollFlow::Complete, &EnrollFlow::Keep}) {
    if (Check failure = (this->*step)()) return std::move(*failure);
  }
  Flush();
  deps_.progress(mode == Mode::kRotate ? "rotated: the old AIK is retired" : "enrolled");
  return record_;
}

Check SaveResult(const EnrollResult& result, const std::string& state_dir, config::EnrollmentRecord& record) {
  record.host_id = result.host_id;
  record.attester = result.attester;
  record.not_after = result.not_after;
  record.renew_after = result.renew_after;
  record.generation = result.generation;
  record.weak = result.weak_device_id;
  record.certificate_path = state_dir + "/" + kCertificateFile;
  if (const Status made = config::MakeDirectory(state_dir, 0755); !made.ok()) return StateFailure(made.error());
  const std::string pem = CertificatePem(result.aik_certificate);
  if (const Status wrote = config::WriteFileAtomic(record.certificate_path, AsBytes(pem), 0644); !wrote.ok())
    return StateFailure(wrote.error());
  if (const Status wrote = config::SaveEnrollment(config::EnrollmentPath(state_dir), record); !wrote.ok())
    return StateFailure(wrote.error());
  return std::nullopt;
}

}  // namespace assay::enroll
