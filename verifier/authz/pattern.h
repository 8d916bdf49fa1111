// SPDX-License-Identifier: Apache-2.0
// Resource patterns in two languages, and the relation "covers" between them, which follows from matching alone.
// Colon: segments between ':' are equal byte for byte; a middle "*" is exactly one segment, a trailing "*" zero or
// more, "*" alone is everything. Path: segments between '/'; "*" stands for any bytes within one segment, "**" for
// zero or more whole segments. Every resource has at least one segment: "" is one empty segment.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay::authz {

inline constexpr std::size_t kPatternSize = 512;

enum class Language : std::uint8_t { kColon, kPath };

// Immutable; matching allocates nothing and costs at most |pattern| * |resource| steps.
class Pattern {
 public:
  // Nothing for what is refused: over kPatternSize, control characters, bad UTF-8, and in a colon pattern emptiness
  // or a "*" beside other characters of its segment.
  static std::optional<Pattern> Compile(Language language, std::string_view text);

  bool Matches(std::string_view resource) const noexcept;
  Language language() const noexcept { return language_; }
  const std::string& text() const noexcept { return text_; }

  // Whether every resource that `child` matches is matched by at least one of `parents`. Exact for colon patterns;
  // for path patterns exact within kCoverStates, beyond that the answer is no.
  static bool Covers(std::span<const Pattern* const> parents, const Pattern& child);
  bool Covers(const Pattern& child) const;

 private:
  friend class PathAutomaton;
  enum class Kind : std::uint8_t { kLiteral, kAny, kGlob, kDeep };
  struct Segment {
    Kind kind;
    std::string text;
  };
  Pattern(Language language, std::string_view text) : language_(language), text_(text) {}
  bool CompileColon();
  void CompilePath();
  bool MatchColon(std::string_view resource) const noexcept;
  bool MatchPath(std::string_view resource) const noexcept;
  static bool CoversColon(std::span<const Pattern* const> parents, const Pattern& child);
  bool CoversLength(const Pattern& child, std::size_t length) const;
  const Segment& At(std::size_t index) const noexcept;

  Language language_;
  std::string text_;
  std::vector<Segment> segments_;
  bool tail_ = false;  // colon: a trailing "*"
};

inline constexpr std::size_t kCoverStates = 20'000;
bool PathCovers(std::span<const Pattern* const> parents, const Pattern& child);

// Actions are literals, or "*".
bool MatchesAction(std::span<const std::string> actions, std::string_view action) noexcept;

}  // namespace assay::authz
