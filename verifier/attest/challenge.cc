// SPDX-License-Identifier: Apache-2.0
#include "verifier/attest/challenge.h"

namespace assay::attest {
namespace {

constexpr std::size_t kTimeSize = 8;
constexpr std::size_t kRandomSize = 16;
constexpr std::size_t kClearSize = kTimeSize + kRandomSize;
constexpr std::uint8_t kDomain[] = "assay/challenge/1";

Digest Mac(const HmacKey& key, const Digest& attester, tpm::PcrSelection selection, Bytes clear) noexcept {
  const auto hash = static_cast<std::uint16_t>(selection.hash);
  const std::array<std::uint8_t, 5> asked = {static_cast<std::uint8_t>(hash >> 8), static_cast<std::uint8_t>(hash),
                                             static_cast<std::uint8_t>(selection.mask >> 16),
                                             static_cast<std::uint8_t>(selection.mask >> 8),
                                             static_cast<std::uint8_t>(selection.mask)};
  return key.Mac({kDomain, attester, asked, clear});
}

}  // namespace

ChallengeKeeper::ChallengeKeeper() : key_(RandomArray<32>()) {}

std::array<std::uint8_t, limits::kChallenge> ChallengeKeeper::Issue(const Digest& attester, tpm::PcrSelection selection,
                                                                    std::uint64_t now_ms) const noexcept {
  std::array<std::uint8_t, limits::kChallenge> nonce{};
  const MutableBytes out(nonce);
  for (std::size_t i = 0; i < kTimeSize; ++i) nonce[i] = static_cast<std::uint8_t>(now_ms >> (8 * (kTimeSize - 1 - i)));
  RandomBytes(out.subspan(kTimeSize, kRandomSize));
  CopyBytes(Mac(key_, attester, selection, out.first(kClearSize)), out.subspan(kClearSize));
  return nonce;
}

ChallengeCheck ChallengeKeeper::Check(Bytes nonce, const Digest& attester, tpm::PcrSelection selection,
                                      std::uint64_t now_ms, std::uint64_t lifetime_ms) const noexcept {
  if (nonce.size() != limits::kChallenge) return {};
  const std::uint64_t issued = Reader(nonce).U64Be();
  if (!EqualConstantTime(Mac(key_, attester, selection, nonce.first(kClearSize)), nonce.subspan(kClearSize))) return {};
  if (issued > now_ms) return {ChallengeFault::kFuture, 0};
  if (now_ms - issued > lifetime_ms) return {ChallengeFault::kExpired, now_ms - issued};
  return {ChallengeFault::kNone, now_ms - issued};
}

}  // namespace assay::attest
