// SPDX-License-Identifier: Apache-2.0
// Certificates as TPMs hold them, and the operator's bundle of roots. The judgement is in check_ek_chain.cc.
#include "verifier/enrollment/ek_chain.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include <algorithm>
#include <vector>

#include "sdk/core/limits.h"

namespace assay::enrollment {
namespace {

constexpr std::uint16_t kStoredCertificate = 0x1001;  // TCG_TAG_PCCLIENT_STORED_CERT
constexpr std::uint16_t kFullCertificate = 0x1002;    // TCG_TAG_PCCLIENT_FULL_CERT
constexpr std::size_t kMaxBundle = 1024;              // certificates of one bundle

// Size of the outer SEQUENCE with its head (X.690 section 8.1.3, definite forms up to two octets of length).
std::size_t OuterSize(Bytes der) {
  Reader reader(der);
  if (reader.U8() != 0x30) return 0;
  const std::uint8_t first = reader.U8();
  std::size_t length = first;
  if (first == 0x81) length = reader.U8();
  else if (first == 0x82) length = reader.U16Be();
  else if (first >= 0x80) return 0;
  reader.Skip(length);
  return reader.ok() ? reader.position() : 0;
}

Result<std::vector<X509Handle>> ReadPem(std::string_view pem, std::string_view what) {
  std::vector<X509Handle> out;
  const BioHandle bio{BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()))};
  if (!bio) return MakeError(Code::kCrypto, OpenSslErrorText());
  while (true) {
    X509Handle certificate{PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)};
    if (!certificate) break;
    if (out.size() == kMaxBundle)
      return MakeError(Code::kLimit, std::string(what) + ": over " + std::to_string(kMaxBundle) + " certificates");
    out.push_back(std::move(certificate));
  }
  const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  const std::string text = OpenSslErrorText();
  if (!at_end)
    return MakeError(Code::kConfig, std::string(what) + ": certificate " + std::to_string(out.size() + 1) +
                                        " does not parse (" + text + ")");
  return out;
}

}  // namespace

Result<Bytes> TrimEkCertificate(Bytes raw) {
  if (raw.size() > limits::kCertificate)
    return MakeError(Code::kLimit, "an EK certificate is over " + std::to_string(limits::kCertificate) + " bytes");
  Bytes rest = raw;
  Reader head(raw);
  if (head.U16Be() == kStoredCertificate) {
    const std::uint8_t form = head.U8();
    const std::size_t length = head.U16Be();
    if (form != 0 || head.U16Be() != kFullCertificate || length < 2 || length - 2 > head.remaining()) {
      return MakeError(Code::kMalformed, "an EK certificate has a broken storage header");
    }
    rest = head.Rest();
  }
  const std::size_t size = OuterSize(rest);
  if (size == 0) return MakeError(Code::kMalformed, "an EK certificate is no whole DER SEQUENCE");
  const Bytes tail = rest.subspan(size);
  if (!std::all_of(tail.begin(), tail.end(), [&](std::uint8_t byte) { return byte == tail[0]; })) {
    return MakeError(Code::kMalformed, "an EK certificate is followed by bytes that are no padding");
  }
  return rest.first(size);
}

Result<X509Handle> ParseEkCertificate(Bytes raw) {
  ASSAY_TRY(const Bytes der, TrimEkCertificate(raw));
  return ParseCertificate(der);
}

Result<PublicKey> CertificateKey(const X509* certificate) {
  X509_ALGOR* algorithm = nullptr;
  const ASN1_OBJECT* oid = nullptr;
  const unsigned char* bits = nullptr;
  int size = 0;
  if (X509_PUBKEY_get0_param(nullptr, &bits, &size, &algorithm, X509_get_X509_PUBKEY(certificate)) != 1)
    return MakeError(Code::kMalformed, "the certificate holds no key");
  X509_ALGOR_get0(&oid, nullptr, nullptr, algorithm);
  // RFC 4055 section 4.1: with RSAES-OAEP the key itself is an RSAPublicKey as with rsaEncryption.
  EvpPkey key{OBJ_obj2nid(oid) == NID_rsaesOaep ? d2i_PublicKey(EVP_PKEY_RSA, nullptr, &bits, size)
                                                : X509_get_pubkey(const_cast<X509*>(certificate))};
  if (!key)
    return MakeError(Code::kUnsupported, "the certificate's key is of no known kind (" + OpenSslErrorText() + ")");
  return PublicKey::FromEvp(std::move(key));
}

Result<TrustBundle> TrustBundle::FromPem(std::string_view roots, std::string_view intermediates) {
  ASSAY_TRY(const std::vector<X509Handle> anchors, ReadPem(roots, "EK roots"));
  ASSAY_TRY(std::vector<X509Handle> extra, ReadPem(intermediates, "EK intermediates"));
  if (anchors.empty())
    return MakeError(Code::kConfig, "EK roots: no certificate in the bundle; give the manufacturers' roots in PEM");
  X509StoreHandle store{X509_STORE_new()};
  X509StackHandle path{sk_X509_new_null()};
  if (!store || !path) return MakeError(Code::kCrypto, OpenSslErrorText());
  for (const X509Handle& anchor : anchors) {
    if (X509_STORE_add_cert(store.get(), anchor.get()) != 1) return MakeError(Code::kCrypto, OpenSslErrorText());
  }
  for (X509Handle& certificate : extra) {
    if (sk_X509_push(path.get(), certificate.get()) <= 0) return MakeError(Code::kCrypto, OpenSslErrorText());
    (void)certificate.release();  // the stack owns it now
  }
  return TrustBundle(std::move(store), std::move(path), anchors.size());
}

std::string_view EkChainCode(EkChainOutcome outcome) noexcept {
  switch (outcome) {
    case EkChainOutcome::kTrusted: return "ek_trusted";
    case EkChainOutcome::kMalformed: return "ek_certificate_malformed";
    case EkChainOutcome::kUnsupportedKey: return "ek_key_unsupported";
    case EkChainOutcome::kWrongKeyType: return "ek_key_type";
    case EkChainOutcome::kKeyMismatch: return "ek_key_mismatch";
    case EkChainOutcome::kNotForEk: return "ek_certificate_purpose";
    case EkChainOutcome::kLeafIsCa: return "ek_certificate_is_ca";
    case EkChainOutcome::kExpired: return "ek_certificate_expired";
    case EkChainOutcome::kNoPath: return "ek_chain_untrusted";
    case EkChainOutcome::kBadPath: return "ek_chain_invalid";
    case EkChainOutcome::kWeakSignature: return "ek_chain_weak_signature";
  }
  return "ek_chain_untrusted";
}

}  // namespace assay::enrollment
