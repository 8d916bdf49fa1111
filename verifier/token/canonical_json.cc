// SPDX-License-Identifier: Apache-2.0
#include "verifier/token/canonical_json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

namespace assay::token {
namespace {

// Orders UTF-8 as UTF-16 code units would be: a character beyond the BMP (lead byte F0 and up) is written with
// surrogates D800..DFFF, thus before U+E000..U+FFFF (lead bytes EE and EF).
bool UnitLess(std::string_view a, std::string_view b) noexcept {
  const auto [x, y] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  if (x == a.end() || y == b.end()) return x == a.end() && y != b.end();
  const auto rank = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0xF0 ? byte - 0xF0 + 0xEE : byte >= 0xEE ? byte - 0xEE + 0xF8 : byte;
  };
  return rank(*x) < rank(*y);
}

void PutString(std::string& out, std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\b': out += "\\b"; break;
      case '\t': out += "\\t"; break;
      case '\n': out += "\\n"; break;
      case '\f': out += "\\f"; break;
      case '\r': out += "\\r"; break;
      default:
        if (byte < 0x20) (out += "\\u00") += {kHex[byte >> 4], kHex[byte & 15]};
        else out += c;
    }
  }
  out += '"';
}

// Number::toString of ECMAScript: the shortest digits that read back, plain from 1e-6 up to 1e21.
void PutNumber(std::string& out, double number) {
  if (number == 0) {
    out += '0';  // also -0
    return;
  }
  std::array<char, 40> text;
  const auto end =
      std::to_chars(text.data(), text.data() + text.size(), std::abs(number), std::chars_format::scientific).ptr;
  const std::string_view written(text.data(), static_cast<std::size_t>(end - text.data()));
  const std::size_t mark = written.find('e');
  std::string digits(1, written[0]);
  if (mark > 2) digits += written.substr(2, mark - 2);
  int exponent = 0;
  std::from_chars(written.data() + mark + (written[mark + 1] == '+' ? 2 : 1), end, exponent);
  const int count = static_cast<int>(digits.size());
  const int point = exponent + 1;  // digits before the decimal point
  if (number < 0) out += '-';
  if (point > 21 || point < -5) {
    out += digits[0];
    if (count > 1) (out += '.') += digits.substr(1);
    out += exponent < 0 ? "e-" : "e+";
    out += std::to_string(std::abs(exponent));
  } else if (point <= 0) {
    ((out += "0.").append(static_cast<std::size_t>(-point), '0')) += digits;
  } else if (count <= point) {
    (out += digits).append(static_cast<std::size_t>(point - count), '0');
  } else {
    ((out += digits.substr(0, static_cast<std::size_t>(point))) += '.') +=
        digits.substr(static_cast<std::size_t>(point));
  }
}

Status PutValue(std::string& out, JsonValue value);

Status PutObject(std::string& out, JsonValue value) {
  std::vector<std::pair<std::string_view, JsonValue>> members;
  if (!value.EachMember([&](std::string_view name, JsonValue member) {
        members.emplace_back(name, member);
        return true;
      })) {
    return MakeError(Code::kMalformed, "an object repeats a member or has more than 64");
  }
  std::sort(members.begin(), members.end(), [](const auto& a, const auto& b) { return UnitLess(a.first, b.first); });
  out += '{';
  bool first = true;
  for (const auto& [name, member] : members) {
    if (!std::exchange(first, false)) out += ',';
    PutString(out, name);
    out += ':';
    ASSAY_CHECK_OK(PutValue(out, member));
  }
  out += '}';
  return Ok();
}

Status PutArray(std::string& out, JsonValue value) {
  out += '[';
  bool first = true;
  Status status = Ok();
  (void)value.EachElement([&](JsonValue element) {
    if (!std::exchange(first, false)) out += ',';
    status = PutValue(out, element);
    return status.ok();
  });
  out += ']';
  return status;
}

Status PutValue(std::string& out, JsonValue value) {
  switch (value.kind()) {
    case JsonKind::kNull: out += "null"; return Ok();
    case JsonKind::kBool: out += *value.Bool() ? "true" : "false"; return Ok();
    case JsonKind::kString: PutString(out, *value.String()); return Ok();
    case JsonKind::kObject: return PutObject(out, value);
    case JsonKind::kArray: return PutArray(out, value);
    case JsonKind::kInteger:
    case JsonKind::kDouble: {
      const auto number = value.Double();
      if (!number) return MakeError(Code::kUnsupported, "an integer is too large for a double: write it as a string");
      PutNumber(out, *number);
      return Ok();
    }
  }
  return MakeError(Code::kInternal, "a JSON value of no kind");
}

}  // namespace

Result<std::string> CanonicalJson(JsonValue value) {
  std::string out;
  ASSAY_CHECK_OK(PutValue(out, value));
  return out;
}

Result<std::string> CanonicalJson(std::string_view text, std::size_t limit) {
  if (text.size() > limit) return MakeError(Code::kLimit, "the JSON text is longer than its limit");
  JsonParser parser(text.size());
  ASSAY_TRY(const JsonValue root, parser.Parse(text));
  return CanonicalJson(root);
}

}  // namespace assay::token
