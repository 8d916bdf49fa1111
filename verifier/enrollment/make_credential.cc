// SPDX-License-Identifier: Apache-2.0
#include "verifier/enrollment/make_credential.h"

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/hmac.h>
#include <openssl/params.h>

#include <array>
#include <cstdlib>
#include <string>

namespace assay::enrollment {
namespace {

constexpr std::string_view kIdentity = "IDENTITY";
constexpr std::string_view kStorage = "STORAGE";
constexpr std::string_view kIntegrity = "INTEGRITY";
constexpr std::size_t kMaxDigest = 48;  // SHA-384

using CipherCtx = Handle<EVP_CIPHER_CTX, EVP_CIPHER_CTX_free>;

// What the EK's template fixes: the hash of its name algorithm and the cipher of its children.
struct Suite {
  KeyType key;
  const EVP_MD* hash;
  std::size_t digest;
  const EVP_CIPHER* cipher;  // CFB over whole bytes
  std::size_t cipher_key;
};

const EVP_CIPHER* Aes128Cfb() {  // fetched once for the process
  static const EVP_CIPHER* const cipher = EVP_CIPHER_fetch(nullptr, "AES-128-CFB", nullptr);
  if (cipher == nullptr) std::abort();
  return cipher;
}

Suite SuiteOf(tpm::EkKind kind) {
  switch (kind) {
    case tpm::EkKind::kRsa2048Low:
    case tpm::EkKind::kRsa2048High: return {KeyType::kRsa2048, EVP_sha256(), 32, Aes128Cfb(), 16};
    case tpm::EkKind::kEccP256Low:
    case tpm::EkKind::kEccP256High: return {KeyType::kP256, EVP_sha256(), 32, Aes128Cfb(), 16};
    case tpm::EkKind::kEccP384High: break;
  }
  return {KeyType::kP384, EVP_sha384(), 48, EVP_aes_256_cfb128(), 32};
}

Error CryptoError(std::string_view what) {
  return MakeError(Code::kCrypto, std::string(what) + " (" + OpenSslErrorText() + ")");
}

// Our own HMAC for SHA-256, which nearly every EK uses: the one-shot HMAC of OpenSSL 3 fetches its algorithms each time.
void Mac(const Suite& suite, Bytes key, std::initializer_list<Bytes> parts, MutableBytes out) {
  if (suite.digest == kSha256Size) return CopyBytes(HmacSha256(key, parts), out.first(kSha256Size));
  Buffer joined;
  for (const Bytes part : parts) joined.insert(joined.end(), part.begin(), part.end());
  unsigned length = 0;
  if (HMAC(suite.hash, key.data(), static_cast<int>(key.size()), joined.data(), joined.size(), out.data(), &length) ==
          nullptr ||
      length != suite.digest)
    std::abort();
}

// KDFa (Part 1, section 11.4.10.2) for one block of output: enough for every key here.
Secret Kdfa(const Suite& suite, Bytes key, std::string_view label, Bytes context_u, std::size_t size) {
  Writer input(64 + context_u.size());
  input.U32Be(1);
  input.Put(AsBytes(label));
  input.U8(0);
  input.Put(context_u);
  input.U32Be(static_cast<std::uint32_t>(8 * size));
  std::array<std::uint8_t, kMaxDigest> block{};
  Mac(suite, key, {input.buffer()}, block);
  Secret out = Secret::CopyOf(Bytes(block).first(size));
  OPENSSL_cleanse(block.data(), block.size());
  return out;
}

// KDFe (Part 1, section 11.4.10.3) for one block.
Secret Kdfe(const Suite& suite, Bytes z, std::string_view label, Bytes party_u, Bytes party_v) {
  Writer rest(160);
  rest.Put(AsBytes(label));
  rest.U8(0);
  rest.Put(party_u);
  rest.Put(party_v);
  static constexpr std::array<std::uint8_t, 4> kCounter = {0, 0, 0, 1};
  Secret out(suite.digest);
  const EvpMdCtx ctx{EVP_MD_CTX_new()};
  if (!ctx || EVP_DigestInit_ex(ctx.get(), suite.hash, nullptr) != 1 ||
      EVP_DigestUpdate(ctx.get(), kCounter.data(), kCounter.size()) != 1 ||
      EVP_DigestUpdate(ctx.get(), z.data(), z.size()) != 1 ||
      EVP_DigestUpdate(ctx.get(), rest.buffer().data(), rest.size()) != 1 ||
      EVP_DigestFinal_ex(ctx.get(), out.fill().data(), nullptr) != 1) {
    std::abort();
  }
  return out;
}

struct Seed {
  Secret seed;
  Buffer encrypted;
};  // encrypted: what a TPM2B_ENCRYPTED_SECRET holds

// Annex B.10.4: OAEP with the name algorithm and the label, its terminating zero included.
Result<Seed> RsaSeed(const Suite& suite, const PublicKey& ek) {
  Secret seed(suite.digest);
  RandomBytes(seed.fill());
  // All parameters at once; the mask's hash is the name algorithm too, as it is by default.
  std::array<char, 5> mode = {'o', 'a', 'e', 'p', '\0'};
  std::string hash = EVP_MD_get0_name(suite.hash);
  std::string label(kIdentity);
  const std::array<OSSL_PARAM, 4> parameters = {
      OSSL_PARAM_construct_utf8_string(OSSL_ASYM_CIPHER_PARAM_PAD_MODE, mode.data(), 0),
      OSSL_PARAM_construct_utf8_string(OSSL_ASYM_CIPHER_PARAM_OAEP_DIGEST, hash.data(), 0),
      OSSL_PARAM_construct_octet_string(OSSL_ASYM_CIPHER_PARAM_OAEP_LABEL, label.data(), label.size() + 1),
      OSSL_PARAM_construct_end()};
  const EvpPkeyCtx ctx{EVP_PKEY_CTX_new(ek.get(), nullptr)};
  if (!ctx || EVP_PKEY_encrypt_init_ex(ctx.get(), parameters.data()) != 1) return CryptoError("OAEP");
  Buffer encrypted(static_cast<std::size_t>(EVP_PKEY_get_size(ek.get())));
  std::size_t size = encrypted.size();
  if (EVP_PKEY_encrypt(ctx.get(), encrypted.data(), &size, seed.view().data(), seed.view().size()) != 1)
    return CryptoError("OAEP");
  encrypted.resize(size);
  return Seed{std::move(seed), std::move(encrypted)};
}

// Annex C.6.4: one-pass ECDH with an ephemeral key, whose point is the encrypted secret.
Result<Seed> EccSeed(const Suite& suite, const PublicKey& ek) {
  ASSAY_TRY(const PrivateKey ephemeral, PrivateKey::Generate(suite.key));
  ASSAY_TRY(const PublicKey ephemeral_public, ephemeral.Public());
  ASSAY_TRY(const PublicKey::Coordinates own, ephemeral_public.Point());
  ASSAY_TRY(const PublicKey::Coordinates theirs, ek.Point());
  const EvpPkeyCtx ctx{EVP_PKEY_CTX_new(ephemeral.get(), nullptr)};
  Secret z(theirs.x.size());
  std::size_t size = z.view().size();
  if (!ctx || EVP_PKEY_derive_init(ctx.get()) != 1 || EVP_PKEY_derive_set_peer(ctx.get(), ek.get()) != 1 ||
      EVP_PKEY_derive(ctx.get(), z.fill().data(), &size) != 1 || size != z.view().size()) {
    return CryptoError("ECDH");
  }
  Writer point(4 + own.x.size() + own.y.size());
  point.PutU16Sized(own.x);
  point.PutU16Sized(own.y);
  return Seed{Kdfe(suite, z.view(), kIdentity, own.x, theirs.x), std::move(point).Take()};
}

Result<Buffer> EncryptCfb(const Suite& suite, Bytes key, Bytes plain) {
  static constexpr std::array<std::uint8_t, 16> kZeroIv{};
  const CipherCtx ctx{EVP_CIPHER_CTX_new()};
  Buffer out(plain.size());
  int size = 0;
  if (!ctx || EVP_EncryptInit_ex2(ctx.get(), suite.cipher, key.data(), kZeroIv.data(), nullptr) != 1 ||
      EVP_EncryptUpdate(ctx.get(), out.data(), &size, plain.data(), static_cast<int>(plain.size())) != 1) {
    return CryptoError("AES-CFB");
  }
  return out;
}

}  // namespace

Result<MadeCredential> MakeCredential(tpm::EkKind kind, const PublicKey& ek, Bytes name, Bytes secret) {
  const Suite suite = SuiteOf(kind);
  if (ek.type() != suite.key) return MakeError(Code::kUnsupported, "the EK's key does not fit its kind");
  if (secret.size() > suite.digest)
    return MakeError(Code::kLimit, "a credential's secret is longer than the EK's digest");
  ASSAY_TRY(const Seed seed, suite.key == KeyType::kRsa2048 ? RsaSeed(suite, ek) : EccSeed(suite, ek));
  // Section 24.4: the secret as TPM2B_DIGEST, encrypted; then a MAC over it and the Name.
  Secret plain(2 + secret.size());
  plain.fill()[0] = 0;
  plain.fill()[1] = static_cast<std::uint8_t>(secret.size());
  CopyBytes(secret, plain.fill().subspan(2));
  const Secret storage = Kdfa(suite, seed.seed.view(), kStorage, name, suite.cipher_key);
  ASSAY_TRY(const Buffer identity, EncryptCfb(suite, storage.view(), plain.view()));
  const Secret integrity = Kdfa(suite, seed.seed.view(), kIntegrity, {}, suite.digest);
  std::array<std::uint8_t, kMaxDigest> mac{};
  Mac(suite, integrity.view(), {identity, name}, mac);
  Writer object(2 + suite.digest + identity.size());
  object.PutU16Sized(Bytes(mac).first(suite.digest));
  object.Put(identity);
  Writer blob, encrypted;
  blob.PutU16Sized(object.buffer());
  encrypted.PutU16Sized(seed.encrypted);
  return MadeCredential{std::move(blob).Take(), std::move(encrypted).Take()};
}

}  // namespace assay::enrollment
