// SPDX-License-Identifier: Apache-2.0
#include "sdk/core/evidence.h"

#include <doctest/doctest.h>

#include "sdk/core/cbor.h"
#include "sdk/core/crypto.h"

namespace assay {
namespace {

struct Sample {
  Buffer entry = {0x81, 0x01};
  Buffer log = Buffer(300, 0x5A);
  EvidenceBody body;
  Sample() {
    body.attester = Sha256(AsBytes("attester"));
    body.boot.firmware_log = log;
    body.runtime.agent = Sha256(AsBytes("agent"));
    body.runtime.hooks = {"bprm_check_security", "mmap_file"};
    body.runtime.scope = "none";
    body.runtime.counters = {{"denied", 3}, {"allowed", 70000}};
    body.runtime.log = {entry};
    body.platform.lockdown = "integrity";
    body.platform.kernel_release = "6.1.0";
    body.platform.taint = 4096;
    TokenRequest request;
    request.audience = "title.example";
    request.match = "match-1";
    request.server_nonce = Sha256(AsBytes("nonce"));
    request.session_key_hash = Sha256(AsBytes("key"));
    body.request = request;
  }
};

TEST_CASE("an evidence body survives a round trip byte for byte") {
  Sample sample;
  const Buffer encoded = EncodeEvidenceBody(sample.body);
  const EvidenceBody decoded = DecodeEvidenceBody(encoded).value();
  CHECK(EncodeEvidenceBody(decoded) == encoded);
  CHECK(decoded.runtime.counters[1].value == 70000);
  CHECK(decoded.request->audience == "title.example");
  sample.body.request.reset();
  const Buffer without = EncodeEvidenceBody(sample.body);
  CHECK_FALSE(DecodeEvidenceBody(without).value().request.has_value());
}

TEST_CASE("a body cut at any byte or followed by one is refused") {
  const Buffer encoded = EncodeEvidenceBody(Sample().body);
  for (std::size_t size = 0; size < encoded.size(); ++size)
    CHECK_FALSE(DecodeEvidenceBody(Bytes(encoded).first(size)).ok());
  Buffer longer = encoded;
  longer.push_back(0);
  CHECK_FALSE(DecodeEvidenceBody(longer).ok());
}

TEST_CASE("a flipped bit in a body is refused or decodes to those very bytes") {
  const Buffer encoded = EncodeEvidenceBody(Sample().body);
  for (std::size_t bit = 0; bit < encoded.size() * 8; ++bit) {
    Buffer bad = encoded;
    bad[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
    const auto decoded = DecodeEvidenceBody(bad);
    if (decoded.ok()) CHECK(EncodeEvidenceBody(*decoded) == bad);
  }
}

TEST_CASE("an unmeasured caller has no digest to claim") {
  Sample sample;
  sample.body.request->caller.executable = Sha256(AsBytes("game"));
  CHECK_FALSE(DecodeEvidenceBody(EncodeEvidenceBody(sample.body)).ok());
  sample.body.request->caller.measured = true;
  CHECK(DecodeEvidenceBody(EncodeEvidenceBody(sample.body)).ok());
}

TEST_CASE("evidence keeps PCRs ascending and as long as their bank") {
  const Buffer value(32, 7);
  const Buffer nonce(limits::kChallenge, 1);
  Evidence evidence{.body = AsBytes("b"), .quote = AsBytes("q"), .signature = AsBytes("s"), .nonce = nonce, .pcrs = {}};
  evidence.pcrs.items[0] = {0, value};
  evidence.pcrs.items[1] = {14, value};
  evidence.pcrs.count = 2;
  const Buffer encoded = EncodeEvidence(evidence);
  const Evidence decoded = DecodeEvidence(encoded).value();
  CHECK(EncodeEvidence(decoded) == encoded);
  CHECK(decoded.pcrs.Mask() == 0x4001);
  CHECK(decoded.pcrs.Find(14) != nullptr);
  CHECK(decoded.pcrs.Find(7) == nullptr);
  for (std::size_t size = 0; size < encoded.size(); ++size)
    CHECK_FALSE(DecodeEvidence(Bytes(encoded).first(size)).ok());
  std::swap(evidence.pcrs.items[0].pcr, evidence.pcrs.items[1].pcr);
  CHECK_FALSE(DecodeEvidence(EncodeEvidence(evidence)).ok());
  evidence.pcrs.items[0].pcr = evidence.pcrs.items[1].pcr;
  CHECK_FALSE(DecodeEvidence(EncodeEvidence(evidence)).ok());
  const Buffer short_value(20, 7);
  evidence.pcrs.items[0] = {0, short_value};
  CHECK_FALSE(DecodeEvidence(EncodeEvidence(evidence)).ok());
}

TEST_CASE("extraData is the digest of the tagged CBOR array") {
  const Digest body = Sha256(AsBytes("body"));
  const Buffer nonce(limits::kChallenge, 9);
  const Digest binding = Sha256(AsBytes("binding"));
  for (const bool bound : {false, true}) {
    CborWriter expected;
    expected.Array(4);
    expected.TextString("assay/evidence/1");
    expected.ByteString(nonce);
    expected.ByteString(body);
    if (bound) expected.ByteString(binding);
    else expected.Null();
    CHECK(ExtraData(QuoteTag::kEvidence, nonce, body, bound ? Bytes(binding) : Bytes{}) == Sha256(expected.buffer()));
  }
  CHECK(ExtraData(QuoteTag::kEvidence, nonce, body, {}) != ExtraData(QuoteTag::kHostToken, nonce, body, {}));
}

}  // namespace
}  // namespace assay
