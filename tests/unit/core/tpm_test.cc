// SPDX-License-Identifier: Apache-2.0
// TPM structures built field by field: each kind accepted, each field changed, truncated at every byte. The comparison
// with libtss2-mu and with a TPM is in tests/unit/tpm/.
#include "sdk/core/tpm.h"

#include <doctest/doctest.h>

#include <functional>

using namespace assay;

namespace {

const Buffer kSigner(34, 0x0B);

// A TPMS_ATTEST up to its `attested` part.
Writer AttestHead(std::uint16_t type, std::uint8_t safe = 1) {
  Writer out;
  out.U32Be(tpm::kGenerated);
  out.U16Be(type);
  out.PutU16Sized(kSigner);
  out.PutU16Sized(Buffer(32, 0xEE));
  out.U64Be(123456);
  out.U32Be(7);
  out.U32Be(2);
  out.U8(safe);
  out.U64Be(0x20191023'00163636);
  return out;
}

struct Selected {
  std::uint16_t hash;
  Buffer bits;
};

Buffer Quote(const std::vector<Selected>& selections, std::size_t digest = 32) {
  Writer out = AttestHead(0x8018);
  out.U32Be(static_cast<std::uint32_t>(selections.size()));
  for (const Selected& selected : selections) {
    out.U16Be(selected.hash);
    out.U8(static_cast<std::uint8_t>(selected.bits.size()));
    out.Put(selected.bits);
  }
  out.PutU16Sized(Buffer(digest, 0xD1));
  return std::move(out).Take();
}

Buffer TwoParts(std::uint16_t type, std::size_t second) {
  Writer out = AttestHead(type);
  out.PutU16Sized(kSigner);
  out.PutU16Sized(Buffer(second, 0xC2));
  return std::move(out).Take();
}

void CheckTruncations(const Buffer& whole, const std::function<bool(Bytes)>& accepts) {
  CHECK(accepts(whole));
  for (std::size_t size = 0; size < whole.size(); ++size) CHECK_FALSE(accepts(Bytes(whole).first(size)));
  Buffer longer = whole;
  longer.push_back(0);
  CHECK_FALSE(accepts(longer));
}

bool AcceptsAttest(Bytes bytes) { return tpm::DecodeAttest(bytes).ok(); }
bool AcceptsSignature(Bytes bytes) { return tpm::DecodeSignature(bytes).ok(); }
bool AcceptsArea(Bytes bytes) { return tpm::DecodePublicArea(bytes).ok(); }

tpm::PublicArea GoodAik(tpm::AikKind kind, Buffer& storage) {
  storage = tpm::AikTemplate(kind, Buffer(32, 0x77));
  return tpm::DecodePublicArea(storage).value();
}

std::string RefusalOf(const tpm::PublicArea& area) {
  const auto checked = tpm::CheckAikArea(area);
  if (checked.ok()) return "accepted";
  CHECK(checked.error().code == Code::kDenied);
  return checked.error().detail;
}

bool Names(const std::string& text, const char* word) { return text.find(word) != std::string::npos; }

}  // namespace

TEST_CASE("a quote decodes to the fields that were signed") {
  const Buffer encoded = Quote({{0x000B, {0xFF, 0x40, 0x80}}});
  const tpm::Attest attest = tpm::DecodeAttest(encoded).value();
  CHECK(attest.magic == tpm::kGenerated);
  CHECK(attest.type == 0x8018);
  CHECK(Equal(attest.qualified_signer, kSigner));
  CHECK(Equal(attest.extra_data, Buffer(32, 0xEE)));
  CHECK(attest.clock.clock == 123456);
  CHECK(attest.clock.reset_count == 7);
  CHECK(attest.clock.restart_count == 2);
  CHECK(attest.clock.safe);
  CHECK(attest.firmware_version == 0x20191023'00163636);
  REQUIRE(attest.selections.count == 1);
  CHECK(attest.selections.items[0] == tpm::PcrSelection{tpm::Alg::kSha256, 0x8040FF});
  CHECK(Equal(attest.pcr_digest, Buffer(32, 0xD1)));
}

TEST_CASE("quotes, creations and certifications are refused when cut anywhere or followed by a byte") {
  CheckTruncations(Quote({{0x000B, {1, 2, 3}}, {0x000C, {4, 5, 6}}}), AcceptsAttest);
  CheckTruncations(TwoParts(0x801A, 32), AcceptsAttest);
  CheckTruncations(TwoParts(0x8017, 34), AcceptsAttest);
}

TEST_CASE("creations and certifications decode to a Name and what follows it") {
  const Buffer creation = TwoParts(0x801A, 32);
  CHECK(Equal(tpm::DecodeAttest(creation)->object_name, kSigner));
  CHECK(Equal(tpm::DecodeAttest(creation)->creation_hash, Buffer(32, 0xC2)));
  const Buffer certify = TwoParts(0x8017, 34);
  CHECK(Equal(tpm::DecodeAttest(certify)->object_name, kSigner));
  CHECK(Equal(tpm::DecodeAttest(certify)->qualified_name, Buffer(34, 0xC2)));
}

TEST_CASE("another magic is reported, another type is unsupported") {
  Buffer encoded = Quote({{0x000B, {1, 0, 0}}});
  encoded[0] = 0;
  CHECK(tpm::DecodeAttest(encoded)->magic == (tpm::kGenerated & 0x00FFFFFF));
  for (const std::uint16_t type : std::array<std::uint16_t, 6>{0x8014, 0x8015, 0x8016, 0x8019, 0x801C, 0x0000}) {
    CHECK(tpm::DecodeAttest(AttestHead(type).buffer()).error().code == Code::kUnsupported);
  }
}

TEST_CASE("selections keep their limits: sixteen of them, four bytes each, PCRs to 23") {
  CHECK(AcceptsAttest(Quote({})));
  CHECK(AcceptsAttest(Quote(std::vector<Selected>(16, {0x000B, {1}}))));
  CHECK_FALSE(AcceptsAttest(Quote(std::vector<Selected>(17, {0x000B, {1}}))));
  CHECK(AcceptsAttest(Quote({{0x000B, {}}})));
  CHECK(AcceptsAttest(Quote({{0x000B, {1, 2, 3, 0}}})));
  CHECK_FALSE(AcceptsAttest(Quote({{0x000B, {1, 2, 3, 1}}})));
  CHECK_FALSE(AcceptsAttest(Quote({{0x000B, {1, 2, 3, 0, 0}}})));
  CHECK(AcceptsAttest(Quote({{0x000B, {1}}}, 64)));
  CHECK_FALSE(AcceptsAttest(Quote({{0x000B, {1}}}, 65)));
}

TEST_CASE("a clock is safe or not, nothing else") {
  for (const int safe : {0, 1, 2, 255}) {
    Writer out = AttestHead(0x801A, static_cast<std::uint8_t>(safe));
    out.PutU16Sized(kSigner);
    out.PutU16Sized({});
    CHECK(AcceptsAttest(out.buffer()) == (safe <= 1));
  }
}

TEST_CASE("signatures of the three schemes decode and take their raw form") {
  Writer rsa;
  rsa.U16Be(0x0014);
  rsa.U16Be(0x000B);
  rsa.PutU16Sized(Buffer(256, 0x42));
  CheckTruncations(rsa.buffer(), AcceptsSignature);
  CHECK(Equal(tpm::ToRaw(*tpm::DecodeSignature(rsa.buffer()))->view(), Buffer(256, 0x42)));
  Writer ecdsa;
  ecdsa.U16Be(0x0018);
  ecdsa.U16Be(0x000B);
  ecdsa.PutU16Sized(Buffer(31, 0x01));  // a TPM may leave leading zeros out
  ecdsa.PutU16Sized(Buffer(32, 0x02));
  CheckTruncations(ecdsa.buffer(), AcceptsSignature);
  Buffer expected(32, 0x01);
  expected[0] = 0;
  expected.insert(expected.end(), 32, 0x02);
  CHECK(Equal(tpm::ToRaw(*tpm::DecodeSignature(ecdsa.buffer()))->view(), expected));
  Buffer pss = rsa.buffer();
  pss[1] = 0x16;
  CHECK(tpm::DecodeSignature(pss)->scheme == tpm::Alg::kRsaPss);
}

TEST_CASE("signatures of other schemes, hashes and sizes are refused") {
  const auto encode = [](std::uint16_t scheme, std::uint16_t hash, std::size_t first, std::size_t second) {
    Writer out;
    out.U16Be(scheme);
    out.U16Be(hash);
    out.PutU16Sized(Buffer(first, 1));
    if (scheme == 0x0018) out.PutU16Sized(Buffer(second, 1));
    return std::move(out).Take();
  };
  CHECK(tpm::DecodeSignature(encode(0x0005, 0x000B, 32, 0)).error().code == Code::kUnsupported);
  CHECK(tpm::DecodeSignature(encode(0x0010, 0x000B, 32, 0)).error().code == Code::kUnsupported);
  CHECK(tpm::DecodeSignature(encode(0x0014, 0x0010, 256, 0)).error().code == Code::kMalformed);
  CHECK(tpm::DecodeSignature(encode(0x0014, 0x000B, 513, 0)).error().code == Code::kMalformed);
  CHECK(tpm::DecodeSignature(encode(0x0018, 0x000B, 67, 32)).error().code == Code::kMalformed);
  const Buffer p384 = encode(0x0018, 0x000B, 48, 48);
  CHECK(tpm::ToRaw(*tpm::DecodeSignature(p384)).error().code == Code::kMalformed);
}

TEST_CASE("public areas of every template decode and are refused when cut anywhere or followed by a byte") {
  for (const tpm::EkKind kind : {tpm::EkKind::kRsa2048Low, tpm::EkKind::kRsa2048High, tpm::EkKind::kEccP256Low,
                                 tpm::EkKind::kEccP256High, tpm::EkKind::kEccP384High}) {
    CheckTruncations(tpm::EkTemplate(kind), AcceptsArea);
  }
  for (const tpm::AikKind kind : {tpm::AikKind::kRsaSsa, tpm::AikKind::kRsaPss, tpm::AikKind::kEccP256})
    CheckTruncations(tpm::AikTemplate(kind, Buffer(32, 5)), AcceptsArea);
}

TEST_CASE("the canonical EK template is the profile's L-1") {
  // TCG EK Credential Profile, section B.3.3: head, PolicyA, AES-128-CFB, no scheme, 2048 bits, 256 zeros.
  Buffer expected = FromHex(
                        "0001000b000300b20020837197674484b3f81a90cc8d46a5d724fd52d76e06520b64f2a1da1b331469aa0006008000"
                        "4300100800000000000100")
                        .value();
  expected.resize(expected.size() + 256, 0);
  CHECK(tpm::EkTemplate(tpm::EkKind::kRsa2048Low) == expected);
  CHECK(tpm::EkCertificateIndex(tpm::EkKind::kRsa2048Low) == 0x01C00002);
  CHECK(tpm::EkCertificateIndex(tpm::EkKind::kEccP384High) == 0x01C00016);
}

TEST_CASE("an EK's area is its template with the key, and takes no other type of key") {
  const PublicKey rsa = PrivateKey::Generate(KeyType::kRsa2048)->Public().value();
  const PublicKey p384 = PrivateKey::Generate(KeyType::kP384)->Public().value();
  for (const tpm::EkKind kind : {tpm::EkKind::kRsa2048Low, tpm::EkKind::kRsa2048High}) {
    const Buffer encoded = tpm::EkPublicArea(kind, rsa).value();
    const tpm::PublicArea area = tpm::DecodePublicArea(encoded).value();
    CHECK(tpm::KeyOf(area)->SpkiDigest() == rsa.SpkiDigest());
    const Buffer name = tpm::ObjectName(encoded).value();
    CHECK(Equal(Bytes(name).first(2), Buffer{0x00, 0x0B}));
    CHECK(Equal(Bytes(name).subspan(2), Sha256(encoded)));
  }
  const Buffer encoded = tpm::EkPublicArea(tpm::EkKind::kEccP384High, p384).value();
  CHECK(tpm::KeyOf(*tpm::DecodePublicArea(encoded))->SpkiDigest() == p384.SpkiDigest());
  const Buffer name = tpm::ObjectName(encoded).value();
  CHECK(name.size() == 2 + 48);
  CHECK(tpm::EkPublicArea(tpm::EkKind::kRsa2048Low, p384).error().code == Code::kMalformed);
  CHECK(tpm::EkPublicArea(tpm::EkKind::kEccP384High, rsa).error().code == Code::kMalformed);
  CHECK(tpm::EkPublicArea(tpm::EkKind::kEccP256Low, p384).error().code == Code::kMalformed);
}

TEST_CASE("a key is taken from an area only when its numbers fit the type") {
  Buffer storage;
  tpm::PublicArea rsa = GoodAik(tpm::AikKind::kRsaSsa, storage);
  rsa.key_bits = 3072;
  CHECK(tpm::KeyOf(rsa).error().code == Code::kMalformed);
  tpm::PublicArea ecc = GoodAik(tpm::AikKind::kEccP256, storage);
  CHECK_FALSE(tpm::KeyOf(ecc).ok());  // the template's unique is no point of the curve
  ecc.curve = 5;
  CHECK(tpm::KeyOf(ecc).error().code == Code::kUnsupported);
  const Buffer long_x(33, 1);
  ecc.curve = 3;
  ecc.ecc_x = long_x;
  CHECK(tpm::KeyOf(ecc).error().code == Code::kMalformed);
}

TEST_CASE("the three kinds of AIK are accepted with their scheme") {
  Buffer storage;
  CHECK(tpm::CheckAikArea(GoodAik(tpm::AikKind::kRsaSsa, storage))->scheme == SignatureScheme::kRsaSsaSha256);
  CHECK(tpm::CheckAikArea(GoodAik(tpm::AikKind::kRsaPss, storage))->scheme == SignatureScheme::kRsaPssSha256);
  CHECK(tpm::CheckAikArea(GoodAik(tpm::AikKind::kEccP256, storage))->scheme == SignatureScheme::kEcdsaP256Sha256);
}

TEST_CASE("an AIK that lacks a property is denied by that property's name") {
  Buffer storage;
  struct Change {
    const char* word;
    std::function<void(tpm::PublicArea&)> apply;
  };
  const std::vector<Change> changes = {
      {"restricted", [](auto& a) { a.attributes &= ~tpm::attr::kRestricted; }},
      {"fixedTPM", [](auto& a) { a.attributes &= ~tpm::attr::kFixedTpm; }},
      {"fixedParent", [](auto& a) { a.attributes &= ~tpm::attr::kFixedParent; }},
      {"sensitiveDataOrigin", [](auto& a) { a.attributes &= ~tpm::attr::kSensitiveDataOrigin; }},
      {"sign", [](auto& a) { a.attributes &= ~tpm::attr::kSignEncrypt; }},
      {"decrypt", [](auto& a) { a.attributes |= tpm::attr::kDecrypt; }},
      {"encryptedDuplication", [](auto& a) { a.attributes |= tpm::attr::kEncryptedDuplication; }},
      {"sha1", [](auto& a) { a.name_alg = tpm::Alg::kSha1; }},
      {"sha384", [](auto& a) { a.scheme_hash = tpm::Alg::kSha384; }},
      {"symmetric", [](auto& a) { a.symmetric = tpm::Alg::kAes; }},
  };
  for (const tpm::AikKind kind : {tpm::AikKind::kRsaSsa, tpm::AikKind::kRsaPss, tpm::AikKind::kEccP256}) {
    for (const Change& change : changes) {
      tpm::PublicArea area = GoodAik(kind, storage);
      change.apply(area);
      CHECK_MESSAGE(Names(RefusalOf(area), change.word), change.word);
    }
  }
  tpm::PublicArea rsa = GoodAik(tpm::AikKind::kRsaSsa, storage);
  rsa.key_bits = 1024;
  CHECK(Names(RefusalOf(rsa), "1024"));
  rsa = GoodAik(tpm::AikKind::kRsaSsa, storage);
  rsa.exponent = 3;
  CHECK(Names(RefusalOf(rsa), "exponent"));
  rsa = GoodAik(tpm::AikKind::kRsaSsa, storage);
  rsa.scheme = tpm::Alg::kEcdsa;
  CHECK(RefusalOf(rsa) != "accepted");
  tpm::PublicArea ecc = GoodAik(tpm::AikKind::kEccP256, storage);
  ecc.curve = 4;
  CHECK(RefusalOf(ecc) != "accepted");
  ecc = GoodAik(tpm::AikKind::kEccP256, storage);
  ecc.scheme = tpm::Alg::kRsaSsa;
  CHECK(RefusalOf(ecc) != "accepted");
}

TEST_CASE("algorithms have names, and only hashes have digests") {
  CHECK(tpm::AlgName(tpm::Alg::kSha256) == "sha256");
  CHECK(tpm::AlgName(static_cast<tpm::Alg>(0x1234)) == "alg-0x1234");
  CHECK(tpm::DigestSize(tpm::Alg::kSha1) == 20);
  CHECK(tpm::DigestSize(tpm::Alg::kSha256) == 32);
  CHECK(tpm::DigestSize(tpm::Alg::kSha384) == 48);
  CHECK(tpm::DigestSize(tpm::Alg::kSha512) == 64);
  CHECK(tpm::DigestSize(tpm::Alg::kRsa) == 0);
}
