// SPDX-License-Identifier: Apache-2.0
// AIK certificates: built, signed and checked. RFC 5280 for the fields, TCG OIDs for the purpose.
#include "verifier/enrollment/ca.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include <algorithm>
#include <ctime>

namespace assay::enrollment {
namespace {

constexpr std::string_view kHostUri = "urn:assay:host:";
constexpr long kVersion3 = 2;  // RFC 5280 section 4.1.2.1
constexpr std::size_t kSerialBytes = 16;
constexpr std::int64_t kBackdate = 60;  // seconds: an endpoint's clock may be a little slow

using BigNum = Handle<BIGNUM, BN_free>;
using ExtensionHandle = Handle<X509_EXTENSION, X509_EXTENSION_free>;
using TimeHandle = Handle<ASN1_TIME, ASN1_TIME_free>;
using NamesHandle = Handle<GENERAL_NAMES, GENERAL_NAMES_free>;

Error CryptoError(std::string_view what) {
  return MakeError(Code::kCrypto, std::string(what) + " (" + OpenSslErrorText() + ")");
}

// 128 random bits, positive (RFC 5280 section 4.1.2.2): a zero byte in front keeps the sign off.
Status SetSerial(X509* certificate) {
  auto bytes = RandomArray<kSerialBytes + 1>();
  bytes[0] = 0;
  const BigNum number{BN_bin2bn(bytes.data(), static_cast<int>(bytes.size()), nullptr)};
  if (!number || BN_is_zero(number.get()) ||
      BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) == nullptr) {
    return CryptoError("serial number");
  }
  return Ok();
}

Status SetTimes(X509* certificate, std::int64_t from, std::int64_t to) {
  const TimeHandle before{ASN1_TIME_set(nullptr, from)};
  const TimeHandle after{ASN1_TIME_set(nullptr, to)};
  if (!before || !after || X509_set1_notBefore(certificate, before.get()) != 1 ||
      X509_set1_notAfter(certificate, after.get()) != 1) {
    return CryptoError("validity");
  }
  return Ok();
}

Status AddExtension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX ctx;
  X509V3_set_ctx_nodb(&ctx);
  X509V3_set_ctx(&ctx, issuer, certificate, nullptr, nullptr, 0);
  const ExtensionHandle extension{X509V3_EXT_conf_nid(nullptr, &ctx, nid, value.c_str())};
  if (!extension || X509_add_ext(certificate, extension.get(), -1) != 1) return CryptoError(OBJ_nid2sn(nid));
  return Ok();
}

Status SetName(X509* certificate, std::string_view common_name) {
  X509_NAME* name = X509_get_subject_name(certificate);
  if (X509_NAME_add_entry_by_NID(name, NID_commonName, MBSTRING_UTF8,
                                 reinterpret_cast<const unsigned char*>(common_name.data()),
                                 static_cast<int>(common_name.size()), -1, 0) != 1) {
    return CryptoError("subject name");
  }
  return Ok();
}

Status SignWith(X509* certificate, const PrivateKey& key) {
  if (X509_sign(certificate, key.get(), EVP_sha256()) <= 0) return CryptoError("certificate signature");
  return Ok();
}

// The host id in the one URI that the subject alternative name may hold.
Result<Digest> HostOf(const X509* certificate) {
  const NamesHandle names{
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr))};
  if (!names || sk_GENERAL_NAME_num(names.get()) != 1)
    return MakeError(Code::kMalformed, "not exactly one subject alternative name");
  int type = 0;
  const auto* value =
      static_cast<const ASN1_STRING*>(GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names.get(), 0), &type));
  if (type != GEN_URI) return MakeError(Code::kMalformed, "the subject alternative name is no URI");
  const std::string_view uri(reinterpret_cast<const char*>(ASN1_STRING_get0_data(value)),
                             static_cast<std::size_t>(ASN1_STRING_length(value)));
  if (!uri.starts_with(kHostUri)) return MakeError(Code::kMalformed, "the URI names no host");
  ASSAY_TRY(const Buffer id, FromHex(uri.substr(kHostUri.size())));
  return ToDigest(id);
}

Result<std::int64_t> Seconds(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return CryptoError("certificate time");
  return static_cast<std::int64_t>(timegm(&parts));
}

Result<X509Handle> NewCertificate(const PublicKey& subject_key) {
  X509Handle certificate{X509_new()};
  if (!certificate || X509_set_version(certificate.get(), kVersion3) != 1 ||
      X509_set_pubkey(certificate.get(), subject_key.get()) != 1) {
    return CryptoError("certificate");
  }
  ASSAY_CHECK_OK(SetSerial(certificate.get()));
  return certificate;
}

}  // namespace

Result<std::int64_t> NotAfter(const X509* certificate) { return Seconds(X509_get0_notAfter(certificate)); }

Result<EnrollmentCa> EnrollmentCa::Create(std::string_view common_name, std::int64_t now, std::int64_t lifetime) {
  ASSAY_TRY(PrivateKey key, PrivateKey::Generate(KeyType::kP256));
  ASSAY_TRY(const PublicKey subject, key.Public());
  ASSAY_TRY(X509Handle certificate, NewCertificate(subject));
  X509* const raw = certificate.get();
  ASSAY_CHECK_OK(SetName(raw, common_name));
  if (X509_set_issuer_name(raw, X509_get_subject_name(raw)) != 1) return CryptoError("issuer name");
  ASSAY_CHECK_OK(SetTimes(raw, now - kBackdate, now + lifetime));
  ASSAY_CHECK_OK(AddExtension(raw, raw, NID_basic_constraints, "critical,CA:TRUE,pathlen:0"));
  ASSAY_CHECK_OK(AddExtension(raw, raw, NID_key_usage, "critical,keyCertSign"));
  ASSAY_CHECK_OK(AddExtension(raw, raw, NID_subject_key_identifier, "hash"));
  ASSAY_CHECK_OK(SignWith(raw, key));
  return EnrollmentCa(std::move(certificate), std::move(key));
}

Result<EnrollmentCa> EnrollmentCa::Load(std::string_view certificate_pem, std::string_view key_pem) {
  const BioHandle bio{BIO_new_mem_buf(certificate_pem.data(), static_cast<int>(certificate_pem.size()))};
  X509Handle certificate{bio ? PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr) : nullptr};
  if (!certificate)
    return MakeError(Code::kConfig, "the enrollment CA's certificate does not parse (" + OpenSslErrorText() + ")");
  ASSAY_TRY(PrivateKey key, PrivateKey::FromPem(key_pem));
  if (key.type() != KeyType::kP256) return MakeError(Code::kConfig, "the enrollment CA's key must be P-256");
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    (void)OpenSslErrorText();
    return MakeError(Code::kConfig, "the enrollment CA's certificate belongs to another key");
  }
  if (X509_check_ca(certificate.get()) != 1)
    return MakeError(Code::kConfig, "the enrollment CA's certificate is not a CA certificate");
  return EnrollmentCa(std::move(certificate), std::move(key));
}

Result<Buffer> EnrollmentCa::Issue(const AikCertificateRequest& request) const {
  const KeyType type = request.aik->type();
  if (type != KeyType::kRsa2048 && type != KeyType::kP256)
    return MakeError(Code::kUnsupported, "AIK certificates are issued for RSA-2048 and P-256");
  ASSAY_TRY(const std::int64_t ca_end, NotAfter(certificate_.get()));
  if (ca_end <= request.now)
    return MakeError(Code::kConfig, "the enrollment CA's certificate has expired: give the verifier a new one");
  ASSAY_TRY(X509Handle certificate, NewCertificate(*request.aik));
  X509* const raw = certificate.get();
  X509* const issuer = certificate_.get();
  const std::string host = ToHex(request.host_id);
  ASSAY_CHECK_OK(SetName(raw, "assay host " + host.substr(0, 16)));
  if (X509_set_issuer_name(raw, X509_get_subject_name(issuer)) != 1) return CryptoError("issuer name");
  ASSAY_CHECK_OK(SetTimes(raw, request.now - kBackdate, std::min(request.now + request.lifetime, ca_end)));
  ASSAY_CHECK_OK(AddExtension(raw, issuer, NID_basic_constraints, "critical,CA:FALSE"));
  ASSAY_CHECK_OK(AddExtension(raw, issuer, NID_key_usage, "critical,digitalSignature"));
  ASSAY_CHECK_OK(AddExtension(raw, issuer, NID_ext_key_usage, kOidAikCertificate));
  ASSAY_CHECK_OK(AddExtension(raw, issuer, NID_subject_alt_name, "URI:" + std::string(kHostUri) + host));
  ASSAY_CHECK_OK(AddExtension(raw, issuer, NID_authority_key_identifier, "keyid"));
  ASSAY_CHECK_OK(SignWith(raw, key_));
  return CertificateDer(raw);
}

AikCertificateVerdict EnrollmentCa::Check(Bytes der, std::int64_t now) const {
  const auto refuse = [](AikCertificateOutcome outcome, std::string detail) {
    return AikCertificateVerdict{outcome, std::move(detail), {}, {}, 0};
  };
  const Result<X509Handle> parsed = ParseCertificate(der);
  if (!parsed.ok()) return refuse(AikCertificateOutcome::kMalformed, parsed.error().detail);
  X509* const certificate = parsed->get();
  // The signature first: nothing of the content is used before it passed.
  if (X509_NAME_cmp(X509_get_issuer_name(certificate), X509_get_subject_name(certificate_.get())) != 0 ||
      X509_verify(certificate, key_.get()) != 1) {
    (void)OpenSslErrorText();
    return refuse(AikCertificateOutcome::kForeign, "the certificate was not issued by this CA");
  }
  if ((X509_get_extension_flags(certificate) & EXFLAG_CA) != 0 ||
      PurposeOf(certificate, kOidAikCertificate) != KeyPurpose::kAllowed) {
    return refuse(AikCertificateOutcome::kNotForAik, "the certificate is not for an attestation key");
  }
  const Result<Digest> host = HostOf(certificate);
  if (!host.ok()) return refuse(AikCertificateOutcome::kNotForAik, host.error().detail);
  EvpPkey key{X509_get_pubkey(certificate)};
  const Result<PublicKey> aik = key ? PublicKey::FromEvp(std::move(key)) : Result<PublicKey>(CryptoError("AIK"));
  if (!aik.ok()) return refuse(AikCertificateOutcome::kNotForAik, aik.error().detail);
  const Result<std::int64_t> from = Seconds(X509_get0_notBefore(certificate));
  const Result<std::int64_t> to = NotAfter(certificate);
  if (!from.ok() || !to.ok()) return refuse(AikCertificateOutcome::kMalformed, "the certificate's times do not parse");
  if (now < *from)
    return refuse(AikCertificateOutcome::kNotYetValid, "the certificate begins at " + std::to_string(*from));
  if (now >= *to) return refuse(AikCertificateOutcome::kExpired, "the certificate ended at " + std::to_string(*to));
  return {AikCertificateOutcome::kValid, {}, *host, aik->SpkiDigest(), *to};
}

std::string EnrollmentCa::CertificatePem() const {
  const BioHandle bio{BIO_new(BIO_s_mem())};
  if (!bio || PEM_write_bio_X509(bio.get(), certificate_.get()) != 1) return {};
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return std::string(data, static_cast<std::size_t>(size));
}

}  // namespace assay::enrollment
