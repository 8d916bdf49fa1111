// SPDX-License-Identifier: Apache-2.0
// Key templates: endorsement keys as the TCG EK Credential Profile (annex B) fixes them, and our attestation keys.
#include <algorithm>

#include "sdk/core/tpm.h"

namespace assay::tpm {
namespace {

constexpr std::uint16_t kCurveP256 = 0x0003;
constexpr std::uint16_t kCurveP384 = 0x0004;
constexpr std::size_t kRsaBytes = 256;
constexpr std::size_t kP256Field = 32;

// Profile section B.3.3, B.3.4: low range, administered by policy; B.4: high range, with a password as well.
constexpr std::uint32_t kEkLow = attr::kFixedTpm | attr::kFixedParent | attr::kSensitiveDataOrigin |
                                 attr::kAdminWithPolicy | attr::kRestricted | attr::kDecrypt;
constexpr std::uint32_t kEkHigh = kEkLow | attr::kUserWithAuth;
constexpr std::uint32_t kAik = attr::kFixedTpm | attr::kFixedParent | attr::kSensitiveDataOrigin | attr::kUserWithAuth |
                               attr::kNoDa | attr::kRestricted | attr::kSignEncrypt;

// TPM2_PolicySecret(TPM_RH_ENDORSEMENT), section B.6.2.
constexpr std::array<std::uint8_t, 32> kPolicyA = {0x83, 0x71, 0x97, 0x67, 0x44, 0x84, 0xB3, 0xF8, 0x1A, 0x90, 0xCC,
                                                   0x8D, 0x46, 0xA5, 0xD7, 0x24, 0xFD, 0x52, 0xD7, 0x6E, 0x06, 0x52,
                                                   0x0B, 0x64, 0xF2, 0xA1, 0xDA, 0x1B, 0x33, 0x14, 0x69, 0xAA};
// PolicyOR of PolicyA and PolicyC, sections B.6.3 and B.6.5, with SHA-256 and SHA-384.
constexpr std::array<std::uint8_t, 32> kPolicyB256 = {0xCA, 0x3D, 0x0A, 0x99, 0xA2, 0xB9, 0x39, 0x06, 0xF7, 0xA3, 0x34,
                                                      0x24, 0x14, 0xEF, 0xCF, 0xB3, 0xA3, 0x85, 0xD4, 0x4C, 0xD1, 0xFD,
                                                      0x45, 0x90, 0x89, 0xD1, 0x9B, 0x50, 0x71, 0xC0, 0xB7, 0xA0};
constexpr std::array<std::uint8_t, 48> kPolicyB384 = {
    0xB2, 0x6E, 0x7D, 0x28, 0xD1, 0x1A, 0x50, 0xBC, 0x53, 0xD8, 0x82, 0xBC, 0xF5, 0xFD, 0x3A, 0x1A,
    0x07, 0x41, 0x48, 0xBB, 0x35, 0xD3, 0xB4, 0xE4, 0xCB, 0x1C, 0x0A, 0xD9, 0xBD, 0xE4, 0x19, 0xCA,
    0xCB, 0x47, 0xBA, 0x09, 0x69, 0x96, 0x46, 0x15, 0x0F, 0x9F, 0xC0, 0x00, 0xF3, 0xF8, 0x0E, 0x12};

struct EkShape {
  bool rsa;
  std::uint16_t curve;
  Alg name_alg;
  std::uint32_t attributes;
  Bytes policy;
  std::uint16_t aes_bits;
  std::size_t unique;  // bytes of zeros in the template: modulus, or each coordinate
};

EkShape ShapeOf(EkKind kind) noexcept {
  switch (kind) {
    case EkKind::kRsa2048Low: return {true, 0, Alg::kSha256, kEkLow, kPolicyA, 128, kRsaBytes};
    case EkKind::kRsa2048High: return {true, 0, Alg::kSha256, kEkHigh, kPolicyB256, 128, 0};
    case EkKind::kEccP256Low: return {false, kCurveP256, Alg::kSha256, kEkLow, kPolicyA, 128, 32};
    case EkKind::kEccP256High: return {false, kCurveP256, Alg::kSha256, kEkHigh, kPolicyB256, 128, 0};
    case EkKind::kEccP384High: break;
  }
  return {false, kCurveP384, Alg::kSha384, kEkHigh, kPolicyB384, 256, 0};
}

void Put(Writer& out, Alg alg) { out.U16Be(static_cast<std::uint16_t>(alg)); }

// Everything of an EK's TPMT_PUBLIC but its unique field.
void PutEk(Writer& out, const EkShape& shape) {
  Put(out, shape.rsa ? Alg::kRsa : Alg::kEcc);
  Put(out, shape.name_alg);
  out.U32Be(shape.attributes);
  out.PutU16Sized(shape.policy);
  Put(out, Alg::kAes);
  out.U16Be(shape.aes_bits);
  Put(out, Alg::kCfb);
  Put(out, Alg::kNull);  // scheme
  if (shape.rsa) {
    out.U16Be(kRsaBytes * 8);
    out.U32Be(0);  // exponent 65537
  } else {
    out.U16Be(shape.curve);
    Put(out, Alg::kNull);  // kdf
  }
}

}  // namespace

Buffer EkTemplate(EkKind kind) {
  const EkShape shape = ShapeOf(kind);
  Writer out(512);
  PutEk(out, shape);
  const Buffer zeros(shape.unique, 0);
  out.PutU16Sized(zeros);
  if (!shape.rsa) out.PutU16Sized(zeros);
  return std::move(out).Take();
}

Result<Buffer> EkPublicArea(EkKind kind, const PublicKey& key) {
  const EkShape shape = ShapeOf(kind);
  const KeyType wanted = shape.rsa ? KeyType::kRsa2048 : shape.curve == kCurveP256 ? KeyType::kP256 : KeyType::kP384;
  if (key.type() != wanted)
    return MakeError(Code::kMalformed, "the endorsement key is of another type than its template");
  Writer out(512);
  PutEk(out, shape);
  if (shape.rsa) {
    ASSAY_TRY(const auto numbers, key.Rsa());
    if (numbers.exponent != 65537) return MakeError(Code::kMalformed, "an endorsement key's exponent must be 65537");
    out.PutU16Sized(numbers.modulus);
  } else {
    ASSAY_TRY(const auto point, key.Point());
    out.PutU16Sized(point.x);
    out.PutU16Sized(point.y);
  }
  return std::move(out).Take();
}

std::uint32_t EkCertificateIndex(EkKind kind) noexcept {
  switch (kind) {
    case EkKind::kRsa2048Low: return 0x01C00002;
    case EkKind::kEccP256Low: return 0x01C0000A;
    case EkKind::kRsa2048High: return 0x01C00012;
    case EkKind::kEccP256High: return 0x01C00014;
    case EkKind::kEccP384High: break;
  }
  return 0x01C00016;
}

// `unique` is padded to the size of the key's own field, as the EK templates do it: the shape that firmware has seen.
Buffer AikTemplate(AikKind kind, Bytes unique) {
  const auto padded = [&](std::size_t size) {
    Buffer field(size, 0);
    const std::size_t used = std::min(size, unique.size());
    CopyBytes(unique.first(used), MutableBytes(field).first(used));
    return field;
  };
  Writer out(384);
  const bool ecc = kind == AikKind::kEccP256;
  Put(out, ecc ? Alg::kEcc : Alg::kRsa);
  Put(out, Alg::kSha256);
  out.U32Be(kAik);
  out.PutU16Sized({});   // no policy: the empty password
  Put(out, Alg::kNull);  // symmetric
  Put(out, ecc ? Alg::kEcdsa : kind == AikKind::kRsaPss ? Alg::kRsaPss : Alg::kRsaSsa);
  Put(out, Alg::kSha256);
  if (ecc) {
    out.U16Be(kCurveP256);
    Put(out, Alg::kNull);  // kdf
    out.PutU16Sized(padded(kP256Field));
    out.PutU16Sized(Buffer(kP256Field, 0));
  } else {
    out.U16Be(kRsaBytes * 8);
    out.U32Be(0);
    out.PutU16Sized(padded(kRsaBytes));
  }
  return std::move(out).Take();
}

Buffer EncodePcrSelections(const PcrSelections& selections) {
  Writer out;
  out.U32Be(static_cast<std::uint32_t>(selections.count));
  for (std::size_t i = 0; i < selections.count; ++i) {
    Put(out, selections.items[i].hash);
    out.U8(limits::kPcrs / 8);
    for (unsigned byte = 0; byte < limits::kPcrs / 8; ++byte)
      out.U8(static_cast<std::uint8_t>(selections.items[i].mask >> (8 * byte)));
  }
  return std::move(out).Take();
}

}  // namespace assay::tpm
