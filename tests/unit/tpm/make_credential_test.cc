// SPDX-License-Identifier: Apache-2.0
// What MakeCredential makes in software, a TPM activates; what was changed on the way or made for another, it does not.
#include "verifier/enrollment/make_credential.h"

#include "tests/unit/tpm/scene.h"

using namespace assay;
using namespace assay::test;

namespace {

struct Keys {
  Bench bench;
  tpm::CreatedKey ek;
  tpm::CreatedKey aik;
  explicit Keys(tpm::EkKind kind)
      : ek(Must(bench.device->CreateEk(kind))),
        aik(Must(bench.device->CreateAik(tpm::AikKind::kEccP256, Sha256(AsBytes("aik"))))) {}
  Result<Secret> Activate(const enrollment::MadeCredential& made) {
    return bench.device->ActivateCredential(aik.handle, ek.handle, made.credential_blob, made.encrypted_secret);
  }
};

const std::vector<tpm::EkKind> kAllKinds = {tpm::EkKind::kRsa2048Low, tpm::EkKind::kRsa2048High,
                                            tpm::EkKind::kEccP256Low, tpm::EkKind::kEccP256High,
                                            tpm::EkKind::kEccP384High};

}  // namespace

TEST_CASE("a TPM activates our credential for every kind of EK") {
  for (const tpm::EkKind kind : kAllKinds) {
    Keys keys(kind);
    const Buffer name = Must(tpm::ObjectName(keys.aik.public_area));
    const std::size_t longest = kind == tpm::EkKind::kEccP384High ? 48 : 32;
    for (const std::size_t size : {std::size_t{1}, std::size_t{16}, longest}) {
      const Buffer secret(size, 0x3C);
      const auto made = Must(enrollment::MakeCredential(kind, KeyOfArea(keys.ek.public_area), name, secret));
      const Secret activated = Must(keys.Activate(made));
      CHECK(Equal(activated.view(), secret));
    }
    CHECK(enrollment::MakeCredential(kind, KeyOfArea(keys.ek.public_area), name, Buffer(longest + 1, 1)).error().code ==
          Code::kLimit);
  }
}

TEST_CASE("a TPM activates nothing for another key, and nothing that was changed") {
  for (const tpm::EkKind kind : {tpm::EkKind::kRsa2048Low, tpm::EkKind::kEccP384High}) {
    Keys keys(kind);
    const PublicKey ek = KeyOfArea(keys.ek.public_area);
    const Buffer name = Must(tpm::ObjectName(keys.aik.public_area));
    const Buffer secret(32, 0x3C);
    CHECK_FALSE(
        keys.Activate(Must(enrollment::MakeCredential(kind, ek, Must(tpm::ObjectName(keys.ek.public_area)), secret)))
            .ok());
    const auto made = Must(enrollment::MakeCredential(kind, ek, name, secret));
    for (std::size_t at = 2; at < made.credential_blob.size(); at += 5) {
      auto changed = made;
      changed.credential_blob[at] ^= 1;
      CHECK_FALSE(keys.Activate(changed).ok());
    }
    for (std::size_t at = 2; at < made.encrypted_secret.size(); at += 41) {
      auto changed = made;
      changed.encrypted_secret[at] ^= 1;
      CHECK_FALSE(keys.Activate(changed).ok());
    }
    for (const std::size_t cut : {std::size_t{0}, std::size_t{1}, made.credential_blob.size() - 1}) {
      auto changed = made;
      changed.credential_blob.resize(cut);
      CHECK_FALSE(keys.Activate(changed).ok());
    }
    CHECK(Must(TpmHandles(*keys.bench.tpm, kLoadedSessions)).empty());
    CHECK(keys.Activate(made).ok());
  }
}

TEST_CASE("a credential for another type of key than the kind says is refused") {
  const PublicKey p256 = Must(Must(PrivateKey::Generate(KeyType::kP256)).Public());
  CHECK(enrollment::MakeCredential(tpm::EkKind::kRsa2048Low, p256, Buffer(34, 1), Buffer(32, 1)).error().code ==
        Code::kUnsupported);
  CHECK(enrollment::MakeCredential(tpm::EkKind::kEccP384High, p256, Buffer(34, 1), Buffer(32, 1)).error().code ==
        Code::kUnsupported);
}
