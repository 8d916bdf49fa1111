// SPDX-License-Identifier: Apache-2.0
// Byte views, one bounds-checked Reader and one Writer for every binary format in the tree, and the
// text encodings (hex, base64url). The only place that copies raw memory. Never allocates while reading.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sdk/core/result.h"

namespace assay {

using Bytes = std::span<const std::uint8_t>;  // a view: the owner outlives it
using MutableBytes = std::span<std::uint8_t>;
using Buffer = std::vector<std::uint8_t>;

inline constexpr std::size_t kSha256Size = 32;
using Digest = std::array<std::uint8_t, kSha256Size>;

Bytes AsBytes(std::string_view text) noexcept;
std::string_view AsText(Bytes bytes) noexcept;
Buffer ToBuffer(Bytes bytes);
void CopyBytes(Bytes from, MutableBytes to) noexcept;  // sizes must be equal: aborts otherwise
bool Equal(Bytes a, Bytes b) noexcept;                 // data that is no secret
bool EqualConstantTime(Bytes a, Bytes b) noexcept;     // only the length may leak
Result<Digest> ToDigest(Bytes bytes);                  // exactly 32 bytes, else kMalformed

std::string ToHex(Bytes bytes);
Result<Buffer> FromHex(std::string_view text);        // lower or upper case, even length
std::string ToBase64Url(Bytes bytes);                 // RFC 4648 section 5, no padding
Result<Buffer> FromBase64Url(std::string_view text);  // strict: no padding, no stray bits
// Decodes into `out`; the number of bytes written, or kLimit when they do not fit. No allocation.
Result<std::size_t> FromBase64UrlInto(std::string_view text, MutableBytes out);
std::string ToBase64(Bytes bytes);  // RFC 4648 section 4, padded

// Reads forward and never past the end. After the first failure every read returns zero or empty and
// ok() stays false, so a decoder reads a whole structure and asks once. Not thread-safe.
class Reader {
 public:
  explicit Reader(Bytes input) noexcept : input_(input) {}

  std::uint8_t U8() noexcept;
  std::uint16_t U16Be() noexcept;
  std::uint32_t U32Be() noexcept;
  std::uint64_t U64Be() noexcept;
  std::uint16_t U16Le() noexcept;
  std::uint32_t U32Le() noexcept;
  std::uint64_t U64Le() noexcept;
  Bytes Take(std::size_t count) noexcept;          // a view into the input
  Bytes TakeU16Sized(std::size_t limit) noexcept;  // TPM2B: a big-endian 16-bit size, then that many bytes
  void Skip(std::size_t count) noexcept { (void)Take(count); }
  void Fail() noexcept { failed_ = true; }

  bool ok() const noexcept { return !failed_; }
  bool AtEnd() const noexcept { return position_ == input_.size(); }
  std::size_t position() const noexcept { return position_; }
  std::size_t remaining() const noexcept { return failed_ ? 0 : input_.size() - position_; }
  Bytes Rest() const noexcept { return input_.subspan(position_); }
  // kMalformed when a read failed or bytes are left over; `what` names the structure.
  Status Finish(std::string_view what) const;

 private:
  Bytes input_;
  std::size_t position_ = 0;
  bool failed_ = false;
};

// Appends to a growing buffer that it owns.
class Writer {
 public:
  Writer() = default;
  explicit Writer(std::size_t reserve) { out_.reserve(reserve); }
  void U8(std::uint8_t value) { out_.push_back(value); }
  void U16Be(std::uint16_t value);
  void U32Be(std::uint32_t value);
  void U64Be(std::uint64_t value);
  void U16Le(std::uint16_t value);
  void U32Le(std::uint32_t value);
  void U64Le(std::uint64_t value);
  void Put(Bytes bytes) { out_.insert(out_.end(), bytes.begin(), bytes.end()); }
  void PutU16Sized(Bytes bytes);  // TPM2B; aborts over 65535 bytes
  std::size_t size() const noexcept { return out_.size(); }
  const Buffer& buffer() const noexcept { return out_; }
  Buffer Take() && { return std::move(out_); }

 private:
  Buffer out_;
};

}  // namespace assay
