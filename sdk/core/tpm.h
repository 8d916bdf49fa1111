// SPDX-License-Identifier: Apache-2.0
// TPM 2.0 structures decoded from bytes (TCG TPM 2.0 Library, Part 2). Views into the caller's input:
// the input must outlive the decoded structure. Nothing here talks to a TPM or judges anything.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "sdk/core/bytes.h"
#include "sdk/core/crypto.h"
#include "sdk/core/limits.h"
#include "sdk/core/result.h"

namespace assay::tpm {

// TPM_ALG_ID, Part 2 table 9: those that occur here.
enum class Alg : std::uint16_t {
  kRsa = 0x0001,
  kSha1 = 0x0004,
  kHmac = 0x0005,
  kAes = 0x0006,
  kKeyedHash = 0x0008,
  kSha256 = 0x000B,
  kSha384 = 0x000C,
  kSha512 = 0x000D,
  kNull = 0x0010,
  kRsaSsa = 0x0014,
  kRsaEs = 0x0015,
  kRsaPss = 0x0016,
  kOaep = 0x0017,
  kEcdsa = 0x0018,
  kEcc = 0x0023,
  kSymCipher = 0x0025,
  kCfb = 0x0043,
};
std::string AlgName(Alg alg);
std::size_t DigestSize(Alg hash) noexcept;  // 0 for what is no hash we know

inline constexpr std::uint32_t kGenerated = 0xFF544347;  // TPM_GENERATED_VALUE, table 7
enum class AttestType : std::uint16_t {                  // TPM_ST, table 19
  kCertify = 0x8017,
  kQuote = 0x8018,
  kCreation = 0x801A,
};

// TPMS_CLOCK_INFO, table 109. clock in milliseconds.
struct ClockInfo {
  std::uint64_t clock = 0;
  std::uint32_t reset_count = 0;
  std::uint32_t restart_count = 0;
  bool safe = false;
};

// TPMS_PCR_SELECTION: PCR n is chosen when bit n of mask is set.
struct PcrSelection {
  Alg hash = Alg::kNull;
  std::uint32_t mask = 0;
  friend bool operator==(const PcrSelection&, const PcrSelection&) = default;
};
inline constexpr std::size_t kMaxSelections = 16;  // HASH_COUNT of the structures here
// TPML_PCR_SELECTION without allocation.
struct PcrSelections {
  std::array<PcrSelection, kMaxSelections> items{};
  std::size_t count = 0;
};

// TPMS_ATTEST, table 139. magic and type are reported as found: judging them is a check's work.
struct Attest {
  std::uint32_t magic = 0;
  std::uint16_t type = 0;
  Bytes qualified_signer;  // a TPM2B_NAME's content
  Bytes extra_data;
  ClockInfo clock;
  std::uint64_t firmware_version = 0;
  // kQuote
  PcrSelections selections;
  Bytes pcr_digest;
  // kCreation and kCertify: the object's Name; then creation hash or qualified name
  Bytes object_name;
  Bytes creation_hash;
  Bytes qualified_name;
};
// kMalformed also for stray bytes and for selections with more than 24 PCRs. With a type other than the
// three above: kUnsupported. With another magic the structure is still decoded.
Result<Attest> DecodeAttest(Bytes encoded);

// TPMT_SIGNATURE, table 192: RSASSA, RSAPSS, ECDSA.
struct Signature {
  Alg scheme = Alg::kNull;
  Alg hash = Alg::kNull;
  Bytes rsa;               // as long as the modulus
  Bytes ecdsa_r, ecdsa_s;  // big-endian, may be shorter than the field
};
Result<Signature> DecodeSignature(Bytes encoded);
// Is it of this scheme, over SHA-256? The scheme comes from a record, never from the signature.
bool HasScheme(const Signature& signature, SignatureScheme scheme) noexcept;
// Raw form that PublicKey::VerifyDigest takes; P-256 numbers are padded to 32 bytes. kMalformed if longer.
struct RawSignature {
  std::array<std::uint8_t, 512> bytes{};
  std::size_t size = 0;
  Bytes view() const { return Bytes(bytes).first(size); }
};
Result<RawSignature> ToRaw(const Signature& signature);

// TPMA_OBJECT bits, table 33.
namespace attr {
inline constexpr std::uint32_t kFixedTpm = 1U << 1, kStClear = 1U << 2, kFixedParent = 1U << 4,
                               kSensitiveDataOrigin = 1U << 5, kUserWithAuth = 1U << 6, kAdminWithPolicy = 1U << 7,
                               kNoDa = 1U << 10, kEncryptedDuplication = 1U << 11, kRestricted = 1U << 16,
                               kDecrypt = 1U << 17, kSignEncrypt = 1U << 18, kX509Sign = 1U << 19;
}

// TPMT_PUBLIC, table 203, of RSA and ECC keys.
struct PublicArea {
  Alg type = Alg::kNull;
  Alg name_alg = Alg::kNull;
  std::uint32_t attributes = 0;
  Bytes auth_policy;
  Alg symmetric = Alg::kNull;
  std::uint16_t symmetric_bits = 0;
  Alg symmetric_mode = Alg::kNull;
  Alg scheme = Alg::kNull;
  Alg scheme_hash = Alg::kNull;
  std::uint16_t key_bits = 0;  // RSA
  std::uint32_t exponent = 0;  // RSA, 0 means 65537
  std::uint16_t curve = 0;     // ECC: 3 P-256, 4 P-384
  Alg kdf = Alg::kNull;        // ECC
  Bytes rsa_modulus;
  Bytes ecc_x, ecc_y;
};
Result<PublicArea> DecodePublicArea(Bytes encoded);  // TPMT_PUBLIC
Result<Bytes> UnwrapTpm2b(Bytes encoded, std::size_t limit,
                          std::string_view what);  // the content of one TPM2B, nothing after
Result<PublicKey> KeyOf(const PublicArea& area);   // RSA-2048.., P-256, P-384
Result<Buffer> ObjectName(Bytes public_area);      // nameAlg | H(TPMT_PUBLIC), Part 1 section 16

// What an attestation key must be (Part 1 section 31): restricted, fixedTPM, fixedParent, sensitiveDataOrigin,
// sign and not decrypt, userWithAuth allowed; RSA-2048 with RSASSA or RSAPSS, or P-256 with ECDSA, over SHA-256.
// kDenied naming the first property that is wrong.
struct AikScheme {
  SignatureScheme scheme;
};
Result<AikScheme> CheckAikArea(const PublicArea& area);

// Key templates (TCG EK Credential Profile 2.5, annex B; the AIK's are ours). `unique` of the canonical EK is
// filled with zeros as the low-range template says; with `modulus`, the area a TPM returns for that EK.
enum class EkKind : std::uint8_t { kRsa2048Low, kRsa2048High, kEccP256Low, kEccP256High, kEccP384High };
Buffer EkTemplate(EkKind kind);                                  // TPMT_PUBLIC for CreatePrimary
Result<Buffer> EkPublicArea(EkKind kind, const PublicKey& key);  // TPMT_PUBLIC with the key's unique
std::uint32_t EkCertificateIndex(EkKind kind) noexcept;          // NV index: 0x01C00002, ...
enum class AikKind : std::uint8_t { kRsaSsa, kRsaPss, kEccP256 };
Buffer AikTemplate(AikKind kind, Bytes unique);  // unique: 32 random bytes; another draw, another key

// Encoders for what the verifier asks for and tests forge.
Buffer EncodePcrSelections(const PcrSelections& selections);  // TPML_PCR_SELECTION
// TPM2_MakeCredential in software is in verifier/enrollment/make_credential.h.

}  // namespace assay::tpm
