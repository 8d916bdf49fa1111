// SPDX-License-Identifier: Apache-2.0
// Canonical JSON: RFC 8785's own examples, and random values that are written in a disorderly way.
#include "verifier/token/canonical_json.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <map>
#include <random>

namespace assay::token {
namespace {

std::string Canonical(std::string_view text) {
  const auto out = CanonicalJson(text, 1 << 16);
  return out.ok() ? *out : "refused";
}

TEST_CASE("the numbers of RFC 8785 appendix B are written as it says") {
  const std::map<std::uint64_t, std::string> numbers = {{0x0000000000000000, "0"},
                                                        {0x8000000000000000, "0"},
                                                        {0x0000000000000001, "5e-324"},
                                                        {0x8000000000000001, "-5e-324"},
                                                        {0x7fefffffffffffff, "1.7976931348623157e+308"},
                                                        {0xffefffffffffffff, "-1.7976931348623157e+308"},
                                                        {0x4340000000000000, "9007199254740992"},
                                                        {0xc340000000000000, "-9007199254740992"},
                                                        {0x4430000000000000, "295147905179352830000"},
                                                        {0x44b52d02c7e14af5, "9.999999999999997e+22"},
                                                        {0x44b52d02c7e14af6, "1e+23"},
                                                        {0x44b52d02c7e14af7, "1.0000000000000001e+23"},
                                                        {0x444b1ae4d6e2ef4e, "999999999999999700000"},
                                                        {0x444b1ae4d6e2ef4f, "999999999999999900000"},
                                                        {0x444b1ae4d6e2ef50, "1e+21"},
                                                        {0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7"},
                                                        {0x3eb0c6f7a0b5ed8d, "0.000001"},
                                                        {0x41b3de4355555553, "333333333.3333332"},
                                                        {0x41b3de4355555554, "333333333.33333325"},
                                                        {0x41b3de4355555555, "333333333.3333333"},
                                                        {0x41b3de4355555556, "333333333.3333334"},
                                                        {0x41b3de4355555557, "333333333.33333343"},
                                                        {0xbecbf647612f3696, "-0.0000033333333333333333"},
                                                        {0x43143ff3c1cb0959, "1424953923781206.2"}};
  for (const auto& [bits, text] : numbers) {
    char plain[64];
    std::snprintf(plain, sizeof plain, "%.17e", std::bit_cast<double>(bits));
    CHECK(Canonical(plain) == text);
  }
}

TEST_CASE("the example of RFC 8785 section 3.2.2 comes out as printed there") {
  CHECK(
      Canonical(
          R"({"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],"string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]})") ==
      "{\"literals\":[null,true,false],\"numbers\":[333333333.3333333,1e+30,4.5,0.002,1e-27],\"string\":\"\xe2\x82\xac$"
      "\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"}");
}

TEST_CASE("members are sorted by UTF-16 code units") {
  CHECK(
      Canonical(R"({"\ufb33":7,"\ud83d\ude00":6,"\u20ac":5,"\u00f6":4,"\u0080":3,"1":2,"\r":1})") ==
      "{\"\\r\":1,\"1\":2,\"\xc2\x80\":3,\"\xc3\xb6\":4,\"\xe2\x82\xac\":5,\"\xf0\x9f\x98\x80\":6,\"\xef\xac\xb3\":7}");
}

TEST_CASE("what has no single canonical form is refused") {
  for (const char* bad :
       {"9007199254740993", "-9007199254740993", "18446744073709551615", "1e400", "{\"a\":1,\"a\":2}", "\"\\ud800\"",
        "\"\\udc00\"", "[", "nul", "", "{\"a\":1,}", "NaN", "01", "\"\xff\"", "[1] x"}) {
    CHECK_MESSAGE(Canonical(bad) == "refused", bad);
  }
  CHECK(Canonical(std::string(40, '[') + std::string(40, ']')) == "refused");
}

// A random value as disorderly text and, built on its own, as its canonical form.
struct Pair {
  std::string loose, exact;
};

Pair MakeText(std::mt19937_64& random) {
  Pair pair{"\"", "\""};
  for (std::size_t n = random() % 5; n > 0; --n) {
    switch (random() % 5) {
      case 0:
        pair.loose += "\\u0061";
        pair.exact += "a";
        break;
      case 1:
        pair.loose += "\\u000A";
        pair.exact += "\\n";
        break;
      case 2:
        pair.loose += "\\/";
        pair.exact += "/";
        break;
      case 3:
        pair.loose += "\\u00E9";
        pair.exact += "\xc3\xa9";
        break;
      default: pair.loose += "z"; pair.exact += "z";
    }
  }
  return {pair.loose + "\"", pair.exact + "\""};
}

Pair MakeNumber(std::mt19937_64& random) {
  const auto whole = static_cast<std::int64_t>(random() % 2'000'001) - 1'000'000;
  const std::string exact = std::to_string(whole);
  if (random() % 2 == 0) return {exact + ".000e0", exact};
  return {exact + "0E-1", exact};
}

Pair MakeValue(std::mt19937_64& random, int depth) {
  const auto choice = random() % (depth == 0 ? 3U : 5U);
  if (choice == 0) return MakeText(random);
  if (choice == 1) {
    Pair number = MakeNumber(random);
    if (number.exact == "0") number.loose = "-0.0";
    return number;
  }
  if (choice == 2) return random() % 2 == 0 ? Pair{" true ", "true"} : Pair{"null\n", "null"};
  Pair pair;
  if (choice == 3) {
    for (std::size_t n = random() % 4, i = 0; i < n; ++i) {
      const Pair element = MakeValue(random, depth - 1);
      pair.loose += (i > 0 ? " , " : "") + element.loose;
      pair.exact += (i > 0 ? "," : "") + element.exact;
    }
    return {"[ " + pair.loose + "]", "[" + pair.exact + "]"};
  }
  std::map<std::string, Pair> members;
  for (std::size_t n = random() % 4; n > 0; --n)
    members["k" + std::to_string(random() % 30)] = MakeValue(random, depth - 1);
  std::vector<std::string> loose;
  for (const auto& [name, value] : members) {
    loose.push_back("\"\\u006b" + name.substr(1) + "\" : " + value.loose);
    pair.exact += (pair.exact.empty() ? "" : ",") + ("\"" + name + "\":" + value.exact);
  }
  std::shuffle(loose.begin(), loose.end(), random);
  for (const auto& one : loose) pair.loose += (pair.loose.empty() ? "" : ",") + one;
  return {"{" + pair.loose + "}", "{" + pair.exact + "}"};
}

TEST_CASE("a hundred thousand random values come out canonical, and the canonical form stays as it is") {
  std::mt19937_64 random(71);
  for (int i = 0; i < 100'000; ++i) {
    const Pair pair = MakeValue(random, 3);
    REQUIRE(Canonical(pair.loose) == pair.exact);
    if (i % 10 == 0) REQUIRE(Canonical(pair.exact) == pair.exact);
  }
}

TEST_CASE("every double reads back from its canonical form and has no shorter one that does") {
  std::mt19937_64 random(72);
  for (int i = 0; i < 100'000; ++i) {
    const double number = std::bit_cast<double>(random());
    if (!std::isfinite(number) || number == 0) continue;
    char plain[64];
    std::snprintf(plain, sizeof plain, "%.17e", number);
    const std::string out = Canonical(plain);
    REQUIRE(std::strtod(out.c_str(), nullptr) == number);
    if (out.size() < 17) continue;
    const auto digits =
        std::count_if(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(std::min(out.find('e'), out.size())),
                      [](char c) { return c >= '0' && c <= '9'; });
    if (std::abs(number) < 1e21) continue;  // there zeros before or after the digits are part of the form
    std::snprintf(plain, sizeof plain, "%.*e", static_cast<int>(std::max<std::ptrdiff_t>(digits - 2, 0)), number);
    REQUIRE((digits == 1 || std::strtod(plain, nullptr) != number));
  }
}

}  // namespace
}  // namespace assay::token
