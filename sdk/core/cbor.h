// SPDX-License-Identifier: Apache-2.0
// Deterministically encoded CBOR (RFC 8949 section 4.2.1): the subset that every message here uses.
// Unsigned and negative integers, byte and text strings, arrays, maps with ascending unsigned keys,
// booleans and null. Definite lengths and shortest heads only; one encoding per value; text is UTF-8.
// Reading never allocates: strings are views into the input. Depth is bounded by the caller's own code,
// since a decoder asks for each item by its type and skipping counts its depth.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "sdk/core/bytes.h"

namespace assay {

enum class CborKind : std::uint8_t { kUint, kNegative, kBytes, kText, kArray, kMap, kTag, kSimple, kEnd };

class CborReader {
 public:
  explicit CborReader(Bytes input) noexcept : input_(input) {}

  CborKind Peek() const noexcept;  // kEnd at the end or after a failure
  std::uint64_t Uint(std::uint64_t limit = UINT64_MAX) noexcept {
    return Expect(0, limit);
  }  // over the limit is a failure
  std::int64_t Int() noexcept;
  Bytes ByteString(std::size_t limit) noexcept { return Take(Expect(2, limit)); }
  std::string_view TextString(std::size_t limit) noexcept;  // valid UTF-8 or a failure
  bool Bool() noexcept;
  bool TryNull() noexcept;                                                    // consumes a null when there is one
  std::size_t Array(std::size_t limit) noexcept { return Expect(4, limit); }  // number of items that follow
  std::size_t Map(std::size_t limit) noexcept { return Expect(5, limit); }    // number of pairs that follow
  Digest Digest32() noexcept {                                                // a byte string of exactly 32 bytes
    Digest out{};
    const Bytes bytes = ByteString(kSha256Size);
    if (bytes.size() == kSha256Size) std::copy_n(bytes.begin(), kSha256Size, out.begin());
    else Fail();
    return out;
  }

  // Reads map key after map key: `previous` starts at -1 and each key must be greater (deterministic
  // order, no duplicates). Returns the key, at most 255, or fails.
  std::uint8_t Key(int& previous) noexcept;

  // For maps whose keys are all required: the number of pairs, then each key in order, must be exactly these.
  void ExpectMap(std::size_t pairs) noexcept {
    if (Map(pairs) != pairs) Fail();
  }
  void ExpectKey(std::uint8_t key) noexcept {
    if (Uint(255) != key) Fail();
  }

  void Fail() noexcept { failed_ = true; }
  bool ok() const noexcept { return !failed_; }
  bool AtEnd() const noexcept { return position_ == input_.size(); }
  std::size_t position() const noexcept { return position_; }
  Status Finish(std::string_view what) const;

 private:
  struct Head {
    std::uint8_t major;
    std::uint64_t value;
  };
  Head ReadHead() noexcept;
  std::uint64_t ExpectLong(std::uint8_t major, std::uint64_t limit) noexcept;
  // A head of this major type and its value. Most are one or two bytes long: those are decoded in place.
  std::uint64_t Expect(std::uint8_t major, std::uint64_t limit) noexcept {
    const std::size_t left = failed_ ? 0 : input_.size() - position_;
    if (left > 0 && input_[position_] >> 5 == major) {
      const std::uint8_t info = input_[position_] & 0x1F;
      if (info < 24 && info <= limit) {
        ++position_;
        return info;
      }
      if (info == 24 && left > 1 && input_[position_ + 1] >= 24 && input_[position_ + 1] <= limit) {
        position_ += 2;
        return input_[position_ - 1];
      }
    }
    return ExpectLong(major, limit);
  }
  Bytes Take(std::size_t count) noexcept {
    if (failed_ || count > input_.size() - position_) {
      failed_ = true;
      return {};
    }
    position_ += count;
    return input_.subspan(position_ - count, count);
  }

  Bytes input_;
  std::size_t position_ = 0;  // never past the end
  bool failed_ = false;
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
