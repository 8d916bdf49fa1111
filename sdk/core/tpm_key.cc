// SPDX-License-Identifier: Apache-2.0
// Keys and names out of public areas, and what an attestation key must be.
#include <openssl/evp.h>

#include "sdk/core/tpm.h"

namespace assay::tpm {
namespace {

constexpr std::uint16_t kCurveP256 = 0x0003;
constexpr std::uint16_t kCurveP384 = 0x0004;
constexpr std::uint32_t kDefaultExponent = 65537;

Buffer Padded(Bytes number, std::size_t size) {
  Buffer out(size - number.size(), 0);
  out.insert(out.end(), number.begin(), number.end());
  return out;
}

const EVP_MD* MdOf(Alg hash) noexcept {
  switch (hash) {
    case Alg::kSha1: return EVP_sha1();
    case Alg::kSha256: return EVP_sha256();
    case Alg::kSha384: return EVP_sha384();
    case Alg::kSha512: return EVP_sha512();
    default: return nullptr;
  }
}

struct Need {
  std::uint32_t bit;
  const char* name;
};
constexpr Need kRequired[] = {{attr::kRestricted, "restricted"},
                              {attr::kFixedTpm, "fixedTPM"},
                              {attr::kFixedParent, "fixedParent"},
                              {attr::kSensitiveDataOrigin, "sensitiveDataOrigin"},
                              {attr::kSignEncrypt, "sign"}};
constexpr Need kForbidden[] = {
    {attr::kDecrypt, "decrypt"}, {attr::kEncryptedDuplication, "encryptedDuplication"}, {attr::kX509Sign, "x509sign"}};

Error Wrong(std::string what) { return MakeError(Code::kDenied, "the attestation key " + what); }

}  // namespace

Result<PublicKey> KeyOf(const PublicArea& area) {
  if (area.type == Alg::kRsa) {
    if (area.rsa_modulus.size() * 8 != area.key_bits)
      return MakeError(Code::kMalformed, "an RSA modulus is not as long as keyBits says");
    return PublicKey::FromRsa(area.rsa_modulus, area.exponent == 0 ? kDefaultExponent : area.exponent);
  }
  const std::size_t field = area.curve == kCurveP256 ? 32 : 48;
  if (area.curve != kCurveP256 && area.curve != kCurveP384)
    return MakeError(Code::kUnsupported, "an ECC key is on another curve than P-256 and P-384");
  if (area.ecc_x.size() > field || area.ecc_y.size() > field)
    return MakeError(Code::kMalformed, "an ECC coordinate is longer than its field");
  const Buffer x = Padded(area.ecc_x, field);
  const Buffer y = Padded(area.ecc_y, field);
  return area.curve == kCurveP256 ? PublicKey::FromP256(x, y) : PublicKey::FromP384(x, y);
}

Result<Buffer> ObjectName(Bytes public_area) {
  ASSAY_TRY(const PublicArea area, DecodePublicArea(public_area));
  const EVP_MD* md = MdOf(area.name_alg);
  if (md == nullptr) return MakeError(Code::kUnsupported, "a nameAlg that is no known hash");
  Writer out;
  out.U16Be(static_cast<std::uint16_t>(area.name_alg));
  std::array<std::uint8_t, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  if (EVP_Digest(public_area.data(), public_area.size(), digest.data(), &size, md, nullptr) != 1)
    return MakeError(Code::kCrypto, OpenSslErrorText());
  out.Put(Bytes(digest).first(size));
  return std::move(out).Take();
}

Result<AikScheme> CheckAikArea(const PublicArea& area) {
  for (const auto& need : kRequired)
    if ((area.attributes & need.bit) == 0) return Wrong(std::string("is not ") + need.name);
  for (const auto& bad : kForbidden)
    if ((area.attributes & bad.bit) != 0) return Wrong(std::string("must not be ") + bad.name);
  if (area.name_alg != Alg::kSha256)
    return Wrong("has the name algorithm " + AlgName(area.name_alg) + ", sha256 is asked");
  if (area.symmetric != Alg::kNull) return Wrong("names a symmetric algorithm");
  if (area.scheme_hash != Alg::kSha256) return Wrong("signs over " + AlgName(area.scheme_hash) + ", sha256 is asked");
  if (area.type == Alg::kRsa) {
    if (area.key_bits != 2048) return Wrong("has " + std::to_string(area.key_bits) + " bits, 2048 are asked");
    if (area.exponent != 0 && area.exponent != kDefaultExponent) return Wrong("has an unusual exponent");
    if (area.scheme == Alg::kRsaSsa) return AikScheme{SignatureScheme::kRsaSsaSha256};
    if (area.scheme == Alg::kRsaPss) return AikScheme{SignatureScheme::kRsaPssSha256};
  } else if (area.curve == kCurveP256 && area.scheme == Alg::kEcdsa) {
    return AikScheme{SignatureScheme::kEcdsaP256Sha256};
  }
  return Wrong("is neither RSA-2048 with RSASSA or RSAPSS nor P-256 with ECDSA");
}

}  // namespace assay::tpm
