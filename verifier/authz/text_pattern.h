// SPDX-License-Identifier: Apache-2.0
// Patterns for argument values: a regular expression that must match the whole value. It is run as a set of states
// (Thompson), so that a match costs at most |program| * |value| steps whatever the pattern.
// Known: literals, '.', classes, groups, '|', '*', '+', '?', {m,n}, \d \w \s \D \W \S, '^' and '$'. Refused:
// back references, look-around, and what is not known here. '.' is any character but a line break.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace assay::authz {

inline constexpr std::size_t kTextPatternSize = 256;
inline constexpr std::size_t kTextProgram = 4096;

class TextPattern {
 public:
  static std::optional<TextPattern> Compile(std::string_view text);
  bool Matches(std::string_view value) const;  // false for bad UTF-8

 private:
  friend class TextCompiler;
  struct Range {
    char32_t low, high;
  };
  struct Step {
    enum Kind : std::uint8_t { kClass, kSplit, kJump, kBegin, kEnd, kAccept } kind;
    bool negated = false;
    std::int32_t first = 0, second = 0;  // kClass: ranges [first, second); else targets, relative to this step
  };
  bool InClass(const Step& step, char32_t c) const noexcept;

  std::vector<Step> steps_;
  std::vector<Range> ranges_;
};

}  // namespace assay::authz
