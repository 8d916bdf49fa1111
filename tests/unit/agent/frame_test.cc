// SPDX-License-Identifier: Apache-2.0
#include "agent/local/frame.h"

#include <doctest/doctest.h>

namespace assay::local {
namespace {

TEST_CASE("a frame that arrives byte by byte is the same frame, and the next one follows") {
  FrameReader reader(100);
  for (const Buffer& message : {Buffer(100, 7), Buffer{1}}) {
    CHECK_FALSE(reader.started());
    for (const std::uint8_t byte : Frame(message)) {
      CHECK_FALSE(reader.complete());
      CHECK(reader.Wanted() > 0);
      REQUIRE(reader.Feed(Bytes(&byte, 1)).ok());
    }
    REQUIRE(reader.complete());
    CHECK(reader.Take() == message);
  }
}

TEST_CASE("an empty frame and one over the limit are refused by their size alone") {
  FrameReader empty(100);
  CHECK(empty.Feed(Buffer{0, 0, 0, 0}).error().code == Code::kMalformed);
  FrameReader large(100);
  CHECK(large.Feed(Buffer{101, 0, 0, 0}).error().code == Code::kLimit);
  FrameReader huge(100);
  CHECK(huge.Feed(Buffer{255, 255, 255, 255}).error().code == Code::kLimit);
}

TEST_CASE("a reader never asks for bytes past the frame in hand") {
  FrameReader reader(100);
  CHECK(reader.Wanted() == kFrameHead);
  REQUIRE(reader.Feed(Buffer{5, 0, 0, 0}).ok());
  CHECK(reader.Wanted() == 5);
  REQUIRE(reader.Feed(Buffer{1, 2}).ok());
  CHECK(reader.Wanted() == 3);
  CHECK_FALSE(reader.complete());
}

}  // namespace
}  // namespace assay::local
