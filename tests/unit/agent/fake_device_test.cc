// SPDX-License-Identifier: Apache-2.0
// The fake must be what a verifier takes for a TPM, or the tests over it prove nothing.
#include "tests/support/fake_device.h"

#include <doctest/doctest.h>

#include "verifier/enrollment/make_credential.h"

namespace assay::test {
namespace {

SignatureScheme SchemeOf(const FakeDevice&, Bytes area) {
  return tpm::CheckAikArea(tpm::DecodePublicArea(area).value()).value().scheme;
}

TEST_CASE("a quote of the fake TPM decodes, verifies under its AIK and covers the registers") {
  for (const auto kind : {tpm::AikKind::kRsaSsa, tpm::AikKind::kRsaPss, tpm::AikKind::kEccP256}) {
    FakeDevice device;
    const PublicKey aik = device.MakeAik(kind);
    REQUIRE(device.ExtendPcr(7, Sha256(AsBytes("x"))).ok());
    const Digest extra = Sha256(AsBytes("extra"));
    const auto quote = device.Quote(tpm::kDefaultAikHandle, {tpm::Alg::kSha256, 0x81}, extra).value();
    const auto attest = tpm::DecodeAttest(quote.attest).value();
    CHECK(attest.magic == tpm::kGenerated);
    CHECK(Equal(attest.extra_data, extra));
    CHECK(Equal(attest.pcr_digest, Sha256({Bytes(quote.pcrs[0]), Bytes(quote.pcrs[1])})));
    CHECK(quote.pcrs[1] == Sha256({Bytes(Digest{}), Bytes(Sha256(AsBytes("x")))}));
    const auto raw = tpm::ToRaw(tpm::DecodeSignature(quote.signature).value()).value();
    const auto scheme = SchemeOf(device, device.ReadPublic(tpm::kDefaultAikHandle).value());
    CHECK(aik.VerifyDigest(scheme, Sha256(quote.attest), raw.view()) == SignatureCheck::kValid);
  }
}

TEST_CASE("a credential made in software opens in the fake TPM, and only for the AIK it was made for") {
  FakeDevice device;
  const auto ek = device.CreateEk(tpm::EkKind::kRsa2048Low).value();
  const auto aik = device.CreateAik(tpm::AikKind::kEccP256, Buffer(32, 1)).value();
  const auto other = device.CreateAik(tpm::AikKind::kEccP256, Buffer(32, 2)).value();
  const auto ek_key = tpm::KeyOf(tpm::DecodePublicArea(ek.public_area).value()).value();
  const Buffer secret(32, 0x5A);
  const auto made =
      enrollment::MakeCredential(tpm::EkKind::kRsa2048Low, ek_key, tpm::ObjectName(aik.public_area).value(), secret)
          .value();
  const auto opened = device.ActivateCredential(aik.handle, ek.handle, made.credential_blob, made.encrypted_secret);
  REQUIRE(opened.ok());
  CHECK(Equal(opened->view(), secret));
  CHECK_FALSE(device.ActivateCredential(other.handle, ek.handle, made.credential_blob, made.encrypted_secret).ok());
}

TEST_CASE("the same template gives the same key and another unique another one") {
  FakeDevice device;
  const auto first = device.CreateAik(tpm::AikKind::kEccP256, Buffer(32, 1)).value();
  const auto again = device.CreateAik(tpm::AikKind::kEccP256, Buffer(32, 1)).value();
  const auto other = device.CreateAik(tpm::AikKind::kEccP256, Buffer(32, 2)).value();
  CHECK(first.public_area == again.public_area);
  CHECK(first.public_area != other.public_area);
  CHECK(first.handle != again.handle);
}

TEST_CASE("a creation certificate names the object that was made") {
  FakeDevice device;
  (void)device.MakeAik(tpm::AikKind::kEccP256);
  const auto ek = device.CreateEk(tpm::EkKind::kEccP256Low).value();
  const auto attested = device.CertifyCreation(tpm::kDefaultAikHandle, ek, Buffer(32, 9)).value();
  const auto attest = tpm::DecodeAttest(attested.attest).value();
  CHECK(Equal(attest.object_name, tpm::ObjectName(ek.public_area).value()));
  CHECK(Equal(attest.extra_data, Buffer(32, 9)));
  tpm::CreatedKey forged = ek;
  forged.creation_hash[0] ^= 1;
  CHECK_FALSE(device.CertifyCreation(tpm::kDefaultAikHandle, forged, {}).ok());
}

}  // namespace
}  // namespace assay::test
