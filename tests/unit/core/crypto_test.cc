// SPDX-License-Identifier: Apache-2.0
#include "sdk/core/crypto.h"

#include <doctest/doctest.h>

namespace assay {
namespace {

TEST_CASE("SHA-256, HMAC and HKDF give their published values") {
  CHECK(ToHex(Sha256(AsBytes("abc"))) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(Sha256({AsBytes("a"), AsBytes("bc")}) == Sha256(AsBytes("abc")));
  // RFC 4231 test case 2
  CHECK(ToHex(HmacSha256(AsBytes("Jefe"), AsBytes("what do ya want for nothing?"))) ==
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  // RFC 5869 test case 1
  const Buffer key(22, 0x0b);
  const Secret okm =
      HkdfSha256(key, FromHex("000102030405060708090a0b0c").value(), FromHex("f0f1f2f3f4f5f6f7f8f9").value(), 42);
  CHECK(ToHex(okm.view()) == "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865");
}

TEST_CASE("a signature verifies under its own key and scheme only") {
  for (const KeyType type : {KeyType::kP256, KeyType::kRsa2048}) {
    const auto key = PrivateKey::Generate(type).value();
    const auto other = PrivateKey::Generate(type).value();
    const PublicKey pub = key.Public().value();
    const std::vector<SignatureScheme> schemes =
        type == KeyType::kP256 ? std::vector{SignatureScheme::kEcdsaP256Sha256}
                               : std::vector{SignatureScheme::kRsaSsaSha256, SignatureScheme::kRsaPssSha256};
    const Digest digest = Sha256(AsBytes("message"));
    for (const auto scheme : schemes) {
      Buffer signature = key.SignDigest(scheme, digest).value();
      for (int round = 0; round < 20; ++round)
        CHECK(pub.VerifyDigest(scheme, digest, signature) == SignatureCheck::kValid);
      CHECK(other.Public().value().VerifyDigest(scheme, digest, signature) == SignatureCheck::kInvalid);
      CHECK(pub.VerifyDigest(SignatureScheme::kEd25519, digest, signature) == SignatureCheck::kInvalid);
      for (const auto wrong : schemes)
        if (wrong != scheme) CHECK(pub.VerifyDigest(wrong, digest, signature) == SignatureCheck::kInvalid);
      signature[10] ^= 1;
      CHECK(pub.VerifyDigest(scheme, digest, signature) == SignatureCheck::kInvalid);
    }
  }
}

TEST_CASE("keys survive SPKI and PEM, and points off the curve are refused") {
  const auto key = PrivateKey::Generate(KeyType::kP256).value();
  const PublicKey pub = key.Public().value();
  CHECK(PublicKey::FromSpki(pub.Spki()).value().Spki() == pub.Spki());
  CHECK(PublicKey::FromPem(pub.Pem()).value().Spki() == pub.Spki());
  auto point = pub.Point().value();
  CHECK(PublicKey::FromP256(point.x, point.y).value().Spki() == pub.Spki());
  point.y[31] ^= 1;
  CHECK_FALSE(PublicKey::FromP256(point.x, point.y).ok());
  const auto rsa = PrivateKey::Generate(KeyType::kRsa2048).value().Public().value();
  const auto numbers = rsa.Rsa().value();
  CHECK(PublicKey::FromRsa(numbers.modulus, numbers.exponent).value().Spki() == rsa.Spki());
  CHECK_FALSE(PublicKey::FromRsa(numbers.modulus, 3).ok());
}

TEST_CASE("Ed25519 signs messages") {
  const auto key = PrivateKey::Generate(KeyType::kEd25519).value();
  Buffer signature = key.SignEd25519(AsBytes("note")).value();
  CHECK(key.Public().value().VerifyEd25519(AsBytes("note"), signature) == SignatureCheck::kValid);
  CHECK(key.Public().value().VerifyEd25519(AsBytes("note2"), signature) == SignatureCheck::kInvalid);
}

}  // namespace
}  // namespace assay
