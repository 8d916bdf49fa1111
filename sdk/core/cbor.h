// SPDX-License-Identifier: Apache-2.0
// Deterministically encoded CBOR (RFC 8949 section 4.2.1): the subset that every message here uses.
// Unsigned and negative integers, byte and text strings, arrays, maps with ascending unsigned keys,
// booleans and null. Definite lengths and shortest heads only; one encoding per value; text is UTF-8.
// Reading never allocates: strings are views into the input. Depth is bounded by the caller's own code,
// since a decoder asks for each item by its type and skipping counts its depth.
#pragma once

#include <cstdint>
#include <string_view>

#include "sdk/core/bytes.h"

namespace assay {

enum class CborKind : std::uint8_t { kUint, kNegative, kBytes, kText, kArray, kMap, kTag, kSimple, kEnd };

class CborReader {
 public:
  explicit CborReader(Bytes input) noexcept : reader_(input) {}

  CborKind Peek() const noexcept;           // kEnd at the end or after a failure
  std::uint64_t Uint(std::uint64_t limit = UINT64_MAX) noexcept;   // over the limit is a failure
  std::int64_t Int() noexcept;
  Bytes ByteString(std::size_t limit) noexcept;
  std::string_view TextString(std::size_t limit) noexcept;         // valid UTF-8 or a failure
  bool Bool() noexcept;
  bool TryNull() noexcept;                  // consumes a null when there is one
  std::size_t Array(std::size_t limit) noexcept;   // number of items that follow
  std::size_t Map(std::size_t limit) noexcept;     // number of pairs that follow
  Digest Digest32() noexcept;               // a byte string of exactly 32 bytes

  // Reads map key after map key: `previous` starts at -1 and each key must be greater (deterministic
  // order, no duplicates). Returns the key, at most 255, or fails.
  std::uint8_t Key(int& previous) noexcept;

  // For maps whose keys are all required: the number of pairs, then each key in order, must be exactly these.
  void ExpectMap(std::size_t pairs) noexcept;
  void ExpectKey(std::uint8_t key) noexcept;

  void Fail() noexcept { reader_.Fail(); }
  bool ok() const noexcept { return reader_.ok(); }
  bool AtEnd() const noexcept { return reader_.AtEnd(); }
  std::size_t position() const noexcept { return reader_.position(); }
  Status Finish(std::string_view what) const { return reader_.Finish(what); }

 private:
  struct Head { std::uint8_t major; std::uint64_t value; };
  Head ReadHead() noexcept;
  std::uint64_t Expect(std::uint8_t major, std::uint64_t limit) noexcept;
  Reader reader_;
};

class CborWriter {
 public:
  CborWriter() = default;
  explicit CborWriter(std::size_t reserve) : out_(reserve) {}
  void Uint(std::uint64_t value) { Head(0, value); }
  void Int(std::int64_t value);
  void ByteString(Bytes bytes);
  void TextString(std::string_view text);  // the caller holds UTF-8
  void Bool(bool value) { out_.U8(value ? 0xF5 : 0xF4); }
  void Null() { out_.U8(0xF6); }
  void Array(std::size_t items) { Head(4, items); }
  void Map(std::size_t pairs) { Head(5, pairs); }
  void Raw(Bytes encoded) { out_.Put(encoded); }  // already deterministic CBOR
  std::size_t size() const noexcept { return out_.size(); }
  const Buffer& buffer() const noexcept { return out_.buffer(); }
  Buffer Take() && { return std::move(out_).Take(); }

 private:
  void Head(std::uint8_t major, std::uint64_t value);
  Writer out_;
};

bool IsUtf8(std::string_view text) noexcept;  // RFC 3629: no surrogates, no overlong forms

}  // namespace assay
