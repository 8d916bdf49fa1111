// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/enrollment/cert_maker.h"

#include <doctest/doctest.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

namespace assay::test {
namespace {

using ExtensionHandle = Handle<X509_EXTENSION, X509_EXTENSION_free>;
using ObjectHandle = Handle<ASN1_OBJECT, ASN1_OBJECT_free>;
using OctetsHandle = Handle<ASN1_OCTET_STRING, ASN1_OCTET_STRING_free>;
using ConfHandle = Handle<CONF, NCONF_free>;

// The directory name that TCG EK certificates carry in their critical subject alternative name. OpenSSL drops what
// stands before the first dot, so that a name may stand there twice.
constexpr char kTcgNames[] = "[tpm]\n1.2.23.133.2.1=id:00001014\n2.2.23.133.2.2=swtpm\n3.2.23.133.2.3=id:20191023\n";

}  // namespace

Cert MakeCert(const CertSpec& spec, const PublicKey& subject_key, const Cert* issuer, const PrivateKey& issuer_key) {
  Cert out;
  out.x509.reset(X509_new());
  X509* x = out.x509.get();
  REQUIRE(X509_set_version(x, 2) == 1);
  const auto serial = RandomArray<8>();
  ASN1_INTEGER_set_uint64(X509_get_serialNumber(x), Reader(serial).U64Be() >> 1);
  REQUIRE(X509_set_pubkey(x, subject_key.get()) == 1);
  if (spec.oaep)
    REQUIRE(X509_PUBKEY_set0_param(X509_get_X509_PUBKEY(x), OBJ_nid2obj(NID_rsaesOaep), V_ASN1_NULL, nullptr, nullptr,
                                   0) == 1);
  if (!spec.subject.empty()) {
    REQUIRE(X509_NAME_add_entry_by_NID(X509_get_subject_name(x), NID_commonName, MBSTRING_UTF8,
                                       reinterpret_cast<const unsigned char*>(spec.subject.data()),
                                       static_cast<int>(spec.subject.size()), -1, 0) == 1);
  }
  X509* const signer = issuer == nullptr ? x : issuer->x509.get();
  REQUIRE(X509_set_issuer_name(x, X509_get_subject_name(signer)) == 1);
  ASN1_TIME_set(X509_getm_notBefore(x), spec.from);
  ASN1_TIME_set(X509_getm_notAfter(x), spec.to);
  const ConfHandle conf{NCONF_new(nullptr)};
  const enrollment::BioHandle names{BIO_new_mem_buf(kTcgNames, -1)};
  long line = 0;
  REQUIRE(NCONF_load_bio(conf.get(), names.get(), &line) == 1);
  for (const auto& [nid, value] : spec.extensions) {
    X509V3_CTX ctx;
    X509V3_set_ctx(&ctx, signer, x, nullptr, nullptr, 0);
    X509V3_set_nconf(&ctx, conf.get());
    const ExtensionHandle extension{X509V3_EXT_nconf_nid(conf.get(), &ctx, nid, value.c_str())};
    REQUIRE_MESSAGE(extension, OpenSslErrorText());
    REQUIRE(X509_add_ext(x, extension.get(), -1) == 1);
  }
  for (const std::string& oid : spec.raw_critical) {
    const ObjectHandle object{OBJ_txt2obj(oid.c_str(), 1)};
    const OctetsHandle content{ASN1_OCTET_STRING_new()};
    ASN1_OCTET_STRING_set(content.get(), reinterpret_cast<const unsigned char*>("\x05\x00"), 2);
    const ExtensionHandle extension{X509_EXTENSION_create_by_OBJ(nullptr, object.get(), 1, content.get())};
    REQUIRE(X509_add_ext(x, extension.get(), -1) == 1);
  }
  REQUIRE(X509_sign(x, issuer_key.get(), spec.hash == nullptr ? EVP_sha256() : spec.hash) > 0);
  out.der = enrollment::CertificateDer(x).value();
  const enrollment::BioHandle pem{BIO_new(BIO_s_mem())};
  REQUIRE(PEM_write_bio_X509(pem.get(), x) == 1);
  char* data = nullptr;
  const long size = BIO_get_mem_data(pem.get(), &data);
  out.pem.assign(data, static_cast<std::size_t>(size));
  return out;
}

CertSpec CaSpec(std::string subject, int path_length) {
  CertSpec spec;
  spec.subject = std::move(subject);
  const std::string length = path_length < 0 ? "" : ",pathlen:" + std::to_string(path_length);
  spec.extensions = {{NID_basic_constraints, "critical,CA:TRUE" + length}, {NID_key_usage, "critical,keyCertSign"}};
  return spec;
}

CertSpec EkSpec() {
  CertSpec spec;
  spec.subject.clear();
  spec.extensions = {{NID_basic_constraints, "critical,CA:FALSE"},
                     {NID_subject_alt_name, "critical,dirName:tpm"},
                     {NID_ext_key_usage, "critical,2.23.133.8.1"},
                     {NID_key_usage, "critical,keyEncipherment"}};
  return spec;
}

}  // namespace assay::test
