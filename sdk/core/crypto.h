// SPDX-License-Identifier: Apache-2.0
// Hashes, MACs, key derivation, and public keys parsed once into handles that are cheap to use often.
// All functions are thread-safe; keys are immutable after construction and may be shared by threads.
#pragma once

#include <openssl/evp.h>

#include <atomic>
#include <cstddef>
#include <memory>

#include "sdk/core/bytes.h"
#include "sdk/core/handle.h"
#include "sdk/core/result.h"
#include "sdk/core/secret.h"

namespace assay {

using EvpPkey = Handle<EVP_PKEY, EVP_PKEY_free>;
using EvpPkeyCtx = Handle<EVP_PKEY_CTX, EVP_PKEY_CTX_free>;
using EvpMdCtx = Handle<EVP_MD_CTX, EVP_MD_CTX_free>;

// Aborts when the library has no memory or no SHA-256: nothing can be judged then.
Digest Sha256(Bytes data) noexcept;
Digest Sha256(std::initializer_list<Bytes> parts) noexcept;  // of the concatenation

// Incremental SHA-256 for files and long inputs. One owner, one thread.
class Sha256Stream {
 public:
  Sha256Stream();
  void Update(Bytes data) noexcept;
  Digest Finish() noexcept;  // also restarts the stream

 private:
  EvpMdCtx ctx_;
};

Digest HmacSha256(Bytes key, Bytes data) noexcept;
Digest HmacSha256(Bytes key, std::initializer_list<Bytes> parts) noexcept;

// A MAC key whose inner and outer states are prepared once: about two compressions a short message.
// Immutable; any number of threads.
class HmacKey {
 public:
  explicit HmacKey(Bytes key);
  Digest Mac(std::initializer_list<Bytes> parts) const noexcept;

 private:
  struct State;
  std::shared_ptr<const State> state_;  // shared by copies of one key: immutable, so no owner matters
};

// HKDF-SHA-256 (RFC 5869), extract and expand. `size` at most 255 * 32.
Secret HkdfSha256(Bytes input_key, Bytes salt, Bytes info, std::size_t size);
// KDFa of TPM 2.0 Part 1, 11.4.10.2, with SHA-256. `bits` a multiple of 8.
Secret KdfaSha256(Bytes key, std::string_view label, Bytes context_u, Bytes context_v, std::uint32_t bits);

void RandomBytes(MutableBytes out) noexcept;  // aborts when the kernel gives none
template <std::size_t N>
std::array<std::uint8_t, N> RandomArray() noexcept {
  std::array<std::uint8_t, N> out;
  RandomBytes(out);
  return out;
}

enum class KeyType : std::uint8_t { kRsa2048, kRsaOther, kP256, kP384, kEd25519 };

// How a signature was made. The scheme always comes from a record or a key, never from the signed bytes.
enum class SignatureScheme : std::uint8_t {
  kRsaSsaSha256,     // RSASSA-PKCS1-v1_5
  kRsaPssSha256,     // salt as long as the digest (TPM: the largest that fits is accepted too)
  kEcdsaP256Sha256,  // raw r | s, 32 bytes each, big-endian
  kEd25519,
};
const char* SchemeName(SignatureScheme scheme) noexcept;

// A verification that failed is a value; Error is for what could not be judged.
enum class SignatureCheck : std::uint8_t { kInvalid, kValid };

// A public key, parsed once. Verification contexts are pooled, so a verify costs the bare operation.
class PublicKey {
 public:
  static Result<PublicKey> FromRsa(Bytes modulus_be, std::uint32_t exponent);  // 2048 to 4096 bits
  static Result<PublicKey> FromP256(Bytes x_be, Bytes y_be);                   // checked to be on the curve
  static Result<PublicKey> FromP384(Bytes x_be, Bytes y_be);
  static Result<PublicKey> FromEd25519(Bytes raw);
  static Result<PublicKey> FromSpki(Bytes der);  // slow (150-220 us): for files, never on a hot path
  static Result<PublicKey> FromPem(std::string_view pem);
  static Result<PublicKey> FromEvp(EvpPkey key);

  PublicKey(PublicKey&&) noexcept;
  PublicKey& operator=(PublicKey&&) noexcept;
  ~PublicKey();

  KeyType type() const noexcept;
  // The digest must be SHA-256 of the message for RSA and P-256. kInvalid for a scheme of another key type.
  SignatureCheck VerifyDigest(SignatureScheme scheme, const Digest& digest, Bytes signature) const noexcept;
  SignatureCheck VerifyEd25519(Bytes message, Bytes signature) const noexcept;
  Buffer Spki() const;        // DER SubjectPublicKeyInfo (RFC 5280)
  Digest SpkiDigest() const;  // SHA-256 of it: attester ids and host ids are built on this
  std::string Pem() const;
  // P-256 and P-384 coordinates, or the Ed25519 key in x (y empty); kUnsupported for RSA.
  struct Coordinates {
    Buffer x;
    Buffer y;
  };
  Result<Coordinates> Point() const;
  struct RsaNumbers {
    Buffer modulus;
    std::uint32_t exponent;
  };
  Result<RsaNumbers> Rsa() const;
  EVP_PKEY* get() const noexcept;

 private:
  struct State;
  explicit PublicKey(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// A signing key, parsed once; contexts are pooled as PublicKey's are. P-256 (ES256, raw r | s) and Ed25519.
class PrivateKey {
 public:
  static Result<PrivateKey> Generate(KeyType type);  // kP256, kEd25519, kRsa2048 (tests)
  static Result<PrivateKey> FromPem(std::string_view pem);
  static Result<PrivateKey> FromEvp(EvpPkey key);

  PrivateKey(PrivateKey&&) noexcept;
  PrivateKey& operator=(PrivateKey&&) noexcept;
  ~PrivateKey();

  KeyType type() const noexcept;
  Result<Buffer> SignDigest(SignatureScheme scheme, const Digest& digest) const;
  Result<Buffer> SignEd25519(Bytes message) const;
  Result<Buffer> Sign(SignatureScheme scheme, Bytes message) const;  // hashes first where the scheme does
  Result<PublicKey> Public() const;
  Secret Pem() const;  // PKCS#8
  EVP_PKEY* get() const noexcept;

 private:
  struct State;
  explicit PrivateKey(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// ECDSA signatures: JOSE and our own formats use r | s, X.509 and OpenSSL use DER.
Result<Buffer> EcdsaRawToDer(Bytes raw);                          // 64 (P-256) or 96 (P-384) bytes
Result<Buffer> EcdsaDerToRaw(Bytes der, std::size_t field_size);  // 32 or 48

// The last OpenSSL error of this thread as one line; clears the queue.
std::string OpenSslErrorText();

}  // namespace assay
