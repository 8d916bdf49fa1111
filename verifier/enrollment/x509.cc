// SPDX-License-Identifier: Apache-2.0
// Certificates from bytes and to text. Judges nothing.
#include "verifier/enrollment/x509.h"

#include <openssl/err.h>

#include "sdk/core/crypto.h"
#include "sdk/core/limits.h"

namespace assay::enrollment {
namespace {

using ObjectHandle = Handle<ASN1_OBJECT, ASN1_OBJECT_free>;
using PurposesHandle = Handle<EXTENDED_KEY_USAGE, EXTENDED_KEY_USAGE_free>;

}  // namespace

Result<X509Handle> ParseCertificate(Bytes der) {
  if (der.size() > limits::kCertificate)
    return MakeError(Code::kLimit, "a certificate is over " + std::to_string(limits::kCertificate) + " bytes");
  const unsigned char* at = der.data();
  X509Handle certificate{der.empty() ? nullptr : d2i_X509(nullptr, &at, static_cast<long>(der.size()))};
  if (!certificate) return MakeError(Code::kMalformed, "a certificate does not parse (" + OpenSslErrorText() + ")");
  if (at != der.data() + der.size()) return MakeError(Code::kMalformed, "a certificate is followed by stray bytes");
  return certificate;
}

Result<Buffer> CertificateDer(const X509* certificate) {
  unsigned char* raw = nullptr;
  const int size = i2d_X509(certificate, &raw);
  if (size <= 0) return MakeError(Code::kCrypto, "a certificate does not encode (" + OpenSslErrorText() + ")");
  Buffer der(raw, raw + size);
  OPENSSL_free(raw);
  return der;
}

std::string NameText(const X509_NAME* name) {
  const BioHandle bio{BIO_new(BIO_s_mem())};
  if (!bio || X509_NAME_print_ex(bio.get(), name, 0, XN_FLAG_RFC2253) < 0) return "(unreadable name)";
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  std::string text(data, static_cast<std::size_t>(size));
  return text.empty() ? "(empty name)" : text;
}

KeyPurpose PurposeOf(const X509* certificate, const char* oid) {
  int critical = -1;
  const PurposesHandle purposes{
      static_cast<EXTENDED_KEY_USAGE*>(X509_get_ext_d2i(certificate, NID_ext_key_usage, &critical, nullptr))};
  // -1: absent. -2: there twice; 0 or more with nothing decoded: broken. Both forbid.
  if (!purposes) return critical == -1 ? KeyPurpose::kUnstated : KeyPurpose::kForbidden;
  const ObjectHandle wanted{OBJ_txt2obj(oid, 1)};
  for (int i = 0; wanted && i < sk_ASN1_OBJECT_num(purposes.get()); ++i) {
    if (OBJ_cmp(sk_ASN1_OBJECT_value(purposes.get(), i), wanted.get()) == 0) return KeyPurpose::kAllowed;
  }
  return KeyPurpose::kForbidden;
}

}  // namespace assay::enrollment
