// SPDX-License-Identifier: Apache-2.0
#include "sdk/core/agent_protocol.h"

#include <doctest/doctest.h>

#include "sdk/core/crypto.h"

namespace assay::local {
namespace {

std::vector<Request> Samples() {
  EvidenceRequest evidence;
  evidence.challenge.nonce = Buffer(limits::kChallenge, 7);
  evidence.challenge.selection = {tpm::Alg::kSha256, 0x4081};
  evidence.channel_binding = Buffer(32, 5);
  evidence.work = 12;
  return {
      StatusRequest{},
      WaitWorkRequest{30000},
      evidence,
      DeliverRequest{12, "connected", {1, 2, 3}, {}},
      ResultTokenRequest{"title", "match", Sha256(AsBytes("n")), Sha256(AsBytes("k")), 5000},
      HostTokenRequest{"title", true, 4, Sha256(AsBytes("n")), Sha256(AsBytes("k"))},
      ShowEvidenceRequest{},
      AttesterRequest{},
      DoctorRequest{},
  };
}

TEST_CASE("every request has one encoding and refuses cut, flipped and longer input") {
  std::uint8_t kind = 1;
  for (const Request& request : Samples()) {
    CHECK(KindOf(request) == static_cast<Kind>(kind++));
    const Buffer encoded = EncodeRequest(request);
    const auto decoded = DecodeRequest(encoded);
    REQUIRE(decoded.ok());
    CHECK(KindOf(*decoded) == KindOf(request));
    CHECK(EncodeRequest(*decoded) == encoded);
    for (std::size_t size = 0; size < encoded.size(); ++size)
      CHECK_FALSE(DecodeRequest(Bytes(encoded).first(size)).ok());
    Buffer longer = encoded;
    longer.push_back(0);
    CHECK_FALSE(DecodeRequest(longer).ok());
    for (std::size_t bit = 0; bit < encoded.size() * 8; ++bit) {
      Buffer bad = encoded;
      bad[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
      const auto again = DecodeRequest(bad);
      if (again.ok()) CHECK(EncodeRequest(*again) == bad);
    }
  }
}

TEST_CASE("fields over their limits are refused") {
  CHECK_FALSE(
      DecodeRequest(EncodeRequest(ResultTokenRequest{std::string(limits::kAudience + 1, 'a'), "", {}, {}, 0})).ok());
  CHECK_FALSE(
      DecodeRequest(EncodeRequest(ResultTokenRequest{"a", std::string(limits::kMatch + 1, 'm'), {}, {}, 0})).ok());
  CHECK_FALSE(
      DecodeRequest(EncodeRequest(DeliverRequest{1, "connected", Buffer(limits::kLocalDelivery + 1), {}})).ok());
  CHECK(DecodeRequest(EncodeRequest(DeliverRequest{1, "connected", Buffer(limits::kLocalDelivery), {}})).ok());
  CHECK_FALSE(DecodeRequest(Buffer(limits::kLocalRequest + 1)).ok());
}

TEST_CASE("a channel binding that is not 32 bytes is refused") {
  for (const std::size_t size : {0U, 31U, 33U}) {
    EvidenceRequest request;
    request.challenge.nonce = Buffer(limits::kChallenge, 7);
    request.channel_binding = Buffer(size, 1);
    CHECK_FALSE(DecodeRequest(EncodeRequest(request)).ok());
  }
}

TEST_CASE("replies carry a payload or an error, never both") {
  const Reply good{true, {9, 8, 7}, {}};
  const Reply bad{false, {}, {"not_enrolled", "there is no AIK", "run assay-enroll enroll"}};
  for (const Reply& reply : {good, bad}) {
    const Buffer encoded = EncodeReply(reply);
    const auto decoded = DecodeReply(encoded);
    REQUIRE(decoded.ok());
    CHECK(decoded->ok == reply.ok);
    CHECK(decoded->payload == reply.payload);
    CHECK(decoded->error.code == reply.error.code);
    CHECK(EncodeReply(*decoded) == encoded);
    for (std::size_t size = 0; size < encoded.size(); ++size) CHECK_FALSE(DecodeReply(Bytes(encoded).first(size)).ok());
  }
  CHECK_FALSE(DecodeReply(FromHex("a20001014103").value()).ok());
}

TEST_CASE("attester and work replies come back as they were made") {
  const AttesterReply reply{Sha256(AsBytes("a")), 7, 5};
  const Buffer encoded = EncodeAttesterReply(reply);
  CHECK(DecodeAttesterReply(encoded).value().attester == reply.attester);
  CHECK(DecodeAttesterReply(encoded).value().renew_after == 5);
  for (std::size_t size = 0; size < encoded.size(); ++size)
    CHECK_FALSE(DecodeAttesterReply(Bytes(encoded).first(size)).ok());
  CHECK(DecodeWorkReply(EncodeWorkReply(77)).value() == 77);
  CHECK_FALSE(DecodeWorkReply({}).ok());
}

}  // namespace
}  // namespace assay::local
