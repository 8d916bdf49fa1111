// SPDX-License-Identifier: Apache-2.0
#include "verifier/enrollment/ek_chain.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "tests/unit/enrollment/cert_maker.h"

namespace assay::enrollment {
namespace {

using test::CaSpec;
using test::Cert;
using test::CertSpec;
using test::EkSpec;
using test::kNow;
using test::MakeCert;

// Root and intermediate keys cost little on P-256; EKs are RSA-2048, made once.
const PrivateKey& RootKey() {
  static const PrivateKey key = PrivateKey::Generate(KeyType::kP256).value();
  return key;
}
const PrivateKey& MiddleKey() {
  static const PrivateKey key = PrivateKey::Generate(KeyType::kP256).value();
  return key;
}
const PrivateKey& EkKey() {
  static const PrivateKey key = PrivateKey::Generate(KeyType::kRsa2048).value();
  return key;
}

struct Chain {
  CertSpec root_spec = CaSpec("Root");
  CertSpec middle_spec = CaSpec("Middle", 0);
  CertSpec ek_spec = EkSpec();
  EkChainRules rules{};
  tpm::EkKind kind = tpm::EkKind::kRsa2048Low;
  std::int64_t now = kNow;
  bool send_middle = true;
  bool configure_middle = false;
  bool send_root = false;
  bool other_root = false;  // the bundle holds a root of the same name with another key
  bool middle_as_root = false;
  bool same_key = true;

  EkChainVerdict Judge() {
    const PublicKey ek = EkKey().Public().value();
    const Cert root = MakeCert(root_spec, RootKey().Public().value(), nullptr, RootKey());
    const Cert middle = MakeCert(middle_spec, MiddleKey().Public().value(), &root, RootKey());
    const Cert leaf = MakeCert(ek_spec, ek, &middle, MiddleKey());
    const Cert stranger = MakeCert(root_spec, MiddleKey().Public().value(), nullptr, MiddleKey());
    const TrustBundle bundle = TrustBundle::FromPem(other_root       ? stranger.pem
                                                    : middle_as_root ? middle.pem
                                                                     : root.pem,
                                                    configure_middle ? middle.pem : "")
                                   .value();
    std::vector<Buffer> sent;
    if (send_middle) sent.push_back(middle.der);
    if (send_root) sent.push_back(root.der);
    static const PublicKey other = PrivateKey::Generate(KeyType::kRsa2048).value().Public().value();
    return CheckEkChain({leaf.der, sent, kind, same_key ? &ek : &other, &bundle, rules, now});
  }
};

TEST_CASE("an EK certificate with a path to a configured root is trusted, whoever supplies the intermediate") {
  const EkChainVerdict verdict = Chain{}.Judge();
  CHECK_MESSAGE(verdict.outcome == EkChainOutcome::kTrusted, verdict.detail);
  CHECK(verdict.anchor == "CN=Root");
  CHECK(verdict.certificate != Digest{});
  CHECK(Chain{.send_middle = false, .configure_middle = true}.Judge().outcome == EkChainOutcome::kTrusted);
  CHECK(Chain{.send_middle = false, .middle_as_root = true}.Judge().outcome == EkChainOutcome::kTrusted);
}

TEST_CASE("without a path to a configured root nothing is trusted, even when the endpoint sends the root") {
  CHECK(Chain{.send_middle = false}.Judge().outcome == EkChainOutcome::kNoPath);
  const EkChainVerdict stranger = Chain{.send_root = true, .other_root = true}.Judge();
  CHECK(stranger.outcome != EkChainOutcome::kTrusted);
  CHECK(Chain{.send_middle = false, .send_root = true}.Judge().outcome == EkChainOutcome::kNoPath);
}

TEST_CASE("a certificate about another key, or of another kind of key, is refused") {
  CHECK(Chain{.same_key = false}.Judge().outcome == EkChainOutcome::kKeyMismatch);
  CHECK(Chain{.kind = tpm::EkKind::kEccP256Low}.Judge().outcome == EkChainOutcome::kWrongKeyType);
  CHECK(Chain{.kind = tpm::EkKind::kEccP384High}.Judge().outcome == EkChainOutcome::kWrongKeyType);
  CHECK(Chain{.kind = tpm::EkKind::kRsa2048High}.Judge().outcome == EkChainOutcome::kTrusted);
}

TEST_CASE("the purpose must be an EK's where it is stated, and may be unstated") {
  Chain chain;
  chain.ek_spec.extensions[2] = {NID_ext_key_usage, "serverAuth"};
  CHECK(chain.Judge().outcome == EkChainOutcome::kNotForEk);
  chain.ek_spec.extensions[2] = {NID_ext_key_usage, "2.23.133.8.3"};
  CHECK(chain.Judge().outcome == EkChainOutcome::kNotForEk);
  chain.ek_spec.extensions[2] = {NID_ext_key_usage, "serverAuth,2.23.133.8.1"};
  CHECK(chain.Judge().outcome == EkChainOutcome::kTrusted);
  chain.ek_spec.extensions.erase(chain.ek_spec.extensions.begin() + 2);
  CHECK(chain.Judge().outcome == EkChainOutcome::kTrusted);
  chain.ek_spec.extensions[2] = {NID_key_usage, "critical,digitalSignature"};
  CHECK(chain.Judge().outcome == EkChainOutcome::kNotForEk);
  chain.ek_spec.extensions.erase(chain.ek_spec.extensions.begin() + 2);
  CHECK(chain.Judge().outcome == EkChainOutcome::kTrusted);
}

TEST_CASE("a CA certificate is no EK certificate, and an intermediate must be a CA in its own words") {
  Chain leaf_ca;
  leaf_ca.ek_spec.extensions[0] = {NID_basic_constraints, "critical,CA:TRUE"};
  CHECK(leaf_ca.Judge().outcome == EkChainOutcome::kLeafIsCa);
  Chain no_ca;
  no_ca.middle_spec.extensions[0] = {NID_basic_constraints, "critical,CA:FALSE"};
  CHECK(no_ca.Judge().outcome == EkChainOutcome::kBadPath);
  Chain usage_only;  // keyCertSign without basicConstraints
  usage_only.middle_spec.extensions.erase(usage_only.middle_spec.extensions.begin());
  CHECK(usage_only.Judge().outcome == EkChainOutcome::kBadPath);
  Chain no_sign;
  no_sign.middle_spec.extensions[1] = {NID_key_usage, "critical,digitalSignature"};
  CHECK(no_sign.Judge().outcome != EkChainOutcome::kTrusted);
}

TEST_CASE("path lengths hold") {
  Chain chain;
  chain.root_spec = CaSpec("Root", 0);  // no intermediate allowed below
  CHECK(chain.Judge().outcome == EkChainOutcome::kBadPath);
  chain.root_spec = CaSpec("Root", 1);
  CHECK(chain.Judge().outcome == EkChainOutcome::kTrusted);
}

TEST_CASE("an expired EK certificate passes only by policy, an expired or future path never") {
  Chain chain;
  chain.ek_spec.to = kNow - 10;
  CHECK(chain.Judge().outcome == EkChainOutcome::kTrusted);
  chain.rules.allow_expired_leaf = false;
  CHECK(chain.Judge().outcome == EkChainOutcome::kExpired);
  Chain middle;
  middle.middle_spec.to = kNow - 10;
  CHECK(middle.Judge().outcome == EkChainOutcome::kBadPath);
  Chain root;
  root.root_spec.to = kNow - 10;
  CHECK(root.Judge().outcome == EkChainOutcome::kBadPath);
  Chain future;
  future.ek_spec.from = kNow + 10;
  CHECK(future.Judge().outcome == EkChainOutcome::kExpired);
}

TEST_CASE("unknown critical extensions are refused, in the EK certificate and on the path") {
  Chain leaf;
  leaf.ek_spec.raw_critical = {"1.3.6.1.4.1.99999.1"};
  CHECK(leaf.Judge().outcome == EkChainOutcome::kBadPath);
  Chain middle;
  middle.middle_spec.raw_critical = {"1.3.6.1.4.1.99999.1"};
  CHECK(middle.Judge().outcome == EkChainOutcome::kBadPath);
}

TEST_CASE("an EK certificate whose key is written as RSAES-OAEP passes and fails as any other") {
  const auto judge = [](const std::function<void(Chain&)>& change) {
    Chain chain;
    chain.ek_spec.oaep = true;
    change(chain);
    const EkChainOutcome outcome = chain.Judge().outcome;
    Chain readable;  // both ways of verifying must agree
    change(readable);
    CHECK((readable.Judge().outcome == EkChainOutcome::kTrusted) == (outcome == EkChainOutcome::kTrusted));
    return outcome;
  };
  CHECK(judge([](Chain&) {}) == EkChainOutcome::kTrusted);
  CHECK(judge([](Chain& c) { c.send_middle = false; }) == EkChainOutcome::kNoPath);
  CHECK(judge([](Chain& c) { c.other_root = true; }) != EkChainOutcome::kTrusted);
  CHECK(judge([](Chain& c) { c.send_middle = false, c.middle_as_root = true; }) == EkChainOutcome::kTrusted);
  CHECK(judge([](Chain& c) { c.root_spec = CaSpec("Root", 0); }) == EkChainOutcome::kBadPath);
  CHECK(judge([](Chain& c) { c.root_spec = CaSpec("Root", 1); }) == EkChainOutcome::kTrusted);
  CHECK(judge([](Chain& c) { c.ek_spec.to = kNow - 10; }) == EkChainOutcome::kTrusted);
  CHECK(judge([](Chain& c) { c.ek_spec.to = kNow - 10, c.rules.allow_expired_leaf = false; }) ==
        EkChainOutcome::kExpired);
  CHECK(judge([](Chain& c) { c.ek_spec.from = kNow + 10; }) == EkChainOutcome::kExpired);
  CHECK(judge([](Chain& c) { c.middle_spec.to = kNow - 10; }) == EkChainOutcome::kBadPath);
  CHECK(judge([](Chain& c) { c.root_spec.to = kNow - 10; }) == EkChainOutcome::kBadPath);
  CHECK(judge([](Chain& c) { c.ek_spec.raw_critical = {"1.3.6.1.4.1.99999.1"}; }) == EkChainOutcome::kBadPath);
  CHECK(judge([](Chain& c) { c.middle_spec.raw_critical = {"1.3.6.1.4.1.99999.1"}; }) == EkChainOutcome::kBadPath);
  CHECK(judge([](Chain& c) {
          c.middle_spec.extensions[0] = {NID_basic_constraints, "critical,CA:FALSE"};
        }) == EkChainOutcome::kBadPath);
  CHECK(judge([](Chain& c) { c.middle_spec.extensions.erase(c.middle_spec.extensions.begin()); }) ==
        EkChainOutcome::kBadPath);
  CHECK(judge([](Chain& c) {
          c.middle_spec.extensions[1] = {NID_key_usage, "critical,digitalSignature"};
        }) != EkChainOutcome::kTrusted);
  CHECK(judge([](Chain& c) { c.ek_spec.hash = EVP_sha1(); }) == EkChainOutcome::kWeakSignature);
  CHECK(judge([](Chain& c) { c.middle_spec.hash = EVP_sha1(); }) == EkChainOutcome::kWeakSignature);
  CHECK(judge([](Chain& c) { c.same_key = false; }) == EkChainOutcome::kKeyMismatch);
}

TEST_CASE("SHA-1 signatures pass only by policy") {
  Chain chain;
  chain.ek_spec.hash = EVP_sha1();
  CHECK(chain.Judge().outcome == EkChainOutcome::kWeakSignature);
  chain.rules.allow_sha1 = true;
  CHECK(chain.Judge().outcome == EkChainOutcome::kTrusted);
  Chain strong;
  strong.middle_spec.hash = EVP_sha384();
  CHECK(strong.Judge().outcome == EkChainOutcome::kTrusted);
}

TEST_CASE("no byte of an EK certificate can change without losing trust, and no truncation passes") {
  const PublicKey ek = EkKey().Public().value();
  const Cert root = MakeCert(CaSpec("Root"), RootKey().Public().value(), nullptr, RootKey());
  const Cert leaf = MakeCert(EkSpec(), ek, &root, RootKey());
  const TrustBundle bundle = TrustBundle::FromPem(root.pem, "").value();
  const auto judge = [&](Bytes der) {
    return CheckEkChain({der, {}, tpm::EkKind::kRsa2048Low, &ek, &bundle, {}, kNow}).outcome;
  };
  REQUIRE(judge(leaf.der) == EkChainOutcome::kTrusted);
  for (std::size_t i = 0; i < leaf.der.size(); ++i) {
    Buffer changed = leaf.der;
    changed[i] ^= 1;
    CHECK_MESSAGE(judge(changed) != EkChainOutcome::kTrusted, "byte " << i);
    CHECK_MESSAGE(judge(Bytes(leaf.der).first(i)) != EkChainOutcome::kTrusted, "cut at " << i);
  }
}

TEST_CASE("more intermediates than the limit, or one that does not parse, refuse the chain") {
  const PublicKey ek = EkKey().Public().value();
  const Cert root = MakeCert(CaSpec("Root"), RootKey().Public().value(), nullptr, RootKey());
  const Cert leaf = MakeCert(EkSpec(), ek, &root, RootKey());
  const TrustBundle bundle = TrustBundle::FromPem(root.pem, "").value();
  const auto judge = [&](const std::vector<Buffer>& sent) {
    return CheckEkChain({leaf.der, sent, tpm::EkKind::kRsa2048Low, &ek, &bundle, {}, kNow}).outcome;
  };
  CHECK(judge(std::vector<Buffer>(limits::kIntermediates, root.der)) == EkChainOutcome::kTrusted);
  CHECK(judge(std::vector<Buffer>(limits::kIntermediates + 1, root.der)) == EkChainOutcome::kBadPath);
  CHECK(judge({Buffer{1, 2, 3}}) == EkChainOutcome::kBadPath);
}

TEST_CASE("storage headers and padding are trimmed, other tails are refused") {
  const Cert leaf = MakeCert(EkSpec(), EkKey().Public().value(), nullptr, RootKey());
  const auto trimmed = [&](const Buffer& raw) {
    return TrimEkCertificate(raw).ok() && Equal(*TrimEkCertificate(raw), leaf.der);
  };
  CHECK(trimmed(leaf.der));
  for (const std::uint8_t pad : Buffer{0x00, 0xFF, 0x11}) {
    Buffer padded = leaf.der;
    padded.resize(padded.size() + 300, pad);
    CHECK(trimmed(padded));
    padded.back() ^= 1;
    CHECK_FALSE(TrimEkCertificate(padded).ok());
  }
  Writer header;
  header.U16Be(0x1001), header.U8(0), header.U16Be(static_cast<std::uint16_t>(leaf.der.size() + 2)),
      header.U16Be(0x1002), header.Put(leaf.der);
  CHECK(trimmed(header.buffer()));
  Buffer padded = header.buffer();
  padded.resize(padded.size() + 9, 0xFF);
  CHECK(trimmed(padded));
  for (const std::size_t byte : {std::size_t{2}, std::size_t{3}, std::size_t{5}, std::size_t{6}}) {
    Buffer broken = header.buffer();
    broken[byte] ^= 0x40;
    CHECK_FALSE(TrimEkCertificate(broken).ok());
  }
  CHECK_FALSE(TrimEkCertificate({}).ok());
  CHECK_FALSE(TrimEkCertificate(Buffer(limits::kCertificate + 1, 0)).ok());
}

TEST_CASE("a bundle with a broken block or without a root is refused") {
  const Cert root = MakeCert(CaSpec("Root"), RootKey().Public().value(), nullptr, RootKey());
  CHECK(TrustBundle::FromPem("# a comment\n" + root.pem + "\n# more\n" + root.pem, "").value().roots() == 2);
  CHECK_FALSE(TrustBundle::FromPem("", "").ok());
  CHECK_FALSE(TrustBundle::FromPem("", root.pem).ok());
  std::string broken = root.pem;
  broken[60] = '!';
  CHECK_FALSE(TrustBundle::FromPem(root.pem + broken, "").ok());
  CHECK_FALSE(TrustBundle::FromPem(root.pem + root.pem.substr(0, root.pem.size() / 2), "").ok());
}

TEST_CASE("a bundle loads from files and directories, and a file without PEM is an error that names it") {
  std::string pattern = (std::filesystem::temp_directory_path() / "assay-roots-XXXXXX").string();
  REQUIRE(mkdtemp(pattern.data()) != nullptr);
  const std::filesystem::path directory = pattern;
  const Cert root = MakeCert(CaSpec("Root"), RootKey().Public().value(), nullptr, RootKey());
  const Cert other = MakeCert(CaSpec("Other"), MiddleKey().Public().value(), nullptr, MiddleKey());
  const auto put = [&](const char* name, const std::string& text) { std::ofstream(directory / name) << text; };
  put("a.pem", root.pem);
  put("b.crt", other.pem);
  put("README", "no certificate");
  CHECK(LoadTrustBundle({directory}, {}).value()->roots() == 2);
  CHECK(LoadTrustBundle({directory / "a.pem"}, {directory / "b.crt"}).value()->intermediates() == 1);
  put("c.crt", std::string(AsText(root.der)));
  const auto broken = LoadTrustBundle({directory}, {});
  REQUIRE_FALSE(broken.ok());
  CHECK(broken.error().detail.find("c.crt") != std::string::npos);
  CHECK_FALSE(LoadTrustBundle({directory / "none.pem"}, {}).ok());
  CHECK_FALSE(LoadTrustBundle({}, {}).ok());
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace assay::enrollment
