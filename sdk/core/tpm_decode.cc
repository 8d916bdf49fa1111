// SPDX-License-Identifier: Apache-2.0
// TPM structures from bytes (TPM 2.0 Library, Part 2). Views only; nothing here judges.
#include <algorithm>

#include "sdk/core/tpm.h"

namespace assay::tpm {
namespace {

constexpr std::size_t kMaxName = 68;       // nameAlg and SHA-512, or a handle
constexpr std::size_t kMaxExtraData = 66;  // TPM2B_DATA: sizeof(TPMT_HA)
constexpr std::size_t kMaxPcrSelect = 4;   // bytes of a PCR bitmap, IMPLEMENTATION_PCR up to 32
constexpr std::size_t kMaxModulus = 512;
constexpr std::size_t kMaxCoordinate = 66;
constexpr std::size_t kP256Field = 32;

PcrSelection ReadSelection(Reader& in) noexcept {
  PcrSelection selection;
  selection.hash = static_cast<Alg>(in.U16Be());
  const std::size_t size = in.U8();
  if (size > kMaxPcrSelect) in.Fail();
  const Bytes bits = in.Take(size);
  for (std::size_t i = 0; i < bits.size(); ++i) {
    if (i >= limits::kPcrs / 8 && bits[i] != 0) in.Fail();  // PCR 24 and above
    else if (i < limits::kPcrs / 8) selection.mask |= static_cast<std::uint32_t>(bits[i]) << (8 * i);
  }
  return selection;
}

void ReadSelections(Reader& in, PcrSelections& out) noexcept {
  const std::uint32_t count = in.U32Be();
  if (count > kMaxSelections) in.Fail();
  for (std::uint32_t i = 0; i < count && in.ok(); ++i) out.items[out.count++] = ReadSelection(in);
}

ClockInfo ReadClock(Reader& in) noexcept {
  ClockInfo clock;
  clock.clock = in.U64Be();
  clock.reset_count = in.U32Be();
  clock.restart_count = in.U32Be();
  const std::uint8_t safe = in.U8();
  if (safe > 1) in.Fail();  // TPMI_YES_NO
  clock.safe = safe == 1;
  return clock;
}

bool IsHash(Alg alg) noexcept { return DigestSize(alg) != 0; }

void ReadSymmetric(Reader& in, PublicArea& area) noexcept {
  area.symmetric = static_cast<Alg>(in.U16Be());
  if (area.symmetric == Alg::kNull) return;
  if (area.symmetric != Alg::kAes) in.Fail();
  area.symmetric_bits = in.U16Be();
  area.symmetric_mode = static_cast<Alg>(in.U16Be());
}

void ReadAsymScheme(Reader& in, PublicArea& area) noexcept {
  area.scheme = static_cast<Alg>(in.U16Be());
  switch (area.scheme) {
    case Alg::kNull:
    case Alg::kRsaEs: break;  // TPMS_EMPTY
    case Alg::kRsaSsa:
    case Alg::kRsaPss:
    case Alg::kOaep:
    case Alg::kEcdsa:
      area.scheme_hash = static_cast<Alg>(in.U16Be());
      if (!IsHash(area.scheme_hash)) in.Fail();
      break;
    default: in.Fail();
  }
}

void ReadKdf(Reader& in, PublicArea& area) noexcept {
  area.kdf = static_cast<Alg>(in.U16Be());
  if (area.kdf != Alg::kNull && !IsHash(static_cast<Alg>(in.U16Be()))) in.Fail();
}

}  // namespace

Result<Attest> DecodeAttest(Bytes encoded) {
  Reader in(encoded);
  Attest attest;
  attest.magic = in.U32Be();
  attest.type = in.U16Be();
  attest.qualified_signer = in.TakeU16Sized(kMaxName);
  attest.extra_data = in.TakeU16Sized(kMaxExtraData);
  attest.clock = ReadClock(in);
  attest.firmware_version = in.U64Be();
  switch (static_cast<AttestType>(attest.type)) {
    case AttestType::kQuote:
      ReadSelections(in, attest.selections);
      attest.pcr_digest = in.TakeU16Sized(limits::kPcrDigest);
      break;
    case AttestType::kCreation:
      attest.object_name = in.TakeU16Sized(kMaxName);
      attest.creation_hash = in.TakeU16Sized(limits::kPcrDigest);
      break;
    case AttestType::kCertify:
      attest.object_name = in.TakeU16Sized(kMaxName);
      attest.qualified_name = in.TakeU16Sized(kMaxName);
      break;
    default:
      if (in.ok())
        return MakeError(Code::kUnsupported, "a TPMS_ATTEST of a type other than quote, creation and certify");
  }
  ASSAY_CHECK_OK(in.Finish("a TPMS_ATTEST"));
  return attest;
}

Result<Signature> DecodeSignature(Bytes encoded) {
  Reader in(encoded);
  Signature signature;
  signature.scheme = static_cast<Alg>(in.U16Be());
  signature.hash = static_cast<Alg>(in.U16Be());
  switch (signature.scheme) {
    case Alg::kRsaSsa:
    case Alg::kRsaPss: signature.rsa = in.TakeU16Sized(kMaxModulus); break;
    case Alg::kEcdsa:
      signature.ecdsa_r = in.TakeU16Sized(kMaxCoordinate);
      signature.ecdsa_s = in.TakeU16Sized(kMaxCoordinate);
      break;
    default:
      if (in.ok())
        return MakeError(Code::kUnsupported, "a TPMT_SIGNATURE of a scheme other than RSASSA, RSAPSS and ECDSA");
  }
  if (!IsHash(signature.hash)) in.Fail();
  ASSAY_CHECK_OK(in.Finish("a TPMT_SIGNATURE"));
  return signature;
}

bool HasScheme(const Signature& signature, SignatureScheme scheme) noexcept {
  if (signature.hash != Alg::kSha256) return false;
  switch (scheme) {
    case SignatureScheme::kRsaSsaSha256: return signature.scheme == Alg::kRsaSsa;
    case SignatureScheme::kRsaPssSha256: return signature.scheme == Alg::kRsaPss;
    case SignatureScheme::kEcdsaP256Sha256: return signature.scheme == Alg::kEcdsa;
    case SignatureScheme::kEd25519: return false;
  }
  return false;
}

Result<RawSignature> ToRaw(const Signature& signature) {
  RawSignature raw;
  const MutableBytes out(raw.bytes);
  if (signature.scheme != Alg::kEcdsa) {
    if (signature.rsa.size() > raw.bytes.size())
      return MakeError(Code::kMalformed, "an RSA signature is longer than 512 bytes");
    CopyBytes(signature.rsa, out.first(signature.rsa.size()));
    raw.size = signature.rsa.size();
    return raw;
  }
  if (signature.ecdsa_r.size() > kP256Field || signature.ecdsa_s.size() > kP256Field) {
    return MakeError(Code::kMalformed, "an ECDSA number is longer than the P-256 field");
  }
  CopyBytes(signature.ecdsa_r, out.subspan(kP256Field - signature.ecdsa_r.size(), signature.ecdsa_r.size()));
  CopyBytes(signature.ecdsa_s, out.subspan(2 * kP256Field - signature.ecdsa_s.size(), signature.ecdsa_s.size()));
  raw.size = 2 * kP256Field;
  return raw;
}

Result<PublicArea> DecodePublicArea(Bytes encoded) {
  Reader in(encoded);
  PublicArea area;
  area.type = static_cast<Alg>(in.U16Be());
  area.name_alg = static_cast<Alg>(in.U16Be());
  area.attributes = in.U32Be();
  area.auth_policy = in.TakeU16Sized(limits::kPcrDigest);
  if (area.type == Alg::kRsa) {
    ReadSymmetric(in, area);
    ReadAsymScheme(in, area);
    area.key_bits = in.U16Be();
    area.exponent = in.U32Be();
    area.rsa_modulus = in.TakeU16Sized(kMaxModulus);
  } else if (area.type == Alg::kEcc) {
    ReadSymmetric(in, area);
    ReadAsymScheme(in, area);
    area.curve = in.U16Be();
    ReadKdf(in, area);
    area.ecc_x = in.TakeU16Sized(kMaxCoordinate);
    area.ecc_y = in.TakeU16Sized(kMaxCoordinate);
  } else if (in.ok()) {
    return MakeError(Code::kUnsupported, "a TPMT_PUBLIC of a type other than RSA and ECC");
  }
  if (!IsHash(area.name_alg)) in.Fail();
  ASSAY_CHECK_OK(in.Finish("a TPMT_PUBLIC"));
  return area;
}

Result<Bytes> UnwrapTpm2b(Bytes encoded, std::size_t limit, std::string_view what) {
  Reader in(encoded);
  const Bytes content = in.TakeU16Sized(limit);
  ASSAY_CHECK_OK(in.Finish(what));
  return content;
}

}  // namespace assay::tpm
