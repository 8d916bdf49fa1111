// SPDX-License-Identifier: Apache-2.0
// Matching and covering against plain definitions: recursion over lists of segments, and enumeration.
#include "verifier/authz/pattern.h"

#include <doctest/doctest.h>

#include <random>

namespace assay::authz {
namespace {

using Random = std::mt19937_64;

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == separator) parts.emplace_back();
    else parts.back() += c;
  }
  return parts;
}

// The definition of colon patterns, word for word.
bool PlainColon(const std::string& pattern, const std::string& resource) {
  if (pattern == "*") return true;
  std::vector<std::string> p = Split(pattern, ':');
  std::vector<std::string> r = Split(resource, ':');
  const bool tail = p.back() == "*";
  if (tail) {
    p.pop_back();
    if (r.size() < p.size()) return false;
    r.resize(p.size());
  }
  if (p.size() != r.size()) return false;
  for (std::size_t i = 0; i < p.size(); ++i)
    if (p[i] != "*" && p[i] != r[i]) return false;
  return true;
}

bool PlainGlob(const std::string& glob, const std::string& text) {
  if (glob.empty()) return text.empty();
  if (glob[0] == '*') return PlainGlob(glob.substr(1), text) || (!text.empty() && PlainGlob(glob, text.substr(1)));
  return !text.empty() && glob[0] == text[0] && PlainGlob(glob.substr(1), text.substr(1));
}

bool PlainPath(const std::vector<std::string>& p, std::size_t i, const std::vector<std::string>& r, std::size_t j) {
  if (i == p.size()) return j == r.size();
  if (p[i] == "**") return PlainPath(p, i + 1, r, j) || (j < r.size() && PlainPath(p, i, r, j + 1));
  return j < r.size() && PlainGlob(p[i], r[j]) && PlainPath(p, i + 1, r, j + 1);
}

std::string Join(Random& random, const std::vector<std::string>& parts, char separator, std::size_t longest) {
  std::string text;
  const std::size_t count = 1 + random() % longest;
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) text += separator;
    text += parts[random() % parts.size()];
  }
  return text;
}

// Every resource of up to `longest` segments over an alphabet that has letters no pattern names.
std::vector<std::string> All(const std::vector<std::string>& segments, char separator, std::size_t longest) {
  std::vector<std::string> all = segments;
  std::vector<std::string> last = segments;
  for (std::size_t length = 2; length <= longest; ++length) {
    std::vector<std::string> next;
    for (const auto& head : last)
      for (const auto& segment : segments) next.push_back(head + separator + segment);
    all.insert(all.end(), next.begin(), next.end());
    last = std::move(next);
  }
  return all;
}

TEST_CASE("colon matching equals its definition on a hundred thousand random pairs") {
  Random random(51);
  int matched = 0;
  for (int i = 0; i < 100'000; ++i) {
    const std::string text = Join(random, {"a", "b", "", "*", "*", "ab"}, ':', 5);
    const std::string resource = Join(random, {"a", "b", "", "ab", "*"}, ':', 6);
    const auto pattern = Pattern::Compile(Language::kColon, text);
    if (text.empty()) {
      CHECK(!pattern);
      continue;
    }
    REQUIRE(pattern);
    const bool expected = PlainColon(text, resource);
    matched += expected ? 1 : 0;
    REQUIRE_MESSAGE(pattern->Matches(resource) == expected, text << " | " << resource);
  }
  CHECK(matched > 1000);
}

TEST_CASE("path matching equals its definition on a hundred thousand random pairs") {
  Random random(52);
  int matched = 0;
  for (int i = 0; i < 100'000; ++i) {
    const std::string text = Join(random, {"a", "b", "", "*", "**", "a*", "*b", "a*b", "*a*"}, '/', 5);
    const std::string resource = Join(random, {"a", "b", "", "ab", "aab", "ba"}, '/', 6);
    const auto pattern = Pattern::Compile(Language::kPath, text);
    REQUIRE(pattern);
    const bool expected = PlainPath(Split(text, '/'), 0, Split(resource, '/'), 0);
    matched += expected ? 1 : 0;
    REQUIRE_MESSAGE(pattern->Matches(resource) == expected, text << " | " << resource);
  }
  CHECK(matched > 1000);
}

TEST_CASE("a colon pattern covers another exactly when every resource says so") {
  Random random(53);
  const std::vector<std::string> resources = All({"a", "b", "x", ""}, ':', 5);
  int covered = 0;
  for (int i = 0; i < 2'000; ++i) {
    const auto parent = Pattern::Compile(Language::kColon, "" + Join(random, {"a", "b", "*", "*"}, ':', 3));
    const auto child = Pattern::Compile(Language::kColon, Join(random, {"a", "b", "*", "*"}, ':', 3));
    bool expected = true;
    for (const auto& resource : resources) {
      if (child->Matches(resource) && !parent->Matches(resource)) {
        expected = false;
        break;
      }
    }
    covered += expected ? 1 : 0;
    REQUIRE_MESSAGE(parent->Covers(*child) == expected, parent->text() << " covers " << child->text());
  }
  CHECK(covered > 100);
}

// What one check decides stands for all the resources it was enumerated over: well over 10^5 of them.
TEST_CASE("a union of colon patterns covers exactly what its members cover together") {
  Random random(54);
  const std::vector<std::string> resources = All({"a", "b", "x"}, ':', 5);
  int only_together = 0;
  for (int i = 0; i < 2'000; ++i) {
    const auto one = Pattern::Compile(Language::kColon, Join(random, {"a", "*", "*"}, ':', 3));
    const auto two = Pattern::Compile(Language::kColon, Join(random, {"a", "*", "*"}, ':', 3));
    const auto child = Pattern::Compile(Language::kColon, Join(random, {"a", "*"}, ':', 3));
    bool expected = true;
    for (const auto& resource : resources) {
      if (child->Matches(resource) && !one->Matches(resource) && !two->Matches(resource)) {
        expected = false;
        break;
      }
    }
    const std::vector<const Pattern*> parents{&*one, &*two};
    REQUIRE_MESSAGE(Pattern::Covers(parents, *child) == expected,
                    one->text() << " + " << two->text() << " covers " << child->text());
    only_together += expected && !one->Covers(*child) && !two->Covers(*child) ? 1 : 0;
  }
  CHECK(only_together > 0);
}

TEST_CASE("a path pattern covers another exactly when every resource says so") {
  Random random(55);
  const std::vector<std::string> resources = All({"", "a", "b", "ab", "aab", "x", "axb"}, '/', 4);
  int covered = 0;
  for (int i = 0; i < 500; ++i) {
    const auto parent = Pattern::Compile(Language::kPath, Join(random, {"a", "*", "**", "a*", "*b"}, '/', 3));
    const auto child = Pattern::Compile(Language::kPath, Join(random, {"a", "*", "**", "a*", "ab"}, '/', 3));
    bool expected = true;
    for (const auto& resource : resources) {
      if (child->Matches(resource) && !parent->Matches(resource)) {
        expected = false;
        break;
      }
    }
    covered += expected ? 1 : 0;
    REQUIRE_MESSAGE(parent->Covers(*child) == expected, parent->text() << " covers " << child->text());
  }
  CHECK(covered > 25);
}

TEST_CASE("patterns with controls, broken UTF-8 or too many bytes are refused") {
  for (const char* bad : {"a:\x01", "a\x7f", "a\n", "\xc2\x85", "\xff", "\xc3"}) {
    CHECK(!Pattern::Compile(Language::kColon, bad));
    CHECK(!Pattern::Compile(Language::kPath, bad));
  }
  CHECK(!Pattern::Compile(Language::kColon, std::string_view("a\0b", 3)));
  CHECK(!Pattern::Compile(Language::kColon, std::string(kPatternSize + 1, 'a')));
  CHECK(Pattern::Compile(Language::kColon, std::string(kPatternSize, 'a')));
}

TEST_CASE("a path pattern made to be exponential costs steps that grow with the product of sizes") {
  std::string text, resource;
  for (int i = 0; i < 60; ++i) text += "**/a*a*a/";
  for (int i = 0; i < 5'000; ++i) resource += "aaab/";
  const auto pattern = Pattern::Compile(Language::kPath, text.substr(0, kPatternSize));
  REQUIRE(pattern);
  CHECK(!pattern->Matches(resource));
}

}  // namespace
}  // namespace assay::authz
