// SPDX-License-Identifier: Apache-2.0
// Certificates for tests of TLS: a self-signed one for given names, in a fresh directory that goes with it.
#pragma once

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <filesystem>
#include <string>

#include "sdk/core/crypto.h"
#include "tests/support/temp_dir.h"

namespace assay::test {

struct CertificateFiles {
  std::string certificate, key;  // paths
  Digest spki{};
};

// `names` as X.509 text: "DNS:localhost,IP:127.0.0.1". `curve`: "P-256" and so on. `days` may be negative: expired.
inline CertificateFiles MakeCertificate(const TempDir& dir, const std::string& stem, const std::string& names,
                                        const char* curve = "P-256", long days = 2) {
  using X509Ptr = Handle<X509, X509_free>;
  const EvpPkey key(EVP_EC_gen(curve));
  const X509Ptr certificate(X509_new());
  X509* raw = certificate.get();
  X509_set_version(raw, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(raw), 1);
  X509_gmtime_adj(X509_getm_notBefore(raw), -3 * 86400L);
  X509_gmtime_adj(X509_getm_notAfter(raw), days * 86400L);
  X509_set_pubkey(raw, key.get());
  X509_NAME_add_entry_by_txt(X509_get_subject_name(raw), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(stem.c_str()), -1, -1, 0);
  X509_set_issuer_name(raw, X509_get_subject_name(raw));
  for (const auto& [nid, value] :
       {std::pair{NID_subject_alt_name, names}, std::pair{NID_basic_constraints, std::string("critical,CA:TRUE")}}) {
    const Handle<X509_EXTENSION, X509_EXTENSION_free> extension(
        X509V3_EXT_conf_nid(nullptr, nullptr, nid, value.c_str()));
    if (extension == nullptr || X509_add_ext(raw, extension.get(), -1) != 1) std::abort();
  }
  if (X509_sign(raw, key.get(), EVP_sha256()) == 0) std::abort();
  CertificateFiles files{dir / (stem + ".pem"), dir / (stem + ".key"), {}};
  using BioPtr = Handle<BIO, BIO_free_all>;
  BioPtr out(BIO_new_file(files.certificate.c_str(), "w"));
  if (PEM_write_bio_X509(out.get(), raw) != 1) std::abort();
  out.reset(BIO_new_file(files.key.c_str(), "w"));
  if (PEM_write_bio_PKCS8PrivateKey(out.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1) std::abort();
  out.reset();
  namespace fs = std::filesystem;
  fs::permissions(files.key, fs::perms::owner_read | fs::perms::owner_write);
  EVP_PKEY_up_ref(key.get());
  files.spki = PublicKey::FromEvp(EvpPkey(key.get())).value().SpkiDigest();
  return files;
}

}  // namespace assay::test
