// SPDX-License-Identifier: Apache-2.0
// JSON (RFC 8259) in and out: a bounded reader over simdjson and a small writer for our own output. Depth, size and
// member count are limited, member names are unique, numbers that overflow and lone surrogates are refused.
// Values are views into the parser that made them: they die with its next Parse.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "sdk/core/bytes.h"
#include "sdk/core/result.h"

namespace assay {

inline constexpr std::size_t kJsonDepth = 16;    // containers within containers
inline constexpr std::size_t kJsonMembers = 64;  // of one object

enum class JsonKind : std::uint8_t { kNull, kBool, kInteger, kDouble, kString, kArray, kObject };

class JsonValue {
 public:
  JsonKind kind() const noexcept;
  std::optional<std::string_view> String() const noexcept;  // unescaped, valid UTF-8
  std::optional<std::int64_t> Int() const noexcept;         // written without fraction or exponent
  std::optional<double> Double() const noexcept;            // any number; an integer only when no digit is lost
  std::optional<bool> Bool() const noexcept;

  // Calls visit(name, value) for each member, or visit(value) for each element, until it returns false. False when
  // the value is of another kind, an object repeats a name or exceeds kJsonMembers, or visit returned false.
  template <typename F>
  bool EachMember(const F& visit) const {
    return EachMember(
        [](const void* f, std::string_view name, JsonValue value) { return (*static_cast<const F*>(f))(name, value); },
        &visit);
  }
  template <typename F>
  bool EachElement(const F& visit) const {
    return EachElement([](const void* f, JsonValue value) { return (*static_cast<const F*>(f))(value); }, &visit);
  }

 private:
  friend class JsonParser;
  using Token = std::array<std::uint64_t, 2>;  // the library's own handle of a value; checked in json.cc
  explicit JsonValue(Token token) noexcept : token_(token) {}
  bool EachMember(bool (*visit)(const void*, std::string_view, JsonValue), const void* context) const;
  bool EachElement(bool (*visit)(const void*, JsonValue), const void* context) const;
  Token token_;
};

// Owns all memory that parsing needs: after construction Parse allocates nothing, except for an Error's text.
// One owner, one thread.
class JsonParser {
 public:
  explicit JsonParser(std::size_t max_size);  // the longest text taken, in bytes; about 11 bytes of memory each
  JsonParser(JsonParser&&) noexcept;
  JsonParser& operator=(JsonParser&&) noexcept;
  ~JsonParser();

  std::optional<JsonValue> TryParse(std::string_view text) noexcept;  // nothing when the text is refused
  Result<JsonValue> Parse(std::string_view text);                     // says why

 private:
  struct State;
  const char* Load(std::string_view text, JsonValue::Token& root) noexcept;  // null, or what is wrong
  std::unique_ptr<State> state_;
};

std::string JsonQuote(std::string_view text);  // a JSON string with its quotes; aborts when text is not UTF-8

// Writes one JSON text without spaces. The caller keeps the grammar; commas are put where they belong.
class JsonWriter {
 public:
  JsonWriter& BeginObject() { return Open('{'); }
  JsonWriter& EndObject() { return Close('}'); }
  JsonWriter& BeginArray() { return Open('['); }
  JsonWriter& EndArray() { return Close(']'); }
  JsonWriter& Name(std::string_view name);
  JsonWriter& String(std::string_view value);
  JsonWriter& Int(std::int64_t value);
  JsonWriter& Uint(std::uint64_t value);
  JsonWriter& Bool(bool value);
  JsonWriter& Null();
  JsonWriter& Raw(std::string_view json);  // one value that is JSON already
  const std::string& text() const noexcept { return out_; }
  std::string Take() && { return std::move(out_); }

 private:
  JsonWriter& Open(char c);
  JsonWriter& Close(char c);
  void Separate();
  std::string out_;
  bool comma_ = false;  // a value or member stands before
};

}  // namespace assay
