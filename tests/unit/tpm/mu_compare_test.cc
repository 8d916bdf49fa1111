// SPDX-License-Identifier: Apache-2.0
// Our decoders beside libtss2-mu on real structures of a TPM and tens of thousands of mutations of them. What we accept
// it must accept with the same fields; what only it accepts must fall under one of the restrictions listed here.
#include <tss2/tss2_mu.h>

#include <algorithm>
#include <functional>
#include <random>

#include "tests/unit/sdk/counting_new.h"
#include "tests/unit/tpm/scene.h"

using namespace assay;
using namespace assay::test;

namespace {

template <typename B>
bool Same(Bytes ours, const B& theirs) {
  return Equal(ours, Bytes(theirs.buffer, theirs.size));
}
bool SameName(Bytes ours, const TPM2B_NAME& theirs) { return Equal(ours, Bytes(theirs.name, theirs.size)); }
template <typename T>
bool Is(tpm::Alg ours, T theirs) {
  return static_cast<std::uint16_t>(ours) == theirs;
}
bool KnownHash(std::uint16_t alg) { return tpm::DigestSize(static_cast<tpm::Alg>(alg)) != 0; }

// ---- TPMS_ATTEST
bool SameSelections(const tpm::PcrSelections& ours, const TPML_PCR_SELECTION& theirs) {
  if (ours.count != theirs.count) return false;
  for (std::size_t i = 0; i < ours.count; ++i) {
    std::uint32_t mask = 0;
    for (unsigned byte = 0; byte < theirs.pcrSelections[i].sizeofSelect; ++byte)
      mask |= static_cast<std::uint32_t>(theirs.pcrSelections[i].pcrSelect[byte]) << (8 * byte);
    if (!Is(ours.items[i].hash, theirs.pcrSelections[i].hash) || ours.items[i].mask != mask) return false;
  }
  return true;
}

bool SameAttest(const tpm::Attest& ours, const TPMS_ATTEST& theirs) {
  const bool header =
      ours.magic == theirs.magic && ours.type == theirs.type &&
      SameName(ours.qualified_signer, theirs.qualifiedSigner) && Same(ours.extra_data, theirs.extraData) &&
      ours.clock.clock == theirs.clockInfo.clock && ours.clock.reset_count == theirs.clockInfo.resetCount &&
      ours.clock.restart_count == theirs.clockInfo.restartCount && ours.clock.safe == (theirs.clockInfo.safe == 1) &&
      ours.firmware_version == theirs.firmwareVersion;
  if (!header) return false;
  switch (theirs.type) {
    case TPM2_ST_ATTEST_QUOTE:
      return SameSelections(ours.selections, theirs.attested.quote.pcrSelect) &&
             Same(ours.pcr_digest, theirs.attested.quote.pcrDigest);
    case TPM2_ST_ATTEST_CREATION:
      return SameName(ours.object_name, theirs.attested.creation.objectName) &&
             Same(ours.creation_hash, theirs.attested.creation.creationHash);
    case TPM2_ST_ATTEST_CERTIFY:
      return SameName(ours.object_name, theirs.attested.certify.name) &&
             SameName(ours.qualified_name, theirs.attested.certify.qualifiedName);
    default: return false;
  }
}

// We refuse: other types than quote, creation and certify; a `safe` that is neither YES nor NO; PCRs from 24 up.
bool WeRefuse(const TPMS_ATTEST& theirs) {
  if (theirs.type != TPM2_ST_ATTEST_QUOTE && theirs.type != TPM2_ST_ATTEST_CREATION &&
      theirs.type != TPM2_ST_ATTEST_CERTIFY)
    return true;
  if (theirs.clockInfo.safe > 1) return true;
  if (theirs.type != TPM2_ST_ATTEST_QUOTE) return false;
  const TPML_PCR_SELECTION& list = theirs.attested.quote.pcrSelect;
  return std::any_of(list.pcrSelections, list.pcrSelections + list.count,
                     [](const TPMS_PCR_SELECTION& s) { return s.sizeofSelect > 3 && s.pcrSelect[3] != 0; });
}

// ---- TPMT_SIGNATURE
bool SameSignature(const tpm::Signature& ours, const TPMT_SIGNATURE& theirs) {
  if (!Is(ours.scheme, theirs.sigAlg) || !Is(ours.hash, theirs.signature.any.hashAlg)) return false;
  if (theirs.sigAlg == TPM2_ALG_ECDSA)
    return Same(ours.ecdsa_r, theirs.signature.ecdsa.signatureR) &&
           Same(ours.ecdsa_s, theirs.signature.ecdsa.signatureS);
  return Same(ours.rsa, theirs.signature.rsassa.sig);
}

// We refuse: other schemes; a hash we do not know; ECDSA numbers longer than P-521's.
bool WeRefuse(const TPMT_SIGNATURE& theirs) {
  const bool ecdsa = theirs.sigAlg == TPM2_ALG_ECDSA;
  if (!ecdsa && theirs.sigAlg != TPM2_ALG_RSASSA && theirs.sigAlg != TPM2_ALG_RSAPSS) return true;
  if (!KnownHash(theirs.signature.any.hashAlg)) return true;
  return ecdsa && (theirs.signature.ecdsa.signatureR.size > 66 || theirs.signature.ecdsa.signatureS.size > 66);
}

// ---- TPMT_PUBLIC
bool SamePublic(const tpm::PublicArea& ours, const TPMT_PUBLIC& theirs) {
  const bool header = Is(ours.type, theirs.type) && Is(ours.name_alg, theirs.nameAlg) &&
                      ours.attributes == theirs.objectAttributes && Same(ours.auth_policy, theirs.authPolicy);
  if (!header) return false;
  const TPMT_SYM_DEF_OBJECT& symmetric = theirs.parameters.asymDetail.symmetric;
  if (!Is(ours.symmetric, symmetric.algorithm)) return false;
  if (symmetric.algorithm != TPM2_ALG_NULL &&
      (ours.symmetric_bits != symmetric.keyBits.sym || !Is(ours.symmetric_mode, symmetric.mode.sym)))
    return false;
  if (theirs.type == TPM2_ALG_RSA) {
    const TPMS_RSA_PARMS& rsa = theirs.parameters.rsaDetail;
    const bool hashed = rsa.scheme.scheme != TPM2_ALG_NULL && rsa.scheme.scheme != TPM2_ALG_RSAES;
    return Is(ours.scheme, rsa.scheme.scheme) && (!hashed || Is(ours.scheme_hash, rsa.scheme.details.anySig.hashAlg)) &&
           ours.key_bits == rsa.keyBits && ours.exponent == rsa.exponent && Same(ours.rsa_modulus, theirs.unique.rsa);
  }
  const TPMS_ECC_PARMS& ecc = theirs.parameters.eccDetail;
  return Is(ours.scheme, ecc.scheme.scheme) &&
         (ecc.scheme.scheme == TPM2_ALG_NULL || Is(ours.scheme_hash, ecc.scheme.details.anySig.hashAlg)) &&
         ours.curve == ecc.curveID && Is(ours.kdf, ecc.kdf.scheme) && Same(ours.ecc_x, theirs.unique.ecc.x) &&
         Same(ours.ecc_y, theirs.unique.ecc.y);
}

template <std::size_t N>
bool OneOf(std::uint16_t value, const std::uint16_t (&known)[N]) {
  return std::find(known, known + N, value) != known + N;
}

// We refuse: other types than RSA and ECC; hashes we do not know; symmetric algorithms other than AES; schemes other
// than the ones the decoder lists; ECC coordinates longer than P-521's.
bool WeRefuse(const TPMT_PUBLIC& theirs) {
  constexpr std::uint16_t kPlain[] = {TPM2_ALG_NULL, TPM2_ALG_RSAES};
  constexpr std::uint16_t kHashed[] = {TPM2_ALG_RSASSA, TPM2_ALG_RSAPSS, TPM2_ALG_OAEP, TPM2_ALG_ECDSA};
  if ((theirs.type != TPM2_ALG_RSA && theirs.type != TPM2_ALG_ECC) || !KnownHash(theirs.nameAlg)) return true;
  const TPMT_SYM_DEF_OBJECT& symmetric = theirs.parameters.asymDetail.symmetric;
  if (symmetric.algorithm != TPM2_ALG_NULL && symmetric.algorithm != TPM2_ALG_AES) return true;
  const bool rsa = theirs.type == TPM2_ALG_RSA;
  const TPMT_ECC_SCHEME& ecc = theirs.parameters.eccDetail.scheme;
  const TPMT_RSA_SCHEME& rsa_scheme = theirs.parameters.rsaDetail.scheme;
  const std::uint16_t scheme = rsa ? rsa_scheme.scheme : ecc.scheme;
  const std::uint16_t hash = rsa ? rsa_scheme.details.anySig.hashAlg : ecc.details.anySig.hashAlg;
  if (!OneOf(scheme, kPlain) && !OneOf(scheme, kHashed)) return true;
  if (OneOf(scheme, kHashed) && !KnownHash(hash)) return true;
  if (rsa) return false;
  const TPMT_KDF_SCHEME& kdf = theirs.parameters.eccDetail.kdf;
  if (kdf.scheme != TPM2_ALG_NULL && !KnownHash(kdf.details.mgf1.hashAlg)) return true;
  return theirs.unique.ecc.x.size > 66 || theirs.unique.ecc.y.size > 66;
}

// ---- mutations
struct Tally {
  std::size_t inputs = 0, accepted = 0, refused_by_us = 0;
};
using Judge = std::function<void(const Buffer& input, Tally& tally)>;

void Mutate(const Buffer& seed, const Judge& judge, Tally& tally) {
  judge(seed, tally);
  for (std::size_t bit = 0; bit < seed.size() * 8; ++bit) {
    Buffer flipped = seed;
    flipped[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
    judge(flipped, tally);
  }
  for (std::size_t size = 0; size < seed.size(); ++size)
    judge(Buffer(seed.begin(), seed.begin() + static_cast<std::ptrdiff_t>(size)), tally);
  for (std::size_t extra = 1; extra < 4; ++extra) {
    Buffer longer = seed;
    longer.resize(seed.size() + extra, 0);
    judge(longer, tally);
  }
  // Any two bytes may be a size or an algorithm.
  constexpr std::uint16_t kWords[] = {0,    1,    2,    3,    4,     0x0B,  0x0C,  0x10,  0x14,
                                      0x16, 0x18, 0x1A, 0x20, 0x22,  0x23,  0x25,  0x40,  0x41,
                                      0x42, 0x43, 0x44, 0x45, 0x100, 0x200, 0x201, 0xFFFF};
  for (std::size_t at = 0; at + 1 < seed.size(); ++at) {
    const int old = seed[at] << 8 | seed[at + 1];
    std::vector<int> words(std::begin(kWords), std::end(kWords));
    words.insert(words.end(), {old - 1, old + 1});
    for (const int word : words) {
      Buffer changed = seed;
      changed[at] = static_cast<std::uint8_t>(word >> 8);
      changed[at + 1] = static_cast<std::uint8_t>(word);
      judge(changed, tally);
    }
  }
  std::mt19937 random(20261201);  // the same inputs in every run
  for (int i = 0; i < 3000; ++i) {
    Buffer noisy = seed;
    for (auto changes = 1 + random() % 4; changes > 0; --changes)
      noisy[random() % noisy.size()] = static_cast<std::uint8_t>(random());
    if (random() % 4 == 0) noisy.resize(random() % noisy.size());
    judge(noisy, tally);
  }
}

// Both decoders on one input; a difference is reported with the input.
template <typename Theirs, typename Ours, typename Decode, typename Unmarshal, typename SameFields>
Judge Compare(Decode decode, Unmarshal unmarshal, SameFields same) {
  return [=](const Buffer& input, Tally& tally) {
    ++tally.inputs;
    Theirs theirs{};
    std::size_t used = 0;
    const bool they_accept =
        unmarshal(input.data(), input.size(), &used, &theirs) == TSS2_RC_SUCCESS && used == input.size();
    const Result<Ours> ours = decode(input);
    if (ours.ok()) {
      ++tally.accepted;
      const bool agreed = they_accept && same(*ours, theirs);
      if (!agreed) FAIL_CHECK("accepted here only, or with other fields: ", ToHex(input));
    } else if (they_accept) {
      ++tally.refused_by_us;
      if (!WeRefuse(theirs))
        FAIL_CHECK("refused here without a documented reason: ", ToHex(input), " ", ours.error().ToString());
    }
  };
}

// One of each: made by a TPM, and certify by hand since the device makes none.
struct Seeds {
  std::vector<Buffer> attests, signatures, areas;
};

Seeds MakeSeeds() {
  Bench bench;
  Seeds seeds;
  const Digest extra = Sha256(AsBytes("seed"));
  for (const tpm::AikKind kind : {tpm::AikKind::kRsaSsa, tpm::AikKind::kRsaPss, tpm::AikKind::kEccP256}) {
    const tpm::CreatedKey aik = Must(bench.device->CreateAik(kind, extra));
    const tpm::QuoteResult quote = Must(bench.device->Quote(aik.handle, kSomePcrs, extra));
    const tpm::AttestedBytes creation = Must(bench.device->CertifyCreation(aik.handle, aik, extra));
    seeds.areas.push_back(aik.public_area);
    seeds.signatures.push_back(quote.signature);
    if (kind == tpm::AikKind::kRsaSsa) seeds.attests = {quote.attest, creation.attest};
    REQUIRE(bench.device->FlushTransient(aik.handle).ok());
  }
  const PublicKey p384 = Must(Must(PrivateKey::Generate(KeyType::kP384)).Public());
  seeds.areas.push_back(Must(tpm::EkPublicArea(tpm::EkKind::kEccP384High, p384)));
  seeds.areas.push_back(tpm::EkTemplate(tpm::EkKind::kRsa2048Low));
  Buffer certify = seeds.attests[1];  // creation: Name, then a hash as long as a Name's; certify: two Names
  certify[5] = 0x17;
  seeds.attests.push_back(certify);
  return seeds;
}

const Seeds& SeedsOnce() {
  static const Seeds seeds = MakeSeeds();
  return seeds;
}

void Report(const std::string& what, const Tally& tally) {
  MESSAGE(what, ": ", tally.inputs, " inputs, ", tally.accepted, " accepted by both, ", tally.refused_by_us,
          " refused by a restriction of ours");
  CHECK(tally.inputs > 5000);
  CHECK(tally.accepted > 100);
  CHECK(tally.refused_by_us > 0);
}

}  // namespace

TEST_CASE("TPMS_ATTEST decodes as libtss2-mu decodes it, or is refused by a documented restriction") {
  Tally tally;
  const auto judge = Compare<TPMS_ATTEST, tpm::Attest>(tpm::DecodeAttest, Tss2_MU_TPMS_ATTEST_Unmarshal, SameAttest);
  for (const Buffer& seed : SeedsOnce().attests) Mutate(seed, judge, tally);
  Report("TPMS_ATTEST", tally);
}

TEST_CASE("TPMT_SIGNATURE decodes as libtss2-mu decodes it, or is refused by a documented restriction") {
  Tally tally;
  const auto judge =
      Compare<TPMT_SIGNATURE, tpm::Signature>(tpm::DecodeSignature, Tss2_MU_TPMT_SIGNATURE_Unmarshal, SameSignature);
  for (const Buffer& seed : SeedsOnce().signatures) Mutate(seed, judge, tally);
  Report("TPMT_SIGNATURE", tally);
}

TEST_CASE("TPMT_PUBLIC decodes as libtss2-mu decodes it, or is refused by a documented restriction") {
  Tally tally;
  const auto judge =
      Compare<TPMT_PUBLIC, tpm::PublicArea>(tpm::DecodePublicArea, Tss2_MU_TPMT_PUBLIC_Unmarshal, SamePublic);
  for (const Buffer& seed : SeedsOnce().areas) Mutate(seed, judge, tally);
  Report("TPMT_PUBLIC", tally);
}

TEST_CASE("decoding what is well formed allocates nothing") {
  const Seeds& seeds = SeedsOnce();
  const std::size_t before = Allocations();
  bool all = true;
  for (const Buffer& attest : seeds.attests) all = all && tpm::DecodeAttest(attest).ok();
  for (const Buffer& signature : seeds.signatures) all = all && tpm::ToRaw(*tpm::DecodeSignature(signature)).ok();
  for (const Buffer& area : seeds.areas) all = all && tpm::DecodePublicArea(area).ok();
  const std::size_t after = Allocations();
  CHECK(all);
  CHECK(after == before);
  const Buffer allocated(1, 1);
  CHECK(Allocations() > after);  // the count counts
}

TEST_CASE("a TPM2B unwraps as libtss2-mu unwraps it") {
  for (const std::size_t size : {0U, 1U, 32U, 64U, 65U, 300U}) {
    Buffer encoded(size + 2, 0xA5);
    encoded[0] = static_cast<std::uint8_t>(size >> 8);
    encoded[1] = static_cast<std::uint8_t>(size);
    for (std::size_t cut = 0; cut <= encoded.size() + 1; ++cut) {
      Buffer input = encoded;
      input.resize(cut, 0);
      TPM2B_DIGEST theirs{};
      std::size_t used = 0;
      const bool they_accept =
          Tss2_MU_TPM2B_DIGEST_Unmarshal(input.data(), input.size(), &used, &theirs) == TSS2_RC_SUCCESS &&
          used == input.size();
      const auto ours = tpm::UnwrapTpm2b(input, sizeof theirs.buffer, "a digest");
      CHECK(ours.ok() == they_accept);
      if (ours.ok()) CHECK(Same(*ours, theirs));
    }
  }
}

TEST_CASE("the PCR selections we encode are the ones that libtss2-mu encodes") {
  tpm::PcrSelections ours;
  TPML_PCR_SELECTION theirs{};
  for (const auto& [hash, mask] : {std::pair{tpm::Alg::kSha256, 0x40FFU}, std::pair{tpm::Alg::kSha384, 0x800001U}}) {
    ours.items[ours.count++] = {hash, mask};
    TPMS_PCR_SELECTION& next = theirs.pcrSelections[theirs.count++];
    next.hash = static_cast<TPMI_ALG_HASH>(hash);
    next.sizeofSelect = 3;
    for (unsigned byte = 0; byte < 3; ++byte) next.pcrSelect[byte] = static_cast<BYTE>(mask >> (8 * byte));
  }
  Buffer encoded(256);
  std::size_t size = 0;
  REQUIRE(Tss2_MU_TPML_PCR_SELECTION_Marshal(&theirs, encoded.data(), encoded.size(), &size) == TSS2_RC_SUCCESS);
  encoded.resize(size);
  CHECK(tpm::EncodePcrSelections(ours) == encoded);
}
