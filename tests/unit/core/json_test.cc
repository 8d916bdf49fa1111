// SPDX-License-Identifier: Apache-2.0
#include "sdk/core/json.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace assay {
namespace {

bool Accepts(std::string_view text) {
  JsonParser parser(4096);
  return parser.Parse(text).ok();
}

TEST_CASE("values of each kind are read as what they are") {
  JsonParser parser(4096);
  const JsonValue root = parser.Parse(R"({"s":"a\u00e9\n","i":-7,"d":1.0,"t":true,"n":null,"a":[1,2],"o":{}})").value();
  std::vector<std::string> names;
  CHECK(root.EachMember([&](std::string_view name, JsonValue value) {
    names.emplace_back(name);
    if (name == "s") CHECK(value.String() == "a\xC3\xA9\n");
    if (name == "i") CHECK(value.Int() == -7);
    if (name == "d") CHECK_FALSE(value.Int().has_value());
    if (name == "t") CHECK(value.Bool() == true);
    if (name == "n") CHECK(value.kind() == JsonKind::kNull);
    if (name == "a") {
      std::int64_t sum = 0;
      CHECK(value.EachElement([&](JsonValue item) {
        sum += *item.Int();
        return true;
      }));
      CHECK(sum == 3);
    }
    if (name == "o") CHECK(value.EachMember([](std::string_view, JsonValue) { return false; }));
    if (name != "s") CHECK_FALSE(value.String().has_value());
    return true;
  }));
  CHECK(names == std::vector<std::string>{"s", "i", "d", "t", "n", "a", "o"});
}

TEST_CASE("what RFC 8259 does not allow is refused") {
  for (const char* bad : {"",
                          " ",
                          "{",
                          "[1,]",
                          "{\"a\":1,}",
                          "{'a':1}",
                          "01",
                          "+1",
                          ".5",
                          "1.",
                          "nul",
                          "[1] 2",
                          "\"\\x\"",
                          "\"\t\"",
                          "1e400",
                          "-1e400",
                          "NaN",
                          "Infinity",
                          "18446744073709551616",
                          "// c\n1",
                          "\"\xC0\x80\"",
                          "\"\xED\xA0\x80\"",
                          "\"\xFF\"",
                          "\xEF\xBB\xBF"
                          "1"}) {
    CAPTURE(bad);
    CHECK_FALSE(Accepts(bad));
  }
}

TEST_CASE("half of a surrogate pair is refused wherever it stands and pairs are read") {
  CHECK(Accepts(R"("\ud83d\ude00")"));
  CHECK(Accepts(R"("\\ud83d")"));  // an escaped backslash, then text
  CHECK(Accepts(R"("\\\\udc00")"));
  for (const char* bad : {R"("\ud83d")", R"("\ude00")", R"("\ud83d\ud83d")", R"("\ud83d\\ude00")", R"("\ud83dx")",
                          R"({"\udc00":1})", R"("\\\ude00")", R"("\uD83D\uDE00\uDE00")"}) {
    CAPTURE(bad);
    CHECK_FALSE(Accepts(bad));
  }
}

TEST_CASE("depth, size and member count have limits") {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  CHECK(Accepts(nested(kJsonDepth - 1)));
  CHECK_FALSE(Accepts(nested(kJsonDepth + 1)));
  CHECK_FALSE(Accepts(nested(2000)));
  JsonParser parser(64);
  CHECK(parser.Parse("\"" + std::string(62, 'a') + "\"").ok());
  CHECK_FALSE(parser.Parse("\"" + std::string(63, 'a') + "\"").ok());
  const auto members = [](std::size_t count) {
    std::string text = "{";
    for (std::size_t i = 0; i < count; ++i) text += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":0";
    return text + "}";
  };
  JsonParser large(4096);
  const auto all = [](std::string_view, JsonValue) { return true; };
  CHECK(large.Parse(members(kJsonMembers)).value().EachMember(all));
  CHECK_FALSE(large.Parse(members(kJsonMembers + 1)).value().EachMember(all));
}

TEST_CASE("a repeated member is refused also when it is written with escapes") {
  JsonParser parser(4096);
  const auto all = [](std::string_view, JsonValue) { return true; };
  CHECK_FALSE(parser.Parse(R"({"a":1,"a":1})").value().EachMember(all));
  CHECK_FALSE(parser.Parse(R"({"a":1,"b":2,"\u0061":1})").value().EachMember(all));
  CHECK(parser.Parse(R"({"a":1,"A":1})").value().EachMember(all));
}

TEST_CASE("a parser is used again after a refusal") {
  JsonParser parser(128);
  CHECK_FALSE(parser.Parse("{").ok());
  CHECK(parser.Parse("[7]").value().EachElement([](JsonValue item) { return item.Int() == 7; }));
}

TEST_CASE("what the writer writes is read back") {
  JsonWriter out;
  out.BeginObject().Name("a").BeginArray().Int(-1).Uint(2).String("x").EndArray().Name("b\"\\\n").String(
      "\x01\x7F\xC3\xA9");
  out.Name("c").BeginObject().EndObject().Name("d").Bool(true).Name("e").Null().EndObject();
  CHECK(out.text() ==
        "{\"a\":[-1,2,\"x\"],\"b\\\"\\\\\\u000a\":\"\\u0001\\u007f\xC3\xA9\",\"c\":{},\"d\":true,\"e\":null}");
  JsonParser parser(256);
  std::size_t seen = 0;
  CHECK(parser.Parse(out.text()).value().EachMember([&](std::string_view name, JsonValue value) {
    if (name == "b\"\\\n") CHECK(value.String() == "\x01\x7F\xC3\xA9");
    return ++seen > 0;
  }));
  CHECK(seen == 5);
}

}  // namespace
}  // namespace assay
