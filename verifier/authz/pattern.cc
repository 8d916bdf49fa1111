// SPDX-License-Identifier: Apache-2.0
#include "verifier/authz/pattern.h"

#include <algorithm>

#include "sdk/core/bytes.h"
#include "sdk/core/cbor.h"

namespace assay::authz {
namespace {

// C0, DEL and, in UTF-8, C1.
bool HasControl(std::string_view text) noexcept {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x20 || byte == 0x7F) return true;
    if (byte == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0) return true;
  }
  return false;
}

// Walks the segments of a text; there is always a first one.
class Segments {
 public:
  Segments(std::string_view text, char separator) noexcept : text_(text), separator_(separator) {}
  bool done() const noexcept { return position_ > text_.size(); }
  std::size_t position() const noexcept { return position_; }
  void Seek(std::size_t position) noexcept { position_ = position; }
  std::string_view Next() noexcept {
    const std::size_t end = std::min(text_.find(separator_, position_), text_.size());
    const std::string_view segment = text_.substr(position_, end - position_);
    position_ = end + 1;
    return segment;
  }

 private:
  std::string_view text_;
  char separator_;
  std::size_t position_ = 0;
};

// "*" is any run of bytes. On a mismatch only the last "*" takes one byte more: what stands before it is settled.
bool MatchGlob(std::string_view glob, std::string_view text) noexcept {
  std::size_t g = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;
  std::size_t resume = 0;
  while (t < text.size()) {
    if (g < glob.size() && glob[g] == '*') {
      star = g++;
      resume = t;
    } else if (g < glob.size() && glob[g] == text[t]) {
      ++g;
      ++t;
    } else if (star != std::string_view::npos) {
      g = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (g < glob.size() && glob[g] == '*') ++g;
  return g == glob.size();
}

}  // namespace

std::optional<Pattern> Pattern::Compile(Language language, std::string_view text) {
  if (text.size() > kPatternSize || HasControl(text) || !IsUtf8(text)) return std::nullopt;
  Pattern pattern(language, text);
  if (language == Language::kPath) pattern.CompilePath();
  else if (!pattern.CompileColon()) return std::nullopt;
  return pattern;
}

bool Pattern::CompileColon() {
  if (text_.empty()) return false;
  for (Segments walk(text_, ':'); !walk.done();) {
    const std::string_view segment = walk.Next();
    if (segment == "*") {
      if (walk.done()) tail_ = true;
      else segments_.push_back({Kind::kAny, {}});
    } else if (segment.find('*') != std::string_view::npos) {
      return false;
    } else {
      segments_.push_back({Kind::kLiteral, std::string(segment)});
    }
  }
  return true;
}

void Pattern::CompilePath() {
  for (Segments walk(text_, '/'); !walk.done();) {
    const std::string_view segment = walk.Next();
    if (segment == "**") segments_.push_back({Kind::kDeep, {}});
    else if (segment == "*") segments_.push_back({Kind::kAny, {}});
    else if (segment.find('*') != std::string_view::npos) segments_.push_back({Kind::kGlob, std::string(segment)});
    else segments_.push_back({Kind::kLiteral, std::string(segment)});
  }
}

bool Pattern::Matches(std::string_view resource) const noexcept {
  return language_ == Language::kColon ? MatchColon(resource) : MatchPath(resource);
}

bool Pattern::MatchColon(std::string_view resource) const noexcept {
  Segments walk(resource, ':');
  for (const Segment& segment : segments_) {
    if (walk.done()) return false;
    const std::string_view part = walk.Next();
    if (segment.kind == Kind::kLiteral && part != segment.text) return false;
  }
  return tail_ || walk.done();
}

// The same walk as MatchGlob with whole segments for bytes and "**" for "*".
bool Pattern::MatchPath(std::string_view resource) const noexcept {
  Segments walk(resource, '/');
  std::size_t at = 0;
  std::size_t deep = segments_.size();  // none yet
  std::size_t resume = 0;
  while (!walk.done()) {
    if (at < segments_.size() && segments_[at].kind == Kind::kDeep) {
      deep = at++;
      resume = walk.position();
      continue;
    }
    const std::string_view part = walk.Next();
    if (at < segments_.size()) {
      const Segment& segment = segments_[at];
      if (segment.kind == Kind::kAny || (segment.kind == Kind::kLiteral && segment.text == part) ||
          (segment.kind == Kind::kGlob && MatchGlob(segment.text, part))) {
        ++at;
        continue;
      }
    }
    if (deep == segments_.size()) return false;
    at = deep + 1;
    walk.Seek(resume);
    (void)walk.Next();
    resume = walk.position();
  }
  while (at < segments_.size() && segments_[at].kind == Kind::kDeep) ++at;
  return at == segments_.size();
}

const Pattern::Segment& Pattern::At(std::size_t index) const noexcept {
  static const Segment any{Kind::kAny, {}};
  return index < segments_.size() ? segments_[index] : any;
}

// For resources of exactly `length` segments a colon pattern is a box: each place is one literal or anything.
bool Pattern::CoversLength(const Pattern& child, std::size_t length) const {
  if (tail_ ? length < segments_.size() : length != segments_.size()) return false;
  for (std::size_t i = 0; i < length; ++i) {
    if (At(i).kind == Kind::kAny) continue;
    if (child.At(i).kind == Kind::kAny || child.At(i).text != At(i).text) return false;
  }
  return true;
}

// There are more texts than any list of literals names, so a box within a union of boxes lies within one of them;
// which one may differ by length. One length past the longest pattern stands for all longer ones.
bool Pattern::CoversColon(std::span<const Pattern* const> parents, const Pattern& child) {
  std::size_t last = child.segments_.size();
  if (child.tail_) {
    for (const Pattern* parent : parents) last = std::max(last, parent->segments_.size());
    ++last;
  }
  for (std::size_t length = std::max<std::size_t>(child.segments_.size(), 1); length <= last; ++length) {
    if (!std::any_of(parents.begin(), parents.end(), [&](const Pattern* parent) {
          return parent->language_ == Language::kColon && parent->CoversLength(child, length);
        })) {
      return false;
    }
  }
  return true;
}

bool Pattern::Covers(std::span<const Pattern* const> parents, const Pattern& child) {
  return child.language_ == Language::kColon ? CoversColon(parents, child) : PathCovers(parents, child);
}

bool Pattern::Covers(const Pattern& child) const {
  const Pattern* const self = this;
  return Covers(std::span<const Pattern* const>(&self, 1), child);
}

bool MatchesAction(std::span<const std::string> actions, std::string_view action) noexcept {
  return std::any_of(actions.begin(), actions.end(),
                     [&](const std::string& one) { return one == "*" || one == action; });
}

}  // namespace assay::authz
