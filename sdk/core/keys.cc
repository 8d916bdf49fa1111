// SPDX-License-Identifier: Apache-2.0
// Public and private keys of crypto.h. A PublicKey pools verification contexts, because building one per
// signature costs 1-2 us beside an 18 us RSA verify.
#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "sdk/core/crypto.h"

namespace assay {
namespace {

using BigNum = Handle<BIGNUM, BN_free>;
using ParamBuilder = Handle<OSSL_PARAM_BLD, OSSL_PARAM_BLD_free>;
using Params = Handle<OSSL_PARAM, OSSL_PARAM_free>;
using EcdsaSig = Handle<ECDSA_SIG, ECDSA_SIG_free>;
using Bio = Handle<BIO, BIO_free_all>;

constexpr std::size_t kP256Field = 32;
constexpr std::size_t kP384Field = 48;
constexpr std::size_t kEd25519Size = 32;
constexpr std::size_t kMaxRsaBytes = 512;

Error CryptoError(std::string what) { return MakeError(Code::kCrypto, what + " (" + OpenSslErrorText() + ")"); }

Result<KeyType> TypeOf(const EVP_PKEY* key) {
  switch (EVP_PKEY_get_base_id(key)) {
    case EVP_PKEY_RSA: {
      const int bits = EVP_PKEY_get_bits(key);
      if (bits < 2048 || bits > 4096) return MakeError(Code::kUnsupported, "an RSA key must have 2048 to 4096 bits");
      return bits == 2048 ? KeyType::kRsa2048 : KeyType::kRsaOther;
    }
    case EVP_PKEY_EC: {
      std::array<char, 32> group{};
      std::size_t size = 0;
      if (EVP_PKEY_get_group_name(key, group.data(), group.size(), &size) != 1)
        return CryptoError("an EC key names no curve");
      const std::string_view name(group.data(), size);
      if (name == "prime256v1" || name == "P-256") return KeyType::kP256;
      if (name == "secp384r1" || name == "P-384") return KeyType::kP384;
      return MakeError(Code::kUnsupported, "EC keys are taken on P-256 and P-384 only");
    }
    case EVP_PKEY_ED25519: return KeyType::kEd25519;
    default: return MakeError(Code::kUnsupported, "keys are RSA, EC P-256, EC P-384 or Ed25519");
  }
}

Result<EvpPkey> BuildKey(const char* type, OSSL_PARAM* params) {
  const EvpPkeyCtx ctx{EVP_PKEY_CTX_new_from_name(nullptr, type, nullptr)};
  EVP_PKEY* raw = nullptr;
  if (!ctx || EVP_PKEY_fromdata_init(ctx.get()) != 1 ||
      EVP_PKEY_fromdata(ctx.get(), &raw, EVP_PKEY_PUBLIC_KEY, params) != 1) {
    return CryptoError("a public key does not parse");
  }
  return EvpPkey(raw);
}

Result<EvpPkey> BuildEc(const char* group, std::size_t field, Bytes x, Bytes y) {
  if (x.size() != field || y.size() != field) return MakeError(Code::kMalformed, "an EC coordinate has the wrong size");
  Writer point(2 * field + 1);
  point.U8(4);  // SEC 1 section 2.3.3: uncompressed
  point.Put(x);
  point.Put(y);
  const ParamBuilder builder{OSSL_PARAM_BLD_new()};
  if (!builder || OSSL_PARAM_BLD_push_utf8_string(builder.get(), OSSL_PKEY_PARAM_GROUP_NAME, group, 0) != 1 ||
      OSSL_PARAM_BLD_push_octet_string(builder.get(), OSSL_PKEY_PARAM_PUB_KEY, point.buffer().data(), point.size()) !=
          1) {
    return CryptoError("EC key parameters");
  }
  const Params params{OSSL_PARAM_BLD_to_param(builder.get())};
  ASSAY_TRY(EvpPkey key, BuildKey("EC", params.get()));
  const EvpPkeyCtx check{EVP_PKEY_CTX_new(key.get(), nullptr)};
  if (!check || EVP_PKEY_public_check(check.get()) != 1) return CryptoError("an EC point is not on its curve");
  return key;
}

// DER of ECDSA-Sig-Value (RFC 3279 2.2.3) for a P-256 raw signature, without allocation. At most 72 bytes.
std::size_t WriteDerInteger(Bytes number, MutableBytes out) noexcept {
  std::size_t skip = 0;
  while (skip + 1 < number.size() && number[skip] == 0) ++skip;
  const Bytes digits = number.subspan(skip);
  const std::size_t pad = (digits[0] & 0x80) != 0 ? 1 : 0;
  out[0] = 0x02;
  out[1] = static_cast<std::uint8_t>(digits.size() + pad);
  out[2] = 0;
  CopyBytes(digits, out.subspan(2 + pad, digits.size()));
  return 2 + pad + digits.size();
}

Bytes RawToDerOnStack(Bytes raw, MutableBytes out) noexcept {
  const std::size_t half = raw.size() / 2;
  std::size_t size = 2;
  size += WriteDerInteger(raw.first(half), out.subspan(size));
  size += WriteDerInteger(raw.subspan(half), out.subspan(size));
  out[0] = 0x30;
  out[1] = static_cast<std::uint8_t>(size - 2);
  return out.first(size);
}

Status Prepare(EVP_PKEY_CTX* ctx, SignatureScheme scheme, bool sign) {
  if ((sign ? EVP_PKEY_sign_init(ctx) : EVP_PKEY_verify_init(ctx)) != 1) return CryptoError("signature set-up");
  if (EVP_PKEY_CTX_set_signature_md(ctx, EVP_sha256()) != 1) return CryptoError("signature digest");
  if (scheme == SignatureScheme::kRsaSsaSha256 && EVP_PKEY_CTX_set_rsa_padding(ctx, RSA_PKCS1_PADDING) != 1) {
    return CryptoError("RSASSA padding");
  }
  if (scheme == SignatureScheme::kRsaPssSha256) {
    const int salt = sign ? RSA_PSS_SALTLEN_DIGEST : RSA_PSS_SALTLEN_AUTO;  // TPM Part 1 B.7: salt may be the largest
    if (EVP_PKEY_CTX_set_rsa_padding(ctx, RSA_PKCS1_PSS_PADDING) != 1 ||
        EVP_PKEY_CTX_set_rsa_pss_saltlen(ctx, salt) != 1) {
      return CryptoError("RSAPSS padding");
    }
  }
  return Ok();
}

bool Fits(KeyType type, SignatureScheme scheme) noexcept {
  switch (scheme) {
    case SignatureScheme::kRsaSsaSha256:
    case SignatureScheme::kRsaPssSha256: return type == KeyType::kRsa2048 || type == KeyType::kRsaOther;
    case SignatureScheme::kEcdsaP256Sha256: return type == KeyType::kP256;
    case SignatureScheme::kEd25519: return type == KeyType::kEd25519;
  }
  return false;
}

Result<Buffer> BigNumBytes(const EVP_PKEY* key, const char* name, std::size_t size) {
  BIGNUM* raw = nullptr;
  if (EVP_PKEY_get_bn_param(key, name, &raw) != 1) return CryptoError("a key parameter is missing");
  const BigNum number{raw};
  Buffer out(size == 0 ? static_cast<std::size_t>(BN_num_bytes(number.get())) : size);
  if (BN_bn2binpad(number.get(), out.data(), static_cast<int>(out.size())) < 0)
    return CryptoError("a key number is too long");
  return out;
}

std::string BioText(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return std::string(data, static_cast<std::size_t>(size));
}

// Idle contexts of one key and scheme wait in slots; a slot is taken and given back by exchange.
class ContextPool {
 public:
  ContextPool() = default;
  ~ContextPool() {
    for (auto& slot : slots_) EVP_PKEY_CTX_free(slot.load());
  }
  ContextPool(const ContextPool&) = delete;
  ContextPool& operator=(const ContextPool&) = delete;

  // Null when no context could be made; the reason is in OpenSSL's queue.
  EVP_PKEY_CTX* Take(EVP_PKEY* pkey, SignatureScheme scheme, bool sign) noexcept {
    for (auto& slot : slots_) {
      if (slot.load(std::memory_order_relaxed) == nullptr) continue;
      if (EVP_PKEY_CTX* idle = slot.exchange(nullptr, std::memory_order_acquire)) return idle;
    }
    EvpPkeyCtx fresh{EVP_PKEY_CTX_new(pkey, nullptr)};
    if (!fresh || !Prepare(fresh.get(), scheme, sign).ok()) return nullptr;
    return fresh.release();
  }
  void Give(EVP_PKEY_CTX* ctx) noexcept {
    for (auto& slot : slots_) {
      EVP_PKEY_CTX* empty = nullptr;
      if (slot.compare_exchange_strong(empty, ctx, std::memory_order_release, std::memory_order_relaxed)) return;
    }
    EVP_PKEY_CTX_free(ctx);
  }

 private:
  static constexpr std::size_t kSlots = 8;
  std::array<std::atomic<EVP_PKEY_CTX*>, kSlots> slots_{};
};

// A key with its pools: RSASSA, RSAPSS, ECDSA.
struct PooledKey {
  EvpPkey key;
  KeyType type;
  std::array<ContextPool, 3> pools;
  ContextPool& PoolOf(SignatureScheme scheme) noexcept { return pools[static_cast<std::size_t>(scheme)]; }
};

}  // namespace

struct PublicKey::State : PooledKey {};
struct PrivateKey::State : PooledKey {};

const char* SchemeName(SignatureScheme scheme) noexcept {
  switch (scheme) {
    case SignatureScheme::kRsaSsaSha256: return "rsassa-sha256";
    case SignatureScheme::kRsaPssSha256: return "rsapss-sha256";
    case SignatureScheme::kEcdsaP256Sha256: return "ecdsa-p256-sha256";
    case SignatureScheme::kEd25519: return "ed25519";
  }
  return "unknown";
}

PublicKey::PublicKey(std::unique_ptr<State> state) : state_(std::move(state)) {}
PublicKey::PublicKey(PublicKey&&) noexcept = default;
PublicKey& PublicKey::operator=(PublicKey&&) noexcept = default;
PublicKey::~PublicKey() = default;
KeyType PublicKey::type() const noexcept { return state_->type; }
EVP_PKEY* PublicKey::get() const noexcept { return state_->key.get(); }

Result<PublicKey> PublicKey::FromEvp(EvpPkey key) {
  ASSAY_TRY(const KeyType type, TypeOf(key.get()));
  auto state = std::make_unique<State>();
  state->key = std::move(key);
  state->type = type;
  return PublicKey(std::move(state));
}

Result<PublicKey> PublicKey::FromRsa(Bytes modulus_be, std::uint32_t exponent) {
  if (modulus_be.size() > kMaxRsaBytes) return MakeError(Code::kLimit, "an RSA modulus is over 4096 bits");
  if (exponent < 65537 || exponent % 2 == 0)
    return MakeError(Code::kUnsupported, "an RSA exponent must be odd and at least 65537");
  const BigNum n{BN_bin2bn(modulus_be.data(), static_cast<int>(modulus_be.size()), nullptr)};
  const BigNum e{BN_new()};
  const ParamBuilder builder{OSSL_PARAM_BLD_new()};
  if (!n || !e || !builder || BN_set_word(e.get(), exponent) != 1 ||
      OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_N, n.get()) != 1 ||
      OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_E, e.get()) != 1) {
    return CryptoError("RSA key parameters");
  }
  const Params params{OSSL_PARAM_BLD_to_param(builder.get())};
  ASSAY_TRY(EvpPkey key, BuildKey("RSA", params.get()));
  return FromEvp(std::move(key));
}

Result<PublicKey> PublicKey::FromP256(Bytes x_be, Bytes y_be) {
  ASSAY_TRY(EvpPkey key, BuildEc("prime256v1", kP256Field, x_be, y_be));
  return FromEvp(std::move(key));
}

Result<PublicKey> PublicKey::FromP384(Bytes x_be, Bytes y_be) {
  ASSAY_TRY(EvpPkey key, BuildEc("secp384r1", kP384Field, x_be, y_be));
  return FromEvp(std::move(key));
}

Result<PublicKey> PublicKey::FromEd25519(Bytes raw) {
  if (raw.size() != kEd25519Size) return MakeError(Code::kMalformed, "an Ed25519 public key has 32 bytes");
  EvpPkey key{EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, raw.data(), raw.size())};
  if (!key) return CryptoError("an Ed25519 key does not parse");
  return FromEvp(std::move(key));
}

Result<PublicKey> PublicKey::FromSpki(Bytes der) {
  const unsigned char* at = der.data();
  EvpPkey key{d2i_PUBKEY(nullptr, &at, static_cast<long>(der.size()))};
  if (!key) return CryptoError("a SubjectPublicKeyInfo does not parse");
  if (at != der.data() + der.size())
    return MakeError(Code::kMalformed, "a SubjectPublicKeyInfo is followed by stray bytes");
  return FromEvp(std::move(key));
}

Result<PublicKey> PublicKey::FromPem(std::string_view pem) {
  const Bio bio{BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()))};
  EvpPkey key{bio ? PEM_read_bio_PUBKEY(bio.get(), nullptr, nullptr, nullptr) : nullptr};
  if (!key) return CryptoError("no PEM public key");
  return FromEvp(std::move(key));
}

SignatureCheck PublicKey::VerifyDigest(SignatureScheme scheme, const Digest& digest, Bytes signature) const noexcept {
  if (!Fits(state_->type, scheme) || scheme == SignatureScheme::kEd25519) return SignatureCheck::kInvalid;
  std::array<std::uint8_t, 2 * (kP256Field + 3) + 2> der{};
  Bytes encoded = signature;
  if (scheme == SignatureScheme::kEcdsaP256Sha256) {
    if (signature.size() != 2 * kP256Field) return SignatureCheck::kInvalid;
    encoded = RawToDerOnStack(signature, der);
  }
  ContextPool& pool = state_->PoolOf(scheme);
  EVP_PKEY_CTX* ctx = pool.Take(state_->key.get(), scheme, false);
  if (ctx == nullptr) return SignatureCheck::kInvalid;
  const int rc = EVP_PKEY_verify(ctx, encoded.data(), encoded.size(), digest.data(), digest.size());
  pool.Give(ctx);
  if (rc == 1) return SignatureCheck::kValid;
  ERR_clear_error();
  return SignatureCheck::kInvalid;
}

SignatureCheck PublicKey::VerifyEd25519(Bytes message, Bytes signature) const noexcept {
  if (state_->type != KeyType::kEd25519) return SignatureCheck::kInvalid;
  const EvpMdCtx ctx{EVP_MD_CTX_new()};
  if (!ctx || EVP_DigestVerifyInit(ctx.get(), nullptr, nullptr, nullptr, state_->key.get()) != 1)
    return SignatureCheck::kInvalid;
  const int rc = EVP_DigestVerify(ctx.get(), signature.data(), signature.size(), message.data(), message.size());
  if (rc == 1) return SignatureCheck::kValid;
  ERR_clear_error();
  return SignatureCheck::kInvalid;
}

Buffer PublicKey::Spki() const {
  unsigned char* raw = nullptr;
  const int size = i2d_PUBKEY(state_->key.get(), &raw);
  if (size <= 0) std::abort();  // only out of memory: the key was parsed by us
  Buffer out(raw, raw + size);
  OPENSSL_free(raw);
  return out;
}

Digest PublicKey::SpkiDigest() const { return Sha256(Spki()); }

std::string PublicKey::Pem() const {
  const Bio bio{BIO_new(BIO_s_mem())};
  if (!bio || PEM_write_bio_PUBKEY(bio.get(), state_->key.get()) != 1) std::abort();
  return BioText(bio.get());
}

Result<PublicKey::Coordinates> PublicKey::Point() const {
  if (state_->type == KeyType::kEd25519) {
    Buffer raw(kEd25519Size);
    std::size_t size = raw.size();
    if (EVP_PKEY_get_raw_public_key(state_->key.get(), raw.data(), &size) != 1)
      return CryptoError("Ed25519 public key");
    return Coordinates{std::move(raw), {}};
  }
  const std::size_t field = state_->type == KeyType::kP256 ? kP256Field : kP384Field;
  if (state_->type != KeyType::kP256 && state_->type != KeyType::kP384)
    return MakeError(Code::kUnsupported, "RSA keys have no point");
  ASSAY_TRY(Buffer x, BigNumBytes(state_->key.get(), OSSL_PKEY_PARAM_EC_PUB_X, field));
  ASSAY_TRY(Buffer y, BigNumBytes(state_->key.get(), OSSL_PKEY_PARAM_EC_PUB_Y, field));
  return Coordinates{std::move(x), std::move(y)};
}

Result<PublicKey::RsaNumbers> PublicKey::Rsa() const {
  ASSAY_TRY(Buffer n, BigNumBytes(state_->key.get(), OSSL_PKEY_PARAM_RSA_N, 0));
  ASSAY_TRY(const Buffer e, BigNumBytes(state_->key.get(), OSSL_PKEY_PARAM_RSA_E, 4));
  return RsaNumbers{std::move(n), Reader(e).U32Be()};
}

PrivateKey::PrivateKey(std::unique_ptr<State> state) : state_(std::move(state)) {}
PrivateKey::PrivateKey(PrivateKey&&) noexcept = default;
PrivateKey& PrivateKey::operator=(PrivateKey&&) noexcept = default;
PrivateKey::~PrivateKey() = default;
KeyType PrivateKey::type() const noexcept { return state_->type; }
EVP_PKEY* PrivateKey::get() const noexcept { return state_->key.get(); }

Result<PrivateKey> PrivateKey::FromEvp(EvpPkey key) {
  ASSAY_TRY(const KeyType type, TypeOf(key.get()));
  auto state = std::make_unique<State>();
  state->key = std::move(key);
  state->type = type;
  return PrivateKey(std::move(state));
}

Result<PrivateKey> PrivateKey::Generate(KeyType type) {
  EVP_PKEY* raw = nullptr;
  switch (type) {
    case KeyType::kP256: raw = EVP_EC_gen("P-256"); break;
    case KeyType::kP384: raw = EVP_EC_gen("P-384"); break;
    case KeyType::kRsa2048: raw = EVP_RSA_gen(2048); break;
    case KeyType::kEd25519: raw = EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"); break;
    case KeyType::kRsaOther: return MakeError(Code::kUnsupported, "RSA keys are made with 2048 bits");
  }
  if (raw == nullptr) return CryptoError("key generation failed");
  return FromEvp(EvpPkey(raw));
}

Result<PrivateKey> PrivateKey::FromPem(std::string_view pem) {
  const Bio bio{BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()))};
  EvpPkey key{bio ? PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr) : nullptr};
  if (!key) return CryptoError("no PEM private key");
  return FromEvp(std::move(key));
}

Result<Buffer> PrivateKey::SignDigest(SignatureScheme scheme, const Digest& digest) const {
  if (!Fits(state_->type, scheme) || scheme == SignatureScheme::kEd25519) {
    return MakeError(Code::kUnsupported, "the key does not make signatures of this scheme");
  }
  ContextPool& pool = state_->PoolOf(scheme);
  EVP_PKEY_CTX* ctx = pool.Take(state_->key.get(), scheme, true);
  if (ctx == nullptr) return CryptoError("signature context");
  Buffer out(kMaxRsaBytes);
  std::size_t size = out.size();
  const int rc = EVP_PKEY_sign(ctx, out.data(), &size, digest.data(), digest.size());
  pool.Give(ctx);
  if (rc != 1) return CryptoError("signing failed");
  out.resize(size);
  if (scheme == SignatureScheme::kEcdsaP256Sha256) return EcdsaDerToRaw(out, kP256Field);
  return out;
}

Result<Buffer> PrivateKey::SignEd25519(Bytes message) const {
  if (state_->type != KeyType::kEd25519) return MakeError(Code::kUnsupported, "the key is not Ed25519");
  const EvpMdCtx ctx{EVP_MD_CTX_new()};
  Buffer out(64);
  std::size_t size = out.size();
  if (!ctx || EVP_DigestSignInit(ctx.get(), nullptr, nullptr, nullptr, state_->key.get()) != 1 ||
      EVP_DigestSign(ctx.get(), out.data(), &size, message.data(), message.size()) != 1) {
    return CryptoError("Ed25519 signing failed");
  }
  return out;
}

Result<Buffer> PrivateKey::Sign(SignatureScheme scheme, Bytes message) const {
  if (scheme == SignatureScheme::kEd25519) return SignEd25519(message);
  return SignDigest(scheme, Sha256(message));
}

Result<PublicKey> PrivateKey::Public() const {
  unsigned char* raw = nullptr;
  const int size = i2d_PUBKEY(state_->key.get(), &raw);
  if (size <= 0) return CryptoError("a public key does not encode");
  const Buffer der(raw, raw + size);
  OPENSSL_free(raw);
  return PublicKey::FromSpki(der);
}

Secret PrivateKey::Pem() const {
  const Bio bio{BIO_new(BIO_s_secmem())};
  if (!bio || PEM_write_bio_PKCS8PrivateKey(bio.get(), state_->key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1)
    std::abort();
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return Secret::CopyOf(AsBytes(std::string_view(data, static_cast<std::size_t>(size))));
}

Result<Buffer> EcdsaRawToDer(Bytes raw) {
  if (raw.size() != 2 * kP256Field && raw.size() != 2 * kP384Field)
    return MakeError(Code::kMalformed, "a raw ECDSA signature has 64 or 96 bytes");
  std::array<std::uint8_t, 2 * (kP384Field + 3) + 2> der{};
  return ToBuffer(RawToDerOnStack(raw, der));
}

Result<Buffer> EcdsaDerToRaw(Bytes der, std::size_t field_size) {
  const unsigned char* at = der.data();
  const EcdsaSig sig{d2i_ECDSA_SIG(nullptr, &at, static_cast<long>(der.size()))};
  if (!sig || at != der.data() + der.size()) return CryptoError("an ECDSA signature does not parse");
  Buffer raw(2 * field_size);
  const int size = static_cast<int>(field_size);
  if (BN_bn2binpad(ECDSA_SIG_get0_r(sig.get()), raw.data(), size) < 0 ||
      BN_bn2binpad(ECDSA_SIG_get0_s(sig.get()), raw.data() + field_size, size) < 0) {
    return CryptoError("an ECDSA signature has numbers over its field");
  }
  return raw;
}

}  // namespace assay
