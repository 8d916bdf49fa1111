// SPDX-License-Identifier: Apache-2.0
#include "verifier/attest/check_quote.h"

#include <doctest/doctest.h>

#include <functional>

#include "tests/support/forge.h"

namespace assay::attest {
namespace {

constexpr std::uint32_t kMask = 0x4081;  // PCR 0, 7, 14

struct Case {
  PrivateKey key;
  PublicKey pub;
  SignatureScheme scheme;
  test::ForgedEvidence evidence;
  test::QuoteFields fields;
  QuoteExpectation expected;

  explicit Case(SignatureScheme with)
      : key(PrivateKey::Generate(with == SignatureScheme::kEcdsaP256Sha256 ? KeyType::kP256 : KeyType::kRsa2048)
                .value()),
        pub(key.Public().value()),
        scheme(with) {
    evidence.body = ToBuffer(AsBytes("body"));
    for (const std::uint8_t pcr : {std::uint8_t{0}, std::uint8_t{7}, std::uint8_t{14}})
      evidence.pcrs.emplace_back(pcr, Buffer(32, pcr));
    fields.extra_data = ExtraData(QuoteTag::kEvidence, evidence.nonce, Sha256(evidence.body), {});
    fields.selections = {{tpm::Alg::kSha256, kMask}};
    fields.pcr_digest = test::DigestOfPcrs(evidence.pcrs, kMask);
    expected = {
        .key = &pub, .scheme = scheme, .extra_data = fields.extra_data, .selection = {tpm::Alg::kSha256, kMask}};
    Sign();
  }
  void Sign() { test::SignQuote(evidence, key, scheme, fields); }
  QuoteFault Fault() const { return CheckQuote(evidence.View(), expected).fault; }
};

TEST_CASE("a quote that answers what was asked passes under each scheme") {
  for (const auto scheme :
       {SignatureScheme::kRsaSsaSha256, SignatureScheme::kRsaPssSha256, SignatureScheme::kEcdsaP256Sha256}) {
    const Case c(scheme);
    const Evidence view = c.evidence.View();
    const QuoteCheck check = CheckQuote(view, c.expected);
    CHECK(check.fault == QuoteFault::kNone);
    CHECK(check.attest.clock.clock == 100'000);
    CHECK(check.attest.clock.reset_count == 3);
  }
}

TEST_CASE("one wrong field fails at its own mark") {
  struct Row {
    const char* name;
    QuoteFault fault;
    std::function<void(Case&)> breaks;
  };
  const std::vector<Row> rows = {
      {"another scheme than the record's", QuoteFault::kScheme,
       [](Case& c) { c.expected.scheme = SignatureScheme::kRsaPssSha256; }},
      {"magic", QuoteFault::kMagic,
       [](Case& c) {
         c.fields.magic = 0xFF544348;
         c.Sign();
       }},
      {"a certify structure", QuoteFault::kMalformed,
       [](Case& c) {
         c.fields.type = 0x8017;
         c.Sign();
       }},
      {"another nonce", QuoteFault::kBinding, [](Case& c) { c.expected.extra_data[0] ^= 1; }},
      {"fewer PCRs", QuoteFault::kSelection,
       [](Case& c) {
         c.fields.selections = {{tpm::Alg::kSha256, 0x4001}};
         c.fields.pcr_digest = test::DigestOfPcrs(c.evidence.pcrs, 0x4001);
         c.Sign();
       }},
      {"other PCRs", QuoteFault::kSelection,
       [](Case& c) {
         c.fields.selections = {{tpm::Alg::kSha256, 0x4082}};
         c.Sign();
       }},
      {"no PCRs", QuoteFault::kSelection,
       [](Case& c) {
         c.fields.selections = {{tpm::Alg::kSha256, 0}};
         c.fields.pcr_digest = Sha256(Bytes{});
         c.Sign();
       }},
      {"no selection", QuoteFault::kSelection,
       [](Case& c) {
         c.fields.selections = {};
         c.fields.pcr_digest = Sha256(Bytes{});
         c.Sign();
       }},
      {"the SHA-1 bank", QuoteFault::kSelection,
       [](Case& c) {
         c.fields.selections = {{tpm::Alg::kSha1, kMask}};
         c.Sign();
       }},
      {"two banks", QuoteFault::kSelection,
       [](Case& c) {
         c.fields.selections.push_back({tpm::Alg::kSha1, kMask});
         c.Sign();
       }},
      {"another PCR value", QuoteFault::kPcrDigest, [](Case& c) { c.evidence.pcrs[1].second[5] ^= 1; }},
      {"a PCR left out of the list", QuoteFault::kSelection, [](Case& c) { c.evidence.pcrs.pop_back(); }},
      {"a PCR more in the list", QuoteFault::kSelection,
       [](Case& c) { c.evidence.pcrs.emplace_back(15, Buffer(32, 1)); }},
      {"another PCR digest", QuoteFault::kPcrDigest,
       [](Case& c) {
         c.fields.pcr_digest[0] ^= 1;
         c.Sign();
       }},
      {"bits of the signature", QuoteFault::kSignature, [](Case& c) { c.evidence.signature[40] ^= 1; }},
      {"the clock edited", QuoteFault::kSignature,
       [](Case& c) {
         c.fields.clock.clock += 1;
         c.evidence.quote = test::EncodeQuote(c.fields);
       }},
      {"another host's key", QuoteFault::kSignature,
       [](Case& c) {
         c.key = PrivateKey::Generate(KeyType::kRsa2048).value();
         c.Sign();
       }},
  };
  for (const auto& row : rows) {
    CAPTURE(row.name);
    Case c(SignatureScheme::kRsaSsaSha256);
    row.breaks(c);
    CHECK(c.Fault() == row.fault);
  }
}

TEST_CASE("no single-bit flip of quote or signature passes, and no truncation") {
  Case c(SignatureScheme::kEcdsaP256Sha256);
  for (Buffer* part : {&c.evidence.quote, &c.evidence.signature}) {
    const Buffer good = *part;
    for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
      (*part)[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
      CHECK(c.Fault() != QuoteFault::kNone);
      *part = good;
    }
    for (std::size_t size = 0; size < good.size(); ++size) {
      part->resize(size);
      CHECK(c.Fault() != QuoteFault::kNone);
      *part = good;
    }
    part->push_back(0);
    CHECK(c.Fault() != QuoteFault::kNone);
    *part = good;
  }
  CHECK(c.Fault() == QuoteFault::kNone);
}

TEST_CASE("a body or nonce other than the one bound is refused") {
  Case c(SignatureScheme::kRsaSsaSha256);
  c.expected.extra_data = ExtraData(QuoteTag::kEvidence, c.evidence.nonce, Sha256(AsBytes("other body")), {});
  CHECK(c.Fault() == QuoteFault::kBinding);
  c.expected.extra_data = ExtraData(QuoteTag::kHostToken, c.evidence.nonce, Sha256(c.evidence.body), {});
  CHECK(c.Fault() == QuoteFault::kBinding);
  c.expected.extra_data =
      ExtraData(QuoteTag::kEvidence, c.evidence.nonce, Sha256(c.evidence.body), Sha256(AsBytes("another connection")));
  CHECK(c.Fault() == QuoteFault::kBinding);
}

}  // namespace
}  // namespace assay::attest
