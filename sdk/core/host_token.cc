// SPDX-License-Identifier: Apache-2.0
// Host token layout. Fields are at fixed places, so both ways are copies between a stack frame and a span.
#include "sdk/core/host_token.h"

#include <algorithm>
#include <bit>

#include "sdk/core/crypto.h"

namespace assay {
namespace {

constexpr std::uint8_t kVersion = 1;
constexpr std::size_t kBoundPart = 152;  // of the fixed part: what the body digest covers
constexpr std::array<std::uint8_t, 4> kMagic = {'A', 'H', 'T', kVersion};

static_assert(std::endian::native == std::endian::little);  // numbers are copied as they lie

// Fields at constant places; the caller checked the size once.
template <std::size_t N>
void PutFixed(MutableBytes out, std::size_t at, const std::array<std::uint8_t, N>& from) noexcept {
  std::copy_n(from.begin(), N, out.begin() + static_cast<std::ptrdiff_t>(at));
}
template <std::size_t N>
void GetFixed(Bytes in, std::size_t at, std::array<std::uint8_t, N>& to) noexcept {
  std::copy_n(in.begin() + static_cast<std::ptrdiff_t>(at), N, to.begin());
}
template <typename T>
void PutLe(MutableBytes out, std::size_t at, T value) noexcept {
  PutFixed(out, at, std::bit_cast<std::array<std::uint8_t, sizeof(T)>>(value));
}
template <typename T>
T GetLe(Bytes in, std::size_t at) noexcept {
  std::array<std::uint8_t, sizeof(T)> raw;
  GetFixed(in, at, raw);
  return std::bit_cast<T>(raw);
}

void PutBoundPart(const HostToken& token, MutableBytes out) noexcept {
  PutFixed(out, 0, kMagic);
  out[4] = token.tag == QuoteTag::kHeartbeat ? 1 : 0;
  out[5] = static_cast<std::uint8_t>(token.gate);
  out[6] = static_cast<std::uint8_t>(std::popcount(token.pcr_mask));
  out[7] = token.entry_count;
  PutLe(out, 8, token.sequence);
  PutFixed(out, 16, token.attester);
  PutFixed(out, 48, token.server_nonce);
  PutFixed(out, 80, token.session_key_hash);
  PutFixed(out, 112, token.policy);
  PutLe(out, 144, token.policy_version);
}

// Entries are framed so that they end where they say: each a little-endian size and that many bytes.
bool EntriesFit(Bytes entries, std::size_t count) noexcept {
  if (count == 0) return entries.empty();
  Reader reader(entries);
  for (std::size_t i = 0; i < count; ++i) reader.Skip(reader.U16Le());
  return reader.ok() && reader.AtEnd();
}

bool WithinLimits(const HostToken& token) noexcept {
  return token.tag != QuoteTag::kEvidence && token.pcr_mask != 0 && token.pcr_mask < (1U << limits::kPcrs) &&
         token.pcr_values.size() == static_cast<std::size_t>(std::popcount(token.pcr_mask)) * kSha256Size &&
         token.entry_count <= kHostTokenEntries && token.attest.size() <= limits::kAttest && !token.attest.empty() &&
         token.signature.size() <= limits::kSignature && !token.signature.empty() &&
         EntriesFit(token.entries, token.entry_count);
}

}  // namespace

Result<std::size_t> SerializeHostToken(const HostToken& token, MutableBytes out) {
  if (!WithinLimits(token)) return MakeError(Code::kMalformed, "a host token's parts break their limits");
  const std::size_t size =
      kHostTokenFixed + token.pcr_values.size() + token.entries.size() + token.attest.size() + token.signature.size();
  if (size > out.size() || size > limits::kHostToken)
    return MakeError(Code::kLimit, "a host token does not fit its buffer");
  PutBoundPart(token, out.first(kBoundPart));
  PutLe(out, 152, token.pcr_mask);
  PutLe(out, 156, static_cast<std::uint16_t>(token.attest.size()));
  PutLe(out, 158, static_cast<std::uint16_t>(token.signature.size()));
  PutLe(out, 160, static_cast<std::uint32_t>(token.entries.size()));
  std::size_t at = kHostTokenFixed;
  for (const Bytes part : {token.pcr_values, token.entries, token.attest, token.signature}) {
    CopyBytes(part, out.subspan(at, part.size()));
    at += part.size();
  }
  return size;
}

bool TryParseHostToken(Bytes encoded, HostToken& token) noexcept {
  if (encoded.size() < kHostTokenFixed || encoded.size() > limits::kHostToken) return false;
  const Bytes fixed = encoded.first(kHostTokenFixed);
  if (!Equal(fixed.first(kMagic.size()), kMagic) || fixed[4] > 1 ||
      fixed[5] > static_cast<std::uint8_t>(GateState::kBroken))
    return false;
  token.tag = fixed[4] == 1 ? QuoteTag::kHeartbeat : QuoteTag::kHostToken;
  token.gate = static_cast<GateState>(fixed[5]);
  token.entry_count = fixed[7];
  token.sequence = GetLe<std::uint64_t>(fixed, 8);
  GetFixed(fixed, 16, token.attester);
  GetFixed(fixed, 48, token.server_nonce);
  GetFixed(fixed, 80, token.session_key_hash);
  GetFixed(fixed, 112, token.policy);
  token.policy_version = GetLe<std::uint64_t>(fixed, 144);
  token.pcr_mask = GetLe<std::uint32_t>(fixed, 152);
  if (fixed[6] != std::popcount(token.pcr_mask)) return false;
  Reader rest(encoded.subspan(kHostTokenFixed));
  token.pcr_values = rest.Take(std::size_t{fixed[6]} * kSha256Size);
  token.entries = rest.Take(GetLe<std::uint32_t>(fixed, 160));
  token.attest = rest.Take(GetLe<std::uint16_t>(fixed, 156));
  token.signature = rest.Take(GetLe<std::uint16_t>(fixed, 158));
  return rest.ok() && rest.AtEnd() && WithinLimits(token);
}

Result<HostToken> ParseHostToken(Bytes encoded) {
  HostToken token;
  if (!TryParseHostToken(encoded, token))
    return MakeError(Code::kMalformed, "a host token breaks its layout or a limit");
  return token;
}

Digest HostTokenBodyDigest(const HostToken& token) noexcept {
  std::array<std::uint8_t, kBoundPart> bound;
  PutBoundPart(token, bound);
  return Sha256({bound, token.entries});
}

}  // namespace assay
