// SPDX-License-Identifier: Apache-2.0
#include "sdk/core/bytes.h"

#include <doctest/doctest.h>

namespace assay {
namespace {

TEST_CASE("a reader never passes its end and stays failed") {
  const Buffer bytes = {1, 2, 3};
  Reader reader(bytes);
  CHECK(reader.U16Be() == 0x0102);
  CHECK(reader.U16Be() == 0);
  CHECK_FALSE(reader.ok());
  CHECK(reader.U8() == 0);
  CHECK(reader.remaining() == 0);
  CHECK_FALSE(reader.Finish("x").ok());
}

TEST_CASE("stray bytes are an error") {
  const Buffer bytes = {1, 2};
  Reader reader(bytes);
  (void)reader.U8();
  CHECK(reader.Finish("x").error().code == Code::kMalformed);
}

TEST_CASE("writer and reader agree on every width") {
  Writer writer;
  writer.U8(1);
  writer.U16Be(2);
  writer.U32Be(3);
  writer.U64Be(4);
  writer.U16Le(5);
  writer.U32Le(6);
  writer.U64Le(7);
  writer.PutU16Sized(AsBytes("abc"));
  Reader reader(writer.buffer());
  CHECK(reader.U8() == 1);
  CHECK(reader.U16Be() == 2);
  CHECK(reader.U32Be() == 3);
  CHECK(reader.U64Be() == 4);
  CHECK(reader.U16Le() == 5);
  CHECK(reader.U32Le() == 6);
  CHECK(reader.U64Le() == 7);
  CHECK(AsText(reader.TakeU16Sized(3)) == "abc");
  CHECK(reader.Finish("x").ok());
}

TEST_CASE("hex and base64url are strict both ways") {
  CHECK(ToHex(FromHex("00fF").value()) == "00ff");
  CHECK_FALSE(FromHex("0").ok());
  CHECK_FALSE(FromHex("0g").ok());
  for (const std::string_view text : {"", "f", "fo", "foo", "foob", "fooba", "foobar"}) {
    CHECK(AsText(FromBase64Url(ToBase64Url(AsBytes(text))).value()) == text);
  }
  CHECK_FALSE(FromBase64Url("Zg==").ok());
  CHECK_FALSE(FromBase64Url("Zh").ok());
  CHECK_FALSE(FromBase64Url("Z").ok());
  CHECK_FALSE(FromBase64Url("Z+8").ok());
  CHECK(ToBase64(AsBytes("f")) == "Zg==");
}

}  // namespace
}  // namespace assay
