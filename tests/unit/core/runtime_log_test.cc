// SPDX-License-Identifier: Apache-2.0
#include "sdk/core/runtime_log.h"

#include <doctest/doctest.h>

#include "sdk/core/crypto.h"
#include "sdk/core/limits.h"

namespace assay {
namespace {

std::vector<RuntimeEntry> Samples() {
  RuntimeEntry identity;
  identity.index = 3;
  identity.agent = Sha256(AsBytes("agent"));
  identity.config = Sha256(AsBytes("config"));
  identity.predecessor = 3;
  RuntimeEntry policy;
  policy.index = 4;
  policy.kind = EntryKind::kPolicy;
  policy.policy = Sha256(AsBytes("policy"));
  policy.policy_version = 9;
  RuntimeEntry batch;
  batch.index = 5;
  batch.kind = EntryKind::kBatch;
  batch.digests = {Sha256(AsBytes("a")), Sha256(AsBytes("b"))};
  RuntimeEntry release;
  release.index = 6;
  release.kind = EntryKind::kRelease;
  RuntimeEntry stop;
  stop.index = 1000;
  stop.kind = EntryKind::kStop;
  return {identity, policy, batch, release, stop};
}

TEST_CASE("every kind of entry decodes to the bytes it was made of, and cut or longer input is refused") {
  for (const RuntimeEntry& entry : Samples()) {
    const Buffer encoded = EncodeRuntimeEntry(entry);
    const auto decoded = DecodeRuntimeEntry(encoded);
    REQUIRE(decoded.ok());
    CHECK(EncodeRuntimeEntry(*decoded) == encoded);
    CHECK(decoded->kind == entry.kind);
    CHECK(decoded->index == entry.index);
    CHECK(decoded->predecessor == entry.predecessor);
    CHECK(decoded->digests == entry.digests);
    for (std::size_t size = 0; size < encoded.size(); ++size)
      CHECK_FALSE(DecodeRuntimeEntry(Bytes(encoded).first(size)).ok());
    Buffer longer = encoded;
    longer.push_back(0);
    CHECK_FALSE(DecodeRuntimeEntry(longer).ok());
  }
}

TEST_CASE("a flipped bit never decodes to another encoding of the same entry") {
  for (const RuntimeEntry& entry : Samples()) {
    const Buffer encoded = EncodeRuntimeEntry(entry);
    for (std::size_t bit = 0; bit < encoded.size() * 8; ++bit) {
      Buffer bad = encoded;
      bad[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
      const auto again = DecodeRuntimeEntry(bad);
      if (again.ok()) CHECK(EncodeRuntimeEntry(*again) == bad);
    }
  }
}

TEST_CASE("a kind that does not exist, an empty batch and a batch over the limit are refused") {
  CHECK_FALSE(DecodeRuntimeEntry(FromHex("83000080").value()).ok());
  CHECK_FALSE(DecodeRuntimeEntry(FromHex("83000680").value()).ok());
  CHECK_FALSE(DecodeRuntimeEntry(FromHex("83000380").value()).ok());
  CHECK(DecodeRuntimeEntry(FromHex("83000580").value()).ok());
  RuntimeEntry batch;
  batch.kind = EntryKind::kBatch;
  batch.digests.resize(limits::kRuntimeBatch);
  const Buffer fits = EncodeRuntimeEntry(batch);
  CHECK(fits.size() <= limits::kRuntimeEntry);
  CHECK(DecodeRuntimeEntry(fits).ok());
  batch.digests.resize(limits::kRuntimeBatch + 1);
  CHECK_FALSE(DecodeRuntimeEntry(EncodeRuntimeEntry(batch)).ok());
}

TEST_CASE("extending is SHA-256 over the old value and the entry's digest") {
  const Digest zero{};
  // SHA-256 of 32 zero bytes and SHA-256("x"): a value computed with coreutils.
  CHECK(ToHex(ExtendWithEntry(zero, AsBytes("x"))) ==
        "7f85193790de75e46b70bfec3614098f47332a6993dabac6e38ad35f47df5da4");
  CHECK(ExtendWithEntry(zero, AsBytes("x")) != ExtendWithEntry(zero, AsBytes("y")));
}

}  // namespace
}  // namespace assay
