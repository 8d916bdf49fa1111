// SPDX-License-Identifier: Apache-2.0
// Group `core`: what one check, codec or lookup costs, beside the bare primitive of the same run. V is one RSA-2048
// PKCS#1 verify by OpenSSL with key and context kept; P is one P-256 ECDSA verify likewise.
#include <openssl/rsa.h>

#include "perf/bench.h"
#include "perf/core_scene.h"
#include "tests/unit/sdk/counting_new.h"
#include "tests/unit/sdk/scene.h"
#include "verifier/attest/check_quote.h"
#include "verifier/enrollment/make_credential.h"
#include "verifier/store/aik_cache.h"

namespace assay::perf {
namespace {

constexpr std::size_t kImage = 1 << 20;

// A verification context of OpenSSL, prepared once.
struct Bare {
  explicit Bare(SignedDigest made, bool rsa) : input(std::move(made)), ctx(EVP_PKEY_CTX_new(input.key.get(), nullptr)) {
    bool ready = EVP_PKEY_verify_init(ctx.get()) == 1;
    if (rsa) ready = ready && EVP_PKEY_CTX_set_rsa_padding(ctx.get(), RSA_PKCS1_PADDING) == 1;
    Expect(ready && EVP_PKEY_CTX_set_signature_md(ctx.get(), EVP_sha256()) == 1, "the bare verify cannot be set up");
  }
  void Verify() const {
    const Buffer& s = input.signature;
    Expect(EVP_PKEY_verify(ctx.get(), s.data(), s.size(), input.digest.data(), input.digest.size()) == 1,
           "a bare verify failed");
  }
  SignedDigest input;
  EvpPkeyCtx ctx;
};

void Quotes(Group& group, std::size_t v, std::vector<std::function<void()>>& reports) {
  const auto scene = std::make_shared<EvidenceScene>();
  const auto key = std::make_shared<PublicKey>(scene->aik.Public().value());
  const auto evidence = std::make_shared<Evidence>(DecodeEvidence(scene->encoded).value());
  const attest::QuoteExpectation expected{.key = key.get(),
                                          .scheme = SignatureScheme::kRsaSsaSha256,
                                          .extra_data = scene->extra_data,
                                          .selection = {tpm::Alg::kSha256, kPcrMask}};
  const std::size_t quote = group.Add("quote verify, cached key", [scene, key, evidence, expected] {
    Expect(attest::CheckQuote(*evidence, expected).fault == attest::QuoteFault::kNone, "the quote was refused");
  });
  const std::size_t bind = group.Add("digest of an 8 KB body and extraData", [evidence] {
    Keep(ExtraData(QuoteTag::kEvidence, evidence->nonce, Sha256(evidence->body), Digest{}));
  });
  const std::size_t decode = group.Add("evidence decode, 8 KB", [scene] {
    const auto outer = DecodeEvidence(scene->encoded);
    Expect(outer.ok(), "evidence does not decode");
    const auto body = DecodeEvidenceBody(outer->body);
    Expect(body.ok() && body->runtime.log.size() == 4, "an evidence body does not decode");
    Keep(*body);
  });
  reports.emplace_back([&group, v, quote, bind, decode] {
    group.ReportRatio(quote, v, "V", 1.05);
    group.ReportTime(bind);
    group.ReportTime(decode, 300);
  });
}

void HostTokens(Group& group, std::size_t v, std::vector<std::function<void()>>& reports) {
  const auto scene = std::make_shared<test::Scene>(KeyType::kP256, KeyType::kRsa2048);
  const std::shared_ptr<assay_attester> attester(scene->Prepare().release(), assay_attester_free);
  const auto good = std::make_shared<Buffer>(scene->attester.MakeHostToken(scene->host_request).value());
  const auto parsed = std::make_shared<HostToken>(ParseHostToken(*good).value());
  const auto refuse = [&](const char* name, std::shared_ptr<Buffer> token, assay_host_token_options options,
                          assay_code code) {
    return group.Add(name, [scene, attester, token, options, code] {
      assay_host_result out;
      Expect(assay_verify_host_token(attester.get(), token->data(), token->size(), &options, &out) == code,
             "a host token got another code");
    });
  };
  // One bit of a part's last byte: of the PCR digest in a TPMS_ATTEST, so that what is compared before the signature
  // holds.
  const auto edited = [&](const Bytes& part) {
    auto token = std::make_shared<Buffer>(*good);
    (*token)[static_cast<std::size_t>(part.data() - good->data()) + part.size() - 1] ^= 1;
    return token;
  };
  static const Digest other_nonce = Sha256(AsBytes("another nonce"));
  assay_host_token_options stale = scene->host_options, foreign = scene->host_options;
  stale.now_ms += 60'000;
  foreign.server_nonce = other_nonce.data();
  auto body = std::make_shared<Buffer>(*good);
  const tpm::Attest quote = tpm::DecodeAttest(parsed->attest).value();
  (*body)[static_cast<std::size_t>(quote.extra_data.data() - good->data())] ^= 1;
  const std::size_t accept = refuse("SDK: host token accepted", good, scene->host_options, ASSAY_OK);
  const std::size_t late = refuse("SDK: host token refused, stale", good, stale, ASSAY_E_NONCE_AGE);
  const std::size_t nonce = refuse("SDK: host token refused, other nonce", good, foreign, ASSAY_E_NONCE);
  const std::size_t mismatch =
      refuse("SDK: host token refused, body is not in extraData", body, scene->host_options, ASSAY_E_BINDING);
  const std::size_t attest = refuse("SDK: host token refused, edited TPMS_ATTEST", edited(parsed->attest),
                                    scene->host_options, ASSAY_E_SIGNATURE);
  const std::size_t signature = refuse("SDK: host token refused, edited signature", edited(parsed->signature),
                                       scene->host_options, ASSAY_E_SIGNATURE);
  const std::size_t write = group.Add("host token serialize", [parsed, good] {
    std::array<std::uint8_t, limits::kHostToken> out;
    const auto size = SerializeHostToken(*parsed, out);
    Expect(size.ok() && *size == good->size(), "a host token cannot be serialized");
    Keep(out);
  });
  const std::size_t read = group.Add("host token parse", [good] {
    HostToken token;
    Expect(TryParseHostToken(*good, token), "a host token cannot be parsed");
    Keep(token);
  });
  reports.emplace_back([=, &group] {
    group.ReportRatio(accept, v, "V", 1.15);
    for (const std::size_t cheap : {late, nonce, mismatch}) group.ReportRatio(cheap, v, "V", 0.05);
    for (const std::size_t dear : {attest, signature}) group.ReportRatio(dear, v, "V", 1.1);
    for (const std::size_t codec : {write, read}) group.ReportTime(codec, 40);
    const std::size_t before = test::Allocations();
    assay_host_result out;
    for (const assay_host_token_options& options : {scene->host_options, stale, foreign}) {
      (void)assay_verify_host_token(attester.get(), good->data(), good->size(), &options, &out);
    }
    std::array<std::uint8_t, limits::kHostToken> space;
    HostToken token;
    Expect(SerializeHostToken(*parsed, space).ok() && TryParseHostToken(*good, token), "the host token codec failed");
    const double count = static_cast<double>(test::Allocations() - before);
    group.Report(
        {"SDK: allocations of 3 host token checks and the codec", "count", {count, count, count}, 0, Better::kLower});
  });
}

void ResultTokens(Group& group, std::size_t p256, std::vector<std::function<void()>>& reports) {
  const auto scene = std::make_shared<test::Scene>();
  const auto token =
      std::make_shared<std::string>(scene->attester.Sign(scene->attester.Claims(scene->request)).value());
  const auto verify = [scene, token] { Expect(scene->Verify(*token) == ASSAY_OK, "the result token was refused"); };
  const std::size_t accept = group.Add("SDK: ES256 result token accepted", verify);
  reports.emplace_back([=, &group] {
    group.ReportRatio(accept, p256, "P", 1.1);
    const std::size_t before = test::Allocations();
    verify();
    const double count = static_cast<double>(test::Allocations() - before);
    group.Report({"SDK: allocations of a result token check", "count", {count, count, count}, 0, Better::kLower});
  });
}

void Enrollment(Group& group, std::size_t v, std::vector<std::function<void()>>& reports) {
  const auto ek = std::make_shared<PublicKey>(PrivateKey::Generate(KeyType::kRsa2048).value().Public().value());
  const auto area =
      std::make_shared<Buffer>(RsaAikArea(PrivateKey::Generate(KeyType::kRsa2048).value().Public().value()));
  const auto name = std::make_shared<Buffer>(tpm::ObjectName(*area).value());
  const std::size_t credential = group.Add("MakeCredential in software, RSA-2048 EK", [ek, name] {
    const Digest secret{};
    Expect(enrollment::MakeCredential(tpm::EkKind::kRsa2048Low, *ek, *name, secret).ok(), "no credential");
  });
  const std::size_t check = group.Add("AIK public area check", [area] {
    const auto decoded = tpm::DecodePublicArea(*area);
    Expect(decoded.ok() && tpm::CheckAikArea(*decoded).ok(), "the AIK was refused");
    Expect(tpm::ObjectName(*area).ok(), "the AIK has no name");
  });
  const std::size_t parse = group.Add("AIK key parsed from its public area", [area] {
    Expect(tpm::KeyOf(tpm::DecodePublicArea(*area).value()).ok(), "no key");
  });
  const auto message = std::make_shared<EnrollBegin>(MakeEnrollBegin(*ek, *ek));
  const auto encoded = std::make_shared<Buffer>(EncodeEnrollBegin(*message));
  const std::size_t encode =
      group.Add("enrollment codec, encode begin (3 KB)", [message] { Keep(EncodeEnrollBegin(*message)); });
  const std::size_t decode = group.Add("enrollment codec, decode begin (3 KB)", [encoded] {
    Expect(DecodeEnrollBegin(*encoded).ok(), "the message does not decode");
  });
  reports.emplace_back([=, &group] {
    group.ReportRatio(credential, v, "V", 1.3);
    group.ReportTime(check, 3000);
    group.ReportTime(parse);
    group.ReportTime(encode, 400);
    group.ReportTime(decode, 300);
  });
}

void Lookups(Group& group, std::vector<std::function<void()>>& reports) {
  const std::size_t hosts = group.quick() ? 16 : 512;
  const Buffer area = RsaAikArea(PrivateKey::Generate(KeyType::kRsa2048).value().Public().value());
  const auto scene = std::make_shared<StoreScene>(hosts, area);
  const auto cache = std::make_shared<store::AikCache>(scene->store(), 16 * hosts);
  const auto attesters = std::make_shared<std::vector<Digest>>();
  for (std::size_t n = 0; n < hosts; ++n) attesters->push_back(StoreScene::Attester(n * 7 % hosts));
  for (const auto& attester : *attesters) Expect(cache->Find(attester).ok(), "an AIK is missing");
  const auto next = [attesters, at = std::make_shared<std::size_t>(0)]() -> const Digest& {
    return (*attesters)[++*at % attesters->size()];
  };
  const std::size_t cached =
      group.Add("AIK lookup, cached", [scene, cache, next] { Expect(cache->Find(next()).ok(), "an AIK is missing"); });
  const std::size_t row = group.Add("AIK lookup, from SQLite", [scene, next] {
    const auto found = scene->store().FindAik(next());
    Expect(found.ok() && found->has_value(), "an AIK is missing");
  });
  const std::size_t whole = group.Add("AIK record from SQLite: AIK, host, key parsed", [scene, cache, next] {
    Expect(cache->Reload(next()).ok(), "an AIK is missing");
  });
  reports.emplace_back([=, &group] {
    group.ReportTime(cached, 1000);
    group.ReportTime(row, 4000);
    group.ReportTime(whole);
  });
}

void Hashing(Group& group, std::vector<std::function<void()>>& reports) {
  const auto image = std::make_shared<Buffer>(kImage, 0x7F);
  const std::size_t ours = group.Add("SHA-256 of 1 MiB", [image] { Keep(Sha256(*image)); });
  const std::size_t raw = group.Add("SHA-256 of 1 MiB, EVP_Digest", [image] {
    static EVP_MD* const md = EVP_MD_fetch(nullptr, "SHA256", nullptr);
    Digest out;
    Expect(EVP_Digest(image->data(), image->size(), out.data(), nullptr, md, nullptr) == 1, "EVP_Digest failed");
    Keep(out);
  });
  reports.emplace_back([=, &group] {
    group.Report({"SHA-256 of 1 MiB, speed", "of EVP_Digest", group.Ratio(raw, ours), 0.95, Better::kHigher});
  });
}

int Main(int argc, char** argv) {
  Group group("core", argc, argv);
  const Bare rsa(SignRsa(), true), p256(SignP256(), false);
  const std::size_t v = group.Add("V: bare RSA-2048 verify", [&rsa] { rsa.Verify(); });
  const std::size_t p = group.Add("P: bare P-256 verify", [&p256] { p256.Verify(); });
  const std::size_t null = group.Add("null: an empty operation", [] {});
  std::vector<std::function<void()>> reports;
  Quotes(group, v, reports);
  HostTokens(group, v, reports);
  ResultTokens(group, p, reports);
  Enrollment(group, v, reports);
  Lookups(group, reports);
  Hashing(group, reports);
  group.Run();
  for (const std::size_t base : {v, p, null}) group.ReportTime(base);
  for (const auto& report : reports) report();
  return group.Print();
}

}  // namespace
}  // namespace assay::perf

int main(int argc, char** argv) { return assay::perf::Main(argc, argv); }
