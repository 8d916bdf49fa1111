// SPDX-License-Identifier: Apache-2.0
#include "sdk/core/host_token.h"

#include <doctest/doctest.h>

#include "sdk/core/crypto.h"

namespace assay {
namespace {

struct Sample {
  Buffer values = Buffer(3 * 32, 0x11);
  Buffer entries = {2, 0, 0x81, 0x01, 1, 0, 0x80};
  Buffer attest = Buffer(145, 0x22);
  Buffer signature = Buffer(262, 0x33);
  HostToken token;
  Sample() {
    token.gate = GateState::kEnforce;
    token.sequence = 0x0102030405060708;
    token.attester = Sha256(AsBytes("attester"));
    token.server_nonce = Sha256(AsBytes("nonce"));
    token.session_key_hash = Sha256(AsBytes("channel"));
    token.policy = Sha256(AsBytes("policy"));
    token.policy_version = 9;
    token.pcr_mask = 0x4081;
    token.pcr_values = values;
    token.entries = entries;
    token.entry_count = 2;
    token.attest = attest;
    token.signature = signature;
  }
  Buffer Encode() const {
    Buffer out(limits::kHostToken);
    out.resize(SerializeHostToken(token, out).value());
    return out;
  }
};

TEST_CASE("a host token survives a round trip byte for byte") {
  const Sample sample;
  const Buffer encoded = sample.Encode();
  CHECK(encoded.size() == kHostTokenFixed + 96 + 7 + 145 + 262);
  CHECK(AsText(Bytes(encoded).first(3)) == "AHT");
  CHECK(encoded[8] == 0x08);  // little-endian
  const HostToken read = ParseHostToken(encoded).value();
  CHECK(read.sequence == sample.token.sequence);
  CHECK(read.gate == GateState::kEnforce);
  CHECK(read.policy == sample.token.policy);
  CHECK(Equal(read.signature, sample.signature));
  Buffer again(encoded.size());
  CHECK(SerializeHostToken(read, again).value() == encoded.size());
  CHECK(again == encoded);
  CHECK(HostTokenBodyDigest(read) == Sha256({Bytes(encoded).first(152), sample.entries}));
}

TEST_CASE("a host token cut at any byte or followed by one is refused") {
  const Buffer encoded = Sample().Encode();
  for (std::size_t size = 0; size < encoded.size(); ++size)
    CHECK_FALSE(ParseHostToken(Bytes(encoded).first(size)).ok());
  Buffer longer = encoded;
  longer.push_back(0);
  CHECK_FALSE(ParseHostToken(longer).ok());
}

TEST_CASE("a flipped bit is refused or decodes to those very bytes") {
  const Buffer encoded = Sample().Encode();
  for (std::size_t bit = 0; bit < encoded.size() * 8; ++bit) {
    Buffer bad = encoded;
    bad[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
    const auto read = ParseHostToken(bad);
    if (!read.ok()) continue;
    Buffer again(limits::kHostToken);
    again.resize(SerializeHostToken(*read, again).value());
    CHECK(again == bad);
  }
}

TEST_CASE("parts beyond their limits are neither written nor read") {
  const auto refused = [](auto change) {
    Sample sample;
    change(sample);
    Buffer out(limits::kHostToken);
    return !SerializeHostToken(sample.token, out).ok();
  };
  CHECK_FALSE(refused([](Sample&) {}));
  CHECK(refused([](Sample& s) { s.token.tag = QuoteTag::kEvidence; }));
  CHECK(refused([](Sample& s) { s.token.pcr_mask = 0x4001; }));
  CHECK(refused([](Sample& s) { s.token.pcr_mask = 0x1000081; }));
  CHECK(refused([](Sample& s) { s.token.entry_count = 1; }));
  CHECK(refused([](Sample& s) { s.token.attest = {}; }));
  CHECK(refused([](Sample& s) { s.token.signature = {}; }));
  Sample sample;
  Buffer small(sample.Encode().size() - 1);
  CHECK(SerializeHostToken(sample.token, small).error().code == Code::kLimit);
}

TEST_CASE("the body digest covers every field that the quote does not bind itself") {
  const auto changed = [](auto change) {
    Sample sample;
    const Digest before = HostTokenBodyDigest(sample.token);
    change(sample);
    return HostTokenBodyDigest(sample.token) != before;
  };
  CHECK(changed([](Sample& s) { s.token.tag = QuoteTag::kHeartbeat; }));
  CHECK(changed([](Sample& s) { s.token.gate = GateState::kAbsent; }));
  CHECK(changed([](Sample& s) { ++s.token.sequence; }));
  CHECK(changed([](Sample& s) { s.token.attester[31] ^= 1; }));
  CHECK(changed([](Sample& s) { s.token.server_nonce[0] ^= 1; }));
  CHECK(changed([](Sample& s) { s.token.session_key_hash[7] ^= 1; }));
  CHECK(changed([](Sample& s) { s.token.policy[3] ^= 1; }));
  CHECK(changed([](Sample& s) { ++s.token.policy_version; }));
  CHECK(changed([](Sample& s) { s.entries[2] ^= 1; }));
  CHECK(changed([](Sample& s) { --s.token.entry_count; }));
}

}  // namespace
}  // namespace assay
