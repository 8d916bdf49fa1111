// SPDX-License-Identifier: Apache-2.0
#include "verifier/authz/text_pattern.h"

#include <algorithm>

#include "sdk/core/cbor.h"

namespace assay::authz {
namespace {

constexpr int kNesting = 32;

// One code point of valid UTF-8.
char32_t NextCodePoint(std::string_view text, std::size_t& at) noexcept {
  const auto lead = static_cast<unsigned char>(text[at++]);
  if (lead < 0x80) return lead;
  const int more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
  char32_t c = lead & (0x3FU >> more);
  for (int i = 0; i < more; ++i) c = (c << 6) | (static_cast<unsigned char>(text[at++]) & 0x3FU);
  return c;
}

}  // namespace

// Recursive descent that emits relative jumps, so that a fragment can be copied for {m,n}.
class TextCompiler {
 public:
  using Step = TextPattern::Step;
  using Code = std::vector<Step>;

  explicit TextCompiler(std::string_view text) : text_(text) {}

  std::optional<TextPattern> Run() {
    Code code = Alternatives(0);
    if (failed_ || at_ != text_.size()) return std::nullopt;
    code.push_back({Step::kAccept});
    out_.steps_ = std::move(code);
    return std::move(out_);
  }

 private:
  bool More() const { return !failed_ && at_ < text_.size(); }
  bool Take(char c) {
    if (!More() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  Code Fail() {
    failed_ = true;
    return {};
  }
  static std::int32_t Size(const Code& code) { return static_cast<std::int32_t>(code.size()); }
  void Append(Code& to, const Code& from) {
    if (to.size() + from.size() > kTextProgram) failed_ = true;
    else to.insert(to.end(), from.begin(), from.end());
  }

  Code Alternatives(int depth) {
    if (depth > kNesting) return Fail();
    Code left = Sequence(depth);
    while (Take('|')) {
      const Code right = Sequence(depth);
      Code both{{Step::kSplit, false, 1, Size(left) + 2}};
      Append(both, left);
      both.push_back({Step::kJump, false, Size(right) + 1, 0});
      Append(both, right);
      left = std::move(both);
    }
    return left;
  }

  Code Sequence(int depth) {
    Code all;
    while (More() && text_[at_] != '|' && text_[at_] != ')') Append(all, Repeated(depth));
    return all;
  }

  Code Repeated(int depth) {
    Code atom = Atom(depth);
    while (More()) {
      int low = 0, high = -1;
      if (Take('*')) {
      } else if (Take('+')) low = 1;
      else if (Take('?')) high = 1;
      else if (text_[at_] == '{') {
        if (!Counts(low, high)) return Fail();
      } else break;
      (void)Take('?');  // a reluctant repeat matches the same texts
      if (More() && (text_[at_] == '*' || text_[at_] == '+' || text_[at_] == '{')) return Fail();
      atom = Repeat(atom, low, high);
    }
    return atom;
  }

  Code Repeat(const Code& atom, int low, int high) {
    Code all;
    for (int i = 0; i < low && !failed_; ++i) Append(all, atom);
    if (high < 0) {
      all.push_back({Step::kSplit, false, 1, Size(atom) + 2});
      Append(all, atom);
      all.push_back({Step::kJump, false, -Size(atom) - 1, 0});
    }
    for (int i = low; i < high && !failed_; ++i) {
      all.push_back({Step::kSplit, false, 1, Size(atom) + 1});
      Append(all, atom);
    }
    return all;
  }

  bool Number(int& out) {
    const std::size_t start = at_;
    out = 0;
    while (More() && text_[at_] >= '0' && text_[at_] <= '9' && at_ - start < 4) out = out * 10 + (text_[at_++] - '0');
    return at_ > start;
  }
  bool Counts(int& low, int& high) {
    if (!Take('{') || !Number(low)) return false;
    high = low;
    if (Take(',')) {
      high = -1;
      if (More() && text_[at_] != '}' && !Number(high)) return false;
    }
    return Take('}') && low <= 1000 && high <= 1000 && (high < 0 || low <= high);
  }

  Code Atom(int depth) {
    if (Take('(')) {
      if (Take('?') && !Take(':')) return Fail();
      Code inner = Alternatives(depth + 1);
      return Take(')') ? inner : Fail();
    }
    if (Take('[')) return Class();
    if (Take('^')) return {{Step::kBegin}};
    if (Take('$')) return {{Step::kEnd}};
    const auto first = static_cast<std::int32_t>(out_.ranges_.size());
    if (Take('.')) {
      for (const char32_t c : {U'\n', U'\r', U'\u2028', U'\u2029'}) out_.ranges_.push_back({c, c});
      return Finish(first, true);
    }
    bool negated = false;
    if (Take('\\')) {
      if (!Escape(negated, false)) return Fail();
      return Finish(first, negated);
    }
    if (!More() || std::string_view("*+?{}])").find(text_[at_]) != std::string_view::npos) return Fail();
    const char32_t c = NextCodePoint(text_, at_);
    out_.ranges_.push_back({c, c});
    return Finish(first, false);
  }

  Code Finish(std::int32_t first, bool negated) {
    return {{Step::kClass, negated, first, static_cast<std::int32_t>(out_.ranges_.size())}};
  }

  // What follows a backslash: a named set or a character that stands for itself.
  bool Escape(bool& negated, bool within) {
    if (!More()) return false;
    const char c = text_[at_++];
    auto& ranges = out_.ranges_;
    switch (c) {
      case 'D':
      case 'W':
      case 'S':
        if (within) return false;
        negated = true;
        [[fallthrough]];
      case 'd':
      case 'w':
      case 's': break;
      case 'n': ranges.push_back({'\n', '\n'}); return true;
      case 'r': ranges.push_back({'\r', '\r'}); return true;
      case 't': ranges.push_back({'\t', '\t'}); return true;
      default:
        if (std::string_view("\\^$.|?*+()[]{}/-").find(c) == std::string_view::npos) return false;
        ranges.push_back({static_cast<char32_t>(c), static_cast<char32_t>(c)});
        return true;
    }
    const char set = static_cast<char>(c | 0x20);
    if (set != 's') ranges.push_back({'0', '9'});
    if (set == 'w') ranges.insert(ranges.end(), {{'a', 'z'}, {'A', 'Z'}, {'_', '_'}});
    if (set == 's')
      ranges.insert(ranges.end(), {{'\t', '\r'}, {' ', ' '}, {0xA0, 0xA0}, {0x2028, 0x2029}, {0xFEFF, 0xFEFF}});
    return true;
  }

  // One member of a class into ranges_; `single` tells whether it may begin or end a range.
  bool Member(bool& single) {
    bool ignored = false;
    const std::size_t before = out_.ranges_.size();
    if (Take('\\')) {
      if (!Escape(ignored, true)) return false;
    } else {
      const char32_t c = NextCodePoint(text_, at_);
      out_.ranges_.push_back({c, c});
    }
    single = out_.ranges_.size() == before + 1 && out_.ranges_.back().low == out_.ranges_.back().high;
    return true;
  }

  Code Class() {
    const bool negated = Take('^');
    const auto first = static_cast<std::int32_t>(out_.ranges_.size());
    while (More() && text_[at_] != ']') {
      bool single = false;
      if (!Member(single)) return Fail();
      if (!(at_ + 1 < text_.size() && text_[at_] == '-' && text_[at_ + 1] != ']')) continue;
      ++at_;
      const char32_t low = out_.ranges_.back().low;
      bool end_single = false;
      if (!single || !Member(end_single) || !end_single) return Fail();
      const char32_t high = out_.ranges_.back().low;
      out_.ranges_.pop_back();
      out_.ranges_.back().high = high;
      if (low > high) return Fail();
    }
    if (!Take(']')) return Fail();
    return Finish(first, negated);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool failed_ = false;
  TextPattern out_;
};

std::optional<TextPattern> TextPattern::Compile(std::string_view text) {
  if (text.size() > kTextPatternSize || !IsUtf8(text)) return std::nullopt;
  return TextCompiler(text).Run();
}

bool TextPattern::InClass(const Step& step, char32_t c) const noexcept {
  const auto* const ranges = ranges_.data();
  const bool found =
      std::any_of(ranges + step.first, ranges + step.second, [c](const Range& r) { return c >= r.low && c <= r.high; });
  return found != step.negated;
}

bool TextPattern::Matches(std::string_view value) const {
  if (!IsUtf8(value)) return false;
  std::vector<std::size_t> now, next, stack;
  std::vector<std::size_t> marked(steps_.size(), value.size() + 1);  // the position at which a step was last added
  const auto add = [&](std::size_t start, std::size_t position, std::vector<std::size_t>& set) {
    stack.push_back(start);
    while (!stack.empty()) {
      const std::size_t at = stack.back();
      stack.pop_back();
      if (marked[at] == position) continue;
      marked[at] = position;
      const Step& step = steps_[at];
      const auto target = [&](std::int32_t by) { return static_cast<std::size_t>(static_cast<std::int64_t>(at) + by); };
      switch (step.kind) {
        case Step::kSplit:
          stack.push_back(target(step.second));
          stack.push_back(target(step.first));
          break;
        case Step::kJump: stack.push_back(target(step.first)); break;
        case Step::kBegin:
          if (position == 0) stack.push_back(at + 1);
          break;
        case Step::kEnd:
          if (position == value.size()) stack.push_back(at + 1);
          break;
        case Step::kClass:
        case Step::kAccept: set.push_back(at); break;
      }
    }
  };
  add(0, 0, now);
  for (std::size_t position = 0; position < value.size() && !now.empty();) {
    const char32_t c = NextCodePoint(value, position);
    next.clear();
    for (const std::size_t at : now)
      if (steps_[at].kind == Step::kClass && InClass(steps_[at], c)) add(at + 1, position, next);
    now.swap(next);
  }
  return marked[steps_.size() - 1] == value.size();
}

}  // namespace assay::authz
