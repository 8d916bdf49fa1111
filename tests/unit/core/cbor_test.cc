// SPDX-License-Identifier: Apache-2.0
#include "sdk/core/cbor.h"

#include <doctest/doctest.h>

namespace assay {
namespace {

Buffer Hex(std::string_view text) { return FromHex(text).value(); }

TEST_CASE("integers use the shortest head and longer heads are refused") {
  for (const std::uint64_t value :
       {0ULL, 23ULL, 24ULL, 255ULL, 256ULL, 65535ULL, 65536ULL, 4294967295ULL, 4294967296ULL, ~0ULL}) {
    CborWriter writer;
    writer.Uint(value);
    CborReader reader(writer.buffer());
    CHECK(reader.Uint() == value);
    CHECK(reader.Finish("x").ok());
  }
  for (const char* longer : {"1817", "1900ff", "1a0000ffff", "1b00000000ffffffff"}) {
    const Buffer bytes = Hex(longer);
    CborReader reader(bytes);
    (void)reader.Uint();
    CHECK_FALSE(reader.ok());
  }
}

TEST_CASE("indefinite lengths, reserved heads and cut items are refused") {
  for (const char* bad : {"5f", "9f", "bf", "1c", "58", "5803aabb", "43aabb", ""}) {
    const Buffer bytes = Hex(bad);
    CborReader reader(bytes);
    (void)reader.ByteString(100);
    CHECK_FALSE(reader.ok());
  }
}

TEST_CASE("map keys must ascend") {
  const Buffer good = Hex("a201000200");
  CborReader reader(good);
  CHECK(reader.Map(4) == 2);
  int previous = -1;
  CHECK(reader.Key(previous) == 1);
  (void)reader.Uint();
  CHECK(reader.Key(previous) == 2);
  (void)reader.Uint();
  CHECK(reader.Finish("map").ok());

  const Buffer twice = Hex("a201000100");
  CborReader bad(twice);
  (void)bad.Map(4);
  previous = -1;
  (void)bad.Key(previous);
  (void)bad.Uint();
  (void)bad.Key(previous);
  CHECK_FALSE(bad.ok());
}

TEST_CASE("text must be UTF-8 without surrogates or overlong forms") {
  CHECK(IsUtf8("gr\xc3\xbc\xc3\x9f"));
  CHECK_FALSE(IsUtf8("\xc0\xaf"));
  CHECK_FALSE(IsUtf8("\xed\xa0\x80"));
  CHECK_FALSE(IsUtf8("\xf4\x90\x80\x80"));
  CHECK_FALSE(IsUtf8("\xe2\x82"));
}

TEST_CASE("negative integers and limits") {
  CborWriter writer;
  writer.Int(-500);
  CborReader reader(writer.buffer());
  CHECK(reader.Int() == -500);
  CborWriter over;
  over.Uint(11);
  CborReader limited(over.buffer());
  (void)limited.Uint(10);
  CHECK_FALSE(limited.ok());
}

}  // namespace
}  // namespace assay
