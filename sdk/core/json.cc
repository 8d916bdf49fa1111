// SPDX-License-Identifier: Apache-2.0
// The only file that knows simdjson. Its tokens are carried as two words, so that no header of ours includes it.
#include "sdk/core/json.h"

#include <simdjson.h>

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "sdk/core/cbor.h"

namespace assay {
namespace {

using simdjson::dom::element;
using simdjson::dom::element_type;
using Token = std::array<std::uint64_t, 2>;
static_assert(sizeof(element) == sizeof(Token) && std::is_trivially_copyable_v<element>);

element FromToken(const Token& token) noexcept { return std::bit_cast<element>(token); }
Token ToToken(const element& value) noexcept { return std::bit_cast<Token>(value); }

int HexDigit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// The value of "\uXXXX" at `at`, or -1.
int EscapedUnit(std::string_view text, std::size_t at) noexcept {
  if (at + 6 > text.size() || text[at] != '\\' || text[at + 1] != 'u') return -1;
  int unit = 0;
  for (std::size_t i = at + 2; i < at + 6; ++i) {
    const int digit = HexDigit(text[i]);
    if (digit < 0) return -1;
    unit = unit * 16 + digit;
  }
  return unit;
}

// RFC 8259 section 8.2: a surrogate escape must be half of a pair. The library takes a low half on its own.
bool HasLoneSurrogate(std::string_view text) noexcept {
  if (text.find("\\u") == std::string_view::npos) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') continue;
    const int unit = EscapedUnit(text, i);
    if (unit >= 0xDC00 && unit <= 0xDFFF) return true;
    if (unit >= 0xD800 && unit <= 0xDBFF) {
      const int low = EscapedUnit(text, i + 6);
      if (low < 0xDC00 || low > 0xDFFF) return true;
      i += 6;
    }
    ++i;  // the character after a backslash starts no escape of its own
  }
  return false;
}

}  // namespace

JsonKind JsonValue::kind() const noexcept {
  switch (FromToken(token_).type()) {
    case element_type::ARRAY: return JsonKind::kArray;
    case element_type::OBJECT: return JsonKind::kObject;
    case element_type::INT64:
    case element_type::UINT64: return JsonKind::kInteger;
    case element_type::DOUBLE: return JsonKind::kDouble;
    case element_type::STRING: return JsonKind::kString;
    case element_type::BOOL: return JsonKind::kBool;
    case element_type::NULL_VALUE: return JsonKind::kNull;
  }
  std::abort();
}

std::optional<std::string_view> JsonValue::String() const noexcept {
  std::string_view text;
  if (FromToken(token_).get_string().get(text) != simdjson::SUCCESS) return std::nullopt;
  return text;
}

std::optional<std::int64_t> JsonValue::Int() const noexcept {
  const element value = FromToken(token_);
  if (value.type() != element_type::INT64) return std::nullopt;  // what needs an unsigned 64 is over every limit here
  std::int64_t number = 0;
  if (value.get_int64().get(number) != simdjson::SUCCESS) return std::nullopt;
  return number;
}

std::optional<double> JsonValue::Double() const noexcept {
  const element value = FromToken(token_);
  double number = 0;
  if (value.get_double().get(number) != simdjson::SUCCESS) return std::nullopt;  // converts integers
  constexpr double kInt64 = 9223372036854775808.0;  // 2^63: the conversion back is defined below it
  std::int64_t whole = 0;
  if (value.type() == element_type::INT64) {
    if (value.get_int64().get(whole) != simdjson::SUCCESS || number >= kInt64) return std::nullopt;
    if (static_cast<std::int64_t>(number) != whole) return std::nullopt;
  }
  std::uint64_t large = 0;
  if (value.type() == element_type::UINT64) {
    if (value.get_uint64().get(large) != simdjson::SUCCESS || number >= 2 * kInt64) return std::nullopt;
    if (static_cast<std::uint64_t>(number) != large) return std::nullopt;
  }
  return number;
}

std::optional<bool> JsonValue::Bool() const noexcept {
  bool flag = false;
  if (FromToken(token_).get_bool().get(flag) != simdjson::SUCCESS) return std::nullopt;
  return flag;
}

bool JsonValue::EachMember(bool (*visit)(const void*, std::string_view, JsonValue), const void* context) const {
  simdjson::dom::object object;
  if (FromToken(token_).get_object().get(object) != simdjson::SUCCESS) return false;
  std::array<std::string_view, kJsonMembers> names;
  std::size_t count = 0;
  for (const auto member : object) {
    if (count == names.size()) return false;
    for (std::size_t i = 0; i < count; ++i)
      if (names[i] == member.key) return false;
    names[count++] = member.key;
    if (!visit(context, member.key, JsonValue(ToToken(member.value)))) return false;
  }
  return true;
}

bool JsonValue::EachElement(bool (*visit)(const void*, JsonValue), const void* context) const {
  simdjson::dom::array array;
  if (FromToken(token_).get_array().get(array) != simdjson::SUCCESS) return false;
  for (const element item : array)
    if (!visit(context, JsonValue(ToToken(item)))) return false;
  return true;
}

constexpr std::size_t kLeastCapacity = 64;  // the library refuses to work with less than 32

struct JsonParser::State {
  explicit State(std::size_t size)
      : max_size(size),
        capacity(std::max(size, kLeastCapacity)),
        parser(capacity),
        input(capacity + simdjson::SIMDJSON_PADDING) {}
  std::size_t max_size;
  std::size_t capacity;
  simdjson::dom::parser parser;
  Buffer input;  // the text with the padding that the library reads into
};

JsonParser::JsonParser(std::size_t max_size) : state_(std::make_unique<State>(max_size)) {
  if (state_->parser.allocate(state_->capacity, kJsonDepth) != simdjson::SUCCESS) std::abort();
  // The document's memory grows with the longest text seen: show it the longest one now.
  state_->input[0] = '0';
  std::fill(state_->input.begin() + 1, state_->input.end(), std::uint8_t{' '});
  if (state_->parser.parse(state_->input.data(), state_->capacity, false).error() != simdjson::SUCCESS) std::abort();
}
JsonParser::JsonParser(JsonParser&&) noexcept = default;
JsonParser& JsonParser::operator=(JsonParser&&) noexcept = default;
JsonParser::~JsonParser() = default;

const char* JsonParser::Load(std::string_view text, JsonValue::Token& root) noexcept {
  if (text.size() > state_->max_size) return "the JSON text is longer than its limit";
  if (HasLoneSurrogate(text)) return "a JSON string holds half of a surrogate pair";
  CopyBytes(AsBytes(text), MutableBytes(state_->input).first(text.size()));
  element value;
  const auto fault = state_->parser.parse(state_->input.data(), text.size(), false).get(value);
  if (fault != simdjson::SUCCESS) return simdjson::error_message(fault);
  root = ToToken(value);
  return nullptr;
}

std::optional<JsonValue> JsonParser::TryParse(std::string_view text) noexcept {
  JsonValue::Token root{};
  if (Load(text, root) != nullptr) return std::nullopt;
  return JsonValue(root);
}

Result<JsonValue> JsonParser::Parse(std::string_view text) {
  JsonValue::Token root{};
  if (const char* fault = Load(text, root)) return MakeError(Code::kMalformed, fault);
  return JsonValue(root);
}

std::string JsonQuote(std::string_view text) {
  if (!IsUtf8(text)) std::abort();
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<std::uint8_t>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7F) {
      out += "\\u00";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  return out += '"';
}

void JsonWriter::Separate() {
  if (comma_) out_ += ',';
  comma_ = true;
}
JsonWriter& JsonWriter::Open(char c) {
  Separate();
  out_ += c;
  comma_ = false;
  return *this;
}
JsonWriter& JsonWriter::Close(char c) {
  out_ += c;
  comma_ = true;
  return *this;
}
JsonWriter& JsonWriter::Name(std::string_view name) {
  Separate();
  out_ += JsonQuote(name);
  out_ += ':';
  comma_ = false;
  return *this;
}
JsonWriter& JsonWriter::Raw(std::string_view json) {
  Separate();
  out_ += json;
  return *this;
}
JsonWriter& JsonWriter::String(std::string_view value) { return Raw(JsonQuote(value)); }
JsonWriter& JsonWriter::Int(std::int64_t value) { return Raw(std::to_string(value)); }
JsonWriter& JsonWriter::Uint(std::uint64_t value) { return Raw(std::to_string(value)); }
JsonWriter& JsonWriter::Bool(bool value) { return Raw(value ? "true" : "false"); }
JsonWriter& JsonWriter::Null() { return Raw("null"); }

}  // namespace assay
