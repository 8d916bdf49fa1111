// SPDX-License-Identifier: Apache-2.0
#include "sdk/core/protocol.h"

#include <doctest/doctest.h>

#include <functional>

#include "sdk/core/crypto.h"

namespace assay {
namespace {

Challenge SampleChallenge() {
  Challenge challenge;
  challenge.nonce = Buffer(limits::kChallenge, 3);
  challenge.selection = {tpm::Alg::kSha256, 0x4081};
  challenge.lifetime_ms = 60000;
  challenge.runtime_from = 5;
  return challenge;
}

// Truncations, stray bytes and single-bit flips: refused, or the same bytes again.
void Exercise(const Buffer& encoded, const std::function<Result<Buffer>(Bytes)>& recode) {
  CHECK(recode(encoded).value() == encoded);
  for (std::size_t size = 0; size < encoded.size(); ++size) CHECK_FALSE(recode(Bytes(encoded).first(size)).ok());
  Buffer longer = encoded;
  longer.push_back(0);
  CHECK_FALSE(recode(longer).ok());
  for (std::size_t bit = 0; bit < encoded.size() * 8; ++bit) {
    Buffer bad = encoded;
    bad[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
    const auto again = recode(bad);
    if (again.ok()) CHECK(*again == bad);
  }
}

#define EXERCISE(Type, value)                                    \
  Exercise(Encode##Type(value), [](Bytes in) -> Result<Buffer> { \
    ASSAY_TRY(const auto decoded, Decode##Type(in));             \
    return Encode##Type(decoded);                                \
  })

TEST_CASE("every message has one encoding and refuses cut, flipped and longer input") {
  EXERCISE(ErrorReply, (ErrorReply{"replay", "the clock did not move", "take a fresh quote"}));
  EXERCISE(ChallengeRequest, ChallengeRequest{Sha256(AsBytes("a"))});
  EXERCISE(Challenge, SampleChallenge());
  AttestReply reply;
  reply.tier = Tier::kContraindicated;
  reply.reasons = {{"pcr_value", Tier::kContraindicated, "PCR 4 is ab", "boot a listed kernel"}};
  reply.result_token = "a.b.c";
  reply.token_refusal = ErrorReply{"audience_not_authorised", "no", ""};
  reply.next = SampleChallenge();
  reply.audit_sequence = 77;
  EXERCISE(AttestReply, reply);
  EXERCISE(EnrollBegin, (EnrollBegin{tpm::EkKind::kRsa2048Low, {1, 2}, {3}, {{4}, {5, 6}}, {7}, "token", "label"}));
  EXERCISE(EnrollChallenge, (EnrollChallenge{{1}, {2}, {3}, {4}}));
  EXERCISE(EnrollComplete, (EnrollComplete{{1}, {2}, Sha256({}), {3}, {}}));
  EXERCISE(EnrollResult, (EnrollResult{Sha256({}), Sha256(AsBytes("x")), {1}, 5, 4, true, 3}));
}

}  // namespace
}  // namespace assay
