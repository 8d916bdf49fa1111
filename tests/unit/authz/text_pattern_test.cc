// SPDX-License-Identifier: Apache-2.0
#include "verifier/authz/text_pattern.h"

#include <doctest/doctest.h>

#include <functional>
#include <random>
#include <set>
#include <string>

namespace assay::authz {
namespace {

bool Match(std::string_view pattern, std::string_view value) {
  const auto compiled = TextPattern::Compile(pattern);
  REQUIRE_MESSAGE(compiled, std::string(pattern));
  return compiled->Matches(value);
}

// Random expressions over a, b beside the plain meaning: the set of positions reached from a set of positions.
struct Expression {
  std::string text;
  std::function<std::set<std::size_t>(const std::string&, const std::set<std::size_t>&)> reach;
};

Expression Letter(char c) {
  return {std::string(1, c), [c](const std::string& value, const std::set<std::size_t>& from) {
            std::set<std::size_t> to;
            for (const std::size_t at : from)
              if (at < value.size() && (c == '.' || value[at] == c)) to.insert(at + 1);
            return to;
          }};
}

Expression Make(std::mt19937_64& random, int depth) {
  const auto choice = depth == 0 ? random() % 3 : random() % 8;
  if (choice < 3) return Letter("ab."[choice]);
  const Expression one = Make(random, depth - 1);
  if (choice < 5) {
    const Expression two = Make(random, depth - 1);
    return {one.text + two.text, [one, two](const std::string& v, const std::set<std::size_t>& from) {
              return two.reach(v, one.reach(v, from));
            }};
  }
  if (choice == 5) {
    const Expression two = Make(random, depth - 1);
    return {"(" + one.text + "|" + two.text + ")", [one, two](const std::string& v, const std::set<std::size_t>& from) {
              auto to = one.reach(v, from);
              to.merge(two.reach(v, from));
              return to;
            }};
  }
  const bool many = choice == 6;
  return {"(" + one.text + (many ? ")*" : ")?"), [one, many](const std::string& v, const std::set<std::size_t>& from) {
            std::set<std::size_t> all = from;
            for (std::size_t before = 0; before != all.size();) {
              before = all.size();
              all.merge(one.reach(v, all));
              if (!many) break;
            }
            return all;
          }};
}

TEST_CASE("expressions match what their plain meaning matches") {
  std::mt19937_64 random(61);
  int matched = 0;
  for (int i = 0; i < 4'000; ++i) {
    const Expression expression = Make(random, 4);
    const auto compiled = TextPattern::Compile(expression.text);
    if (!compiled) {
      CHECK(expression.text.size() > kTextPatternSize);
      continue;
    }
    for (int k = 0; k < 25; ++k) {
      std::string value;
      for (std::size_t n = random() % 7; n > 0; --n) value += "abc"[random() % 3];
      const bool expected = expression.reach(value, {0}).contains(value.size());
      matched += expected ? 1 : 0;
      REQUIRE_MESSAGE(compiled->Matches(value) == expected, expression.text << " | " << value);
    }
  }
  CHECK(matched > 5'000);
}

TEST_CASE("a pattern must match the whole value") {
  CHECK(Match("/tmp/.*", "/tmp/a"));
  CHECK(!Match("/tmp/.*", "x/tmp/a"));
  CHECK(!Match("a|b", "ab"));
  CHECK(!Match("a", "a\n"));
  CHECK(Match("^a$", "a"));
  CHECK(!Match(".*", "a\nb"));
  CHECK(Match("", ""));
  CHECK(!Match("", "a"));
}

TEST_CASE("classes, counts and escapes mean what they say") {
  CHECK(Match("[a-c]{2,3}", "abc"));
  CHECK(!Match("[a-c]{2,3}", "a"));
  CHECK(!Match("[a-c]{2,3}", "abca"));
  CHECK(Match("[^a]\\d+\\.", "b12."));
  CHECK(!Match("[^a]", "a"));
  CHECK(Match("\\w{2,}", "a_9"));
  CHECK(Match("[\\d-]+", "1-2"));
  CHECK(Match("h.llo", "h\xc3\xa9llo"));
  CHECK(Match("(?:ab)+?", "abab"));
}

TEST_CASE("what the engine does not know is refused") {
  for (const char* bad : {"(a", "a)", "*", "a**", "[a", "a{2", "a{3,2}", "\\1", "(?=a)", "(?!a)", "(?<n>a)", "\\b",
                          "\\q", "[b-a]", "a{1001}", "\\", "((a{99}){99}){99}", "{"}) {
    CHECK_MESSAGE(!TextPattern::Compile(bad), bad);
  }
  CHECK(!TextPattern::Compile(std::string(40, '(') + "a" + std::string(40, ')')));
}

TEST_CASE("an expression made to backtrack ends") {
  CHECK(!Match("(a*)*(a|aa)+b", std::string(2'000, 'a')));
  CHECK(!Match("(a?){50}a{50}", std::string(49, 'a')));
  CHECK(!Match("a", "\xff"));
}

}  // namespace
}  // namespace assay::authz
