// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "sdk/core/crypto.h"
#include "verifier/attest/challenge.h"
#include "verifier/attest/fence.h"
#include "verifier/attest/freshness.h"

namespace assay::attest {
namespace {

constexpr tpm::ClockInfo At(std::uint64_t clock, std::uint32_t reset, std::uint32_t restart = 0, bool safe = true) {
  return {.clock = clock, .reset_count = reset, .restart_count = restart, .safe = safe};
}

TEST_CASE("within a boot the clock moves strictly and restarts never go back") {
  CHECK(JudgeClock(At(1000, 5), At(1001, 5)) == ClockJudgement::kAdvances);
  CHECK(JudgeClock(At(1000, 5), At(1000, 5)) == ClockJudgement::kReplay);
  CHECK(JudgeClock(At(1000, 5), At(999, 5)) == ClockJudgement::kReplay);
  CHECK(JudgeClock(At(1000, 5, 2), At(2000, 5, 1)) == ClockJudgement::kReplay);
  CHECK(JudgeClock(At(1000, 5, 1), At(2000, 5, 2)) == ClockJudgement::kAdvances);
}

TEST_CASE("a later boot may lose a little clock to a power cut, and only then") {
  CHECK(JudgeClock(At(1000, 5), At(1000, 6)) == ClockJudgement::kAdvances);
  CHECK(JudgeClock(At(1000, 5), At(999, 6, 0, true)) == ClockJudgement::kClonedState);
  CHECK(JudgeClock(At(1000, 5), At(999, 6, 0, false)) == ClockJudgement::kAdvancesUnsafe);
  const std::uint64_t high = 10 * kMaxClockLossMs;
  CHECK(JudgeClock(At(high, 5), At(high - kMaxClockLossMs, 6, 0, false)) == ClockJudgement::kAdvancesUnsafe);
  CHECK(JudgeClock(At(high, 5), At(high - kMaxClockLossMs - 1, 6, 0, false)) == ClockJudgement::kClonedState);
}

TEST_CASE("a lower reset count is a clone, or a cleared TPM when its counters started over") {
  CHECK(JudgeClock(At(1000, 5), At(5000, 4)) == ClockJudgement::kClonedState);
  CHECK(JudgeClock(At(1000, 5), At(10, 1)) == ClockJudgement::kTpmCleared);
  CHECK(JudgeClock(At(1000, 5), At(10, 0)) == ClockJudgement::kTpmCleared);
  CHECK(JudgeClock(At(1000, 5), At(10, 1, 0, false)) == ClockJudgement::kClonedState);
}

TEST_CASE("of racing copies of one quote exactly one passes the fence") {
  Fence fence;
  const Digest host = Sha256(AsBytes("host"));
  for (std::uint64_t round = 1; round <= 50; ++round) {
    std::atomic<int> passed = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 32; ++i) {
      threads.emplace_back([&] {
        if (fence.Pass(host, {.generation = 1, .clock = At(round, 1), .new_anchor = {}, .runtime = {}}) ==
            FenceOutcome::kPassed)
          ++passed;
      });
    }
    for (auto& thread : threads) thread.join();
    CHECK(passed == 1);
  }
}

TEST_CASE("a refused attempt leaves the fence as it was") {
  Fence fence;
  const Digest host = Sha256(AsBytes("host"));
  CHECK(fence.Pass(host, {.generation = 2, .clock = At(100, 7), .new_anchor = Anchor{5, At(100, 7)}, .runtime = {}}) ==
        FenceOutcome::kPassed);
  for (const auto& [clock, outcome] : {std::pair{At(100, 7), FenceOutcome::kReplay},
                                       {At(900, 6), FenceOutcome::kClonedState},
                                       {At(1, 1), FenceOutcome::kTpmCleared}}) {
    CHECK(fence.Pass(host, {.generation = 2, .clock = clock, .new_anchor = {}, .runtime = {}}) == outcome);
    CHECK(fence.Peek(host).last->clock == 100);
    CHECK(fence.Peek(host).last->reset_count == 7);
    CHECK(fence.Peek(host).anchor.has_value());
  }
  CHECK(fence.Pass(host, {.generation = 1, .clock = At(200, 7), .new_anchor = {}, .runtime = {}}) ==
        FenceOutcome::kRetiredKey);
}

TEST_CASE("an operator may accept one reset, and only one") {
  Fence fence;
  const Digest host = Sha256(AsBytes("host"));
  (void)fence.Pass(host, {.generation = 1, .clock = At(100, 7), .new_anchor = {}, .runtime = {}});
  fence.AcceptReset(host, true);
  CHECK(fence.Pass(host, {.generation = 1, .clock = At(5, 1), .new_anchor = {}, .runtime = {}}) ==
        FenceOutcome::kPassed);
  CHECK(fence.Pass(host, {.generation = 1, .clock = At(5, 0), .new_anchor = {}, .runtime = {}}) ==
        FenceOutcome::kTpmCleared);
}

TEST_CASE("counters outlive a rotation of the key") {
  Fence fence;
  const Digest host = Sha256(AsBytes("host"));
  (void)fence.Pass(host, {.generation = 1, .clock = At(100, 7), .new_anchor = {}, .runtime = {}});
  fence.SetGeneration(host, 2);
  CHECK(fence.Pass(host, {.generation = 1, .clock = At(200, 7), .new_anchor = {}, .runtime = {}}) ==
        FenceOutcome::kRetiredKey);
  CHECK(fence.Pass(host, {.generation = 2, .clock = At(50, 6), .new_anchor = {}, .runtime = {}}) ==
        FenceOutcome::kClonedState);
  CHECK(fence.Pass(host, {.generation = 2, .clock = At(200, 7), .new_anchor = {}, .runtime = {}}) ==
        FenceOutcome::kPassed);
}

TEST_CASE("a host that was forgotten may enroll anew, and its counters still outlive it") {
  Fence fence;
  const Digest host = Sha256(AsBytes("host"));
  (void)fence.Pass(host, {.generation = 3, .clock = At(100, 7), .new_anchor = Anchor{5, At(100, 7)}, .runtime = {}});
  fence.AcceptReset(host, true);
  fence.ForgetEnrollment(host);
  CHECK_FALSE(fence.Peek(host).reset_accepted);
  CHECK_FALSE(fence.Peek(host).anchor.has_value());
  CHECK(fence.Pass(host, {.generation = 1, .clock = At(100, 7), .new_anchor = {}, .runtime = {}}) ==
        FenceOutcome::kReplay);
  CHECK(fence.Pass(host, {.generation = 1, .clock = At(900, 6), .new_anchor = {}, .runtime = {}}) ==
        FenceOutcome::kClonedState);
  CHECK(fence.Pass(host, {.generation = 1, .clock = At(101, 7), .new_anchor = {}, .runtime = {}}) ==
        FenceOutcome::kPassed);
}

TEST_CASE("an older challenge is fresh only while two clocks agree since the anchor") {
  const Anchor anchor{1'000'000, At(50'000, 3)};
  const auto judge = [&](std::uint64_t age, std::uint64_t now, tpm::ClockInfo quoted) {
    return JudgeFreshness(
        {.challenge_age_ms = age, .now_ms = now, .quoted = quoted, .anchor = anchor, .always_ask = false});
  };
  CHECK(judge(4999, 9'000'000, At(1, 9)) == Freshness::kYoung);
  CHECK(judge(60'000, 1'060'000, At(110'000, 3)) == Freshness::kAnchored);
  CHECK(judge(60'000, 1'070'000, At(110'000, 3)) == Freshness::kAnchored);
  CHECK(judge(60'000, 1'070'001, At(110'000, 3)) == Freshness::kAskAgain);
  CHECK(judge(60'000, 1'060'000, At(120'001, 3)) == Freshness::kAskAgain);
  CHECK(judge(60'000, 1'060'000, At(110'000, 4)) == Freshness::kAskAgain);
  CHECK(judge(60'000, 1'060'000, At(110'000, 3, 1)) == Freshness::kAskAgain);
  CHECK(JudgeFreshness({.challenge_age_ms = 60'000, .now_ms = 1, .quoted = {}, .anchor = {}, .always_ask = false}) ==
        Freshness::kAskAgain);
  CHECK(JudgeFreshness({.challenge_age_ms = 60'000,
                        .now_ms = 1'060'000,
                        .quoted = At(110'000, 3),
                        .anchor = anchor,
                        .always_ask = true}) == Freshness::kAskAgain);
}

TEST_CASE("five seconds more each round do not add up") {
  // The attacker quotes at once and submits 5 s later than the round before; the anchor never moves.
  const Anchor anchor{0, At(0, 1)};
  std::uint64_t worst = 0;
  for (std::uint64_t round = 1; round < 20; ++round) {
    const std::uint64_t quoted_at = round * 60'000;
    const std::uint64_t delay = round * 5'000;
    if (JudgeFreshness({.challenge_age_ms = 60'000 + delay,
                        .now_ms = quoted_at + delay,
                        .quoted = At(quoted_at, 1),
                        .anchor = anchor,
                        .always_ask = false}) == Freshness::kAnchored)
      worst = delay;
  }
  CHECK(worst == 10'000);
}

TEST_CASE("a challenge answers only for its attester, selection, time and verifier") {
  const ChallengeKeeper keeper;
  const Digest attester = Sha256(AsBytes("a"));
  const tpm::PcrSelection selection{tpm::Alg::kSha256, 0x4081};
  const auto nonce = keeper.Issue(attester, selection, 1'000'000);
  CHECK(keeper.Check(nonce, attester, selection, 1'004'000, 60'000).fault == ChallengeFault::kNone);
  CHECK(keeper.Check(nonce, attester, selection, 1'004'000, 60'000).age_ms == 4000);
  CHECK(keeper.Check(nonce, attester, selection, 1'060'001, 60'000).fault == ChallengeFault::kExpired);
  CHECK(keeper.Check(nonce, attester, selection, 999'999, 60'000).fault == ChallengeFault::kFuture);
  CHECK(keeper.Check(nonce, Sha256(AsBytes("b")), selection, 1'004'000, 60'000).fault == ChallengeFault::kForeign);
  CHECK(keeper.Check(nonce, attester, {tpm::Alg::kSha256, 0x4080}, 1'004'000, 60'000).fault ==
        ChallengeFault::kForeign);
  CHECK(keeper.Check(nonce, attester, {tpm::Alg::kSha384, 0x4081}, 1'004'000, 60'000).fault ==
        ChallengeFault::kForeign);
  CHECK(ChallengeKeeper().Check(nonce, attester, selection, 1'004'000, 60'000).fault == ChallengeFault::kForeign);
  CHECK(keeper.Check(Bytes(nonce).first(55), attester, selection, 1'004'000, 60'000).fault == ChallengeFault::kForeign);
  for (std::size_t i = 0; i < nonce.size(); ++i) {
    auto bad = nonce;
    bad[i] ^= 0x10;
    CHECK(keeper.Check(bad, attester, selection, 1'004'000, 60'000).fault == ChallengeFault::kForeign);
  }
  CHECK(keeper.Issue(attester, selection, 1'000'000) != nonce);
}

}  // namespace
}  // namespace assay::attest
