// SPDX-License-Identifier: Apache-2.0
#include "verifier/server/key_files.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <filesystem>

#include "sdk/config/files.h"

namespace assay::server {
namespace {

using X509Handle = Handle<X509, X509_free>;
using ExtensionHandle = Handle<X509_EXTENSION, X509_EXTENSION_free>;
using NumberHandle = Handle<BIGNUM, BN_free>;
using BioHandle = Handle<BIO, BIO_free_all>;

constexpr std::size_t kMaxKeyFile = 8192;
constexpr std::size_t kMasterSize = 32;
constexpr std::size_t kMaxOldKeys = 8;

// kNotFound: there is no such file.
Result<PrivateKey> LoadSigning(const std::string& path) {
  ASSAY_TRY(const Secret pem, config::ReadSecretFile(path, kMaxKeyFile));
  auto key = PrivateKey::FromPem(AsText(pem.view()));
  if (!key.ok()) return MakeError(Code::kConfig, path + ": " + key.error().detail);
  if (key->type() != KeyType::kP256)
    return MakeError(Code::kConfig, path + ": the result signing key must be EC P-256");
  return key;
}

Result<PrivateKey> LoadOrCreateSigning(const std::string& path) {
  auto existing = LoadSigning(path);
  if (existing.ok() || existing.error().code != Code::kNotFound) return existing;
  ASSAY_TRY(PrivateKey key, PrivateKey::Generate(KeyType::kP256));
  ASSAY_CHECK_OK(config::CreateFile(path, key.Pem().view(), 0600));
  return key;
}

Result<Secret> LoadMaster(const std::string& path) {
  ASSAY_TRY(const Secret content, config::ReadSecretFile(path, kMaxKeyFile));
  std::string_view text = AsText(content.view());
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  const auto bytes = FromHex(text);
  if (!bytes.ok() || bytes->size() != kMasterSize)
    return MakeError(Code::kConfig, path + ": must hold 64 hexadecimal digits");
  return Secret::CopyOf(*bytes);
}

Result<Secret> LoadOrCreateMaster(const std::string& path) {
  auto existing = LoadMaster(path);
  if (existing.ok() || existing.error().code != Code::kNotFound) return existing;
  const auto master = RandomArray<kMasterSize>();
  ASSAY_CHECK_OK(config::CreateFile(path, AsBytes(ToHex(master) + "\n"), 0600));
  return Secret::CopyOf(master);
}

Status LoadOldKeys(const std::string& directory, std::vector<PublicKey>& keys) {
  std::error_code failed;
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(directory, failed)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("result-old-") && name.ends_with(".pem")) paths.push_back(entry.path());
  }
  if (failed) return MakeError(Code::kIo, directory + ": cannot list: " + failed.message());
  if (paths.size() > kMaxOldKeys)
    return MakeError(Code::kConfig, directory + ": more than 8 old result keys; remove those that no token uses");
  std::sort(paths.begin(), paths.end());
  for (const auto& path : paths) {
    ASSAY_TRY(const std::string pem, config::ReadTextFile(path, kMaxKeyFile));
    auto key = PublicKey::FromPem(pem);
    if (!key.ok()) return MakeError(Code::kConfig, path + ": " + key.error().detail);
    keys.push_back(*std::move(key));
  }
  return Ok();
}

Error X509Error(const char* what) {
  return MakeError(Code::kCrypto, std::string(what) + " (" + OpenSslErrorText() + ")");
}

Status AddExtension(X509* certificate, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  const ExtensionHandle extension{X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str())};
  if (!extension || X509_add_ext(certificate, extension.get(), -1) != 1) return X509Error("a certificate extension");
  return Ok();
}

// Names go into an OpenSSL configuration string: only what a host name or an address is made of.
Result<std::string> AlternativeNames(const std::vector<std::string>& names) {
  std::string text;
  for (const auto& name : names) {
    const bool plain = !name.empty() && name.size() <= 253 && std::all_of(name.begin(), name.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
             c == ':';
    });
    if (!plain) return MakeError(Code::kMalformed, "\"" + name + "\" is neither a host name nor an address");
    unsigned char address[16];
    const bool ip =
        ::inet_pton(AF_INET, name.c_str(), address) == 1 || ::inet_pton(AF_INET6, name.c_str(), address) == 1;
    if (!text.empty()) text += ',';
    text += (ip ? "IP:" : "DNS:") + name;
  }
  if (text.empty()) return MakeError(Code::kMalformed, "a TLS certificate needs at least one name");
  return text;
}

Status FillCertificate(X509* certificate, const PrivateKey& key, const std::string& subject, std::int64_t now,
                       std::int64_t lifetime_s) {
  auto serial = RandomArray<16>();
  serial[0] &= 0x7F;
  const NumberHandle number{BN_bin2bn(serial.data(), static_cast<int>(serial.size()), nullptr)};
  X509_NAME* name = X509_get_subject_name(certificate);
  if (!number || BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) == nullptr ||
      X509_set_version(certificate, X509_VERSION_3) != 1 ||
      ASN1_TIME_set(X509_getm_notBefore(certificate), now - 3600) == nullptr ||
      ASN1_TIME_set(X509_getm_notAfter(certificate), now + lifetime_s) == nullptr ||
      X509_set_pubkey(certificate, key.get()) != 1 ||
      X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, AsBytes(subject).data(), static_cast<int>(subject.size()),
                                 -1, 0) != 1 ||
      X509_set_issuer_name(certificate, name) != 1) {
    return X509Error("a certificate could not be built");
  }
  return Ok();
}

}  // namespace

Result<token::IssuerKeys> LoadOrCreateIssuerKeys(const std::string& directory) {
  ASSAY_CHECK_OK(config::MakeDirectory(directory, 0700));
  ASSAY_TRY(PrivateKey signing, LoadOrCreateSigning(directory + "/result.pem"));
  ASSAY_TRY(Secret master, LoadOrCreateMaster(directory + "/device.key"));
  token::IssuerKeys keys{
      .signing = std::move(signing), .also_published = {}, .device_master = std::move(master), .device_key_version = 1};
  ASSAY_CHECK_OK(LoadOldKeys(directory, keys.also_published));
  return keys;
}

Status CheckIssuerKeys(const std::string& directory) {
  const auto signing = LoadSigning(directory + "/result.pem");
  if (!signing.ok() && signing.error().code != Code::kNotFound) return signing.error();
  const auto master = LoadMaster(directory + "/device.key");
  if (!master.ok() && master.error().code != Code::kNotFound) return master.error();
  return Ok();
}

Result<TlsIdentity> MakeTlsIdentity(const std::vector<std::string>& names, std::int64_t now, std::int64_t lifetime_s) {
  ASSAY_TRY(const std::string alternative, AlternativeNames(names));
  ASSAY_TRY(const PrivateKey key, PrivateKey::Generate(KeyType::kP256));
  const X509Handle certificate{X509_new()};
  if (!certificate) return X509Error("no memory for a certificate");
  ASSAY_CHECK_OK(FillCertificate(certificate.get(), key, "assay-verifier " + names.front(), now, lifetime_s));
  ASSAY_CHECK_OK(AddExtension(certificate.get(), NID_basic_constraints, "critical,CA:FALSE"));
  ASSAY_CHECK_OK(AddExtension(certificate.get(), NID_key_usage, "critical,digitalSignature"));
  ASSAY_CHECK_OK(AddExtension(certificate.get(), NID_ext_key_usage, "serverAuth"));
  ASSAY_CHECK_OK(AddExtension(certificate.get(), NID_subject_alt_name, alternative));
  if (X509_sign(certificate.get(), key.get(), EVP_sha256()) == 0) return X509Error("a certificate could not be signed");
  const BioHandle bio{BIO_new(BIO_s_mem())};
  if (!bio || PEM_write_bio_X509(bio.get(), certificate.get()) != 1)
    return X509Error("a certificate could not be written");
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return TlsIdentity{std::string(data, static_cast<std::size_t>(size)), key.Pem()};
}

}  // namespace assay::server
