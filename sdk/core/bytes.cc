// SPDX-License-Identifier: Apache-2.0
// The only memcpy of the tree lives here; everything else goes through Reader, Writer and views.
#include "sdk/core/bytes.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace assay {
namespace {

constexpr char kHexDigits[] = "0123456789abcdef";
constexpr char kUrlAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr char kStdAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uint8_t kNoSymbol = 0xFF;

constexpr std::array<std::uint8_t, 256> MakeUrlTable() {
  std::array<std::uint8_t, 256> table{};
  for (auto& entry : table) entry = kNoSymbol;
  for (std::uint8_t i = 0; i < 64; ++i) table[static_cast<std::uint8_t>(kUrlAlphabet[i])] = i;
  return table;
}
constexpr auto kUrlTable = MakeUrlTable();
constexpr std::uint8_t Symbol(char c) noexcept { return kUrlTable[static_cast<std::uint8_t>(c)]; }

int HexValue(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string EncodeBase64(Bytes bytes, const char* alphabet, bool pad) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  std::size_t i = 0;
  for (; i + 3 <= bytes.size(); i += 3) {
    const std::uint32_t v = (std::uint32_t{bytes[i]} << 16) | (std::uint32_t{bytes[i + 1]} << 8) | bytes[i + 2];
    out += alphabet[v >> 18];
    out += alphabet[(v >> 12) & 63];
    out += alphabet[(v >> 6) & 63];
    out += alphabet[v & 63];
  }
  const std::size_t left = bytes.size() - i;
  if (left == 1) {
    const std::uint32_t v = std::uint32_t{bytes[i]} << 16;
    out += alphabet[v >> 18];
    out += alphabet[(v >> 12) & 63];
    if (pad) out += "==";
  } else if (left == 2) {
    const std::uint32_t v = (std::uint32_t{bytes[i]} << 16) | (std::uint32_t{bytes[i + 1]} << 8);
    out += alphabet[v >> 18];
    out += alphabet[(v >> 12) & 63];
    out += alphabet[(v >> 6) & 63];
    if (pad) out += '=';
  }
  return out;
}

}  // namespace

Bytes AsBytes(std::string_view text) noexcept {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

std::string_view AsText(Bytes bytes) noexcept { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

Buffer ToBuffer(Bytes bytes) { return Buffer(bytes.begin(), bytes.end()); }

void CopyBytes(Bytes from, MutableBytes to) noexcept {
  if (from.size() != to.size()) std::abort();
  if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
}

bool Equal(Bytes a, Bytes b) noexcept {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

bool EqualConstantTime(Bytes a, Bytes b) noexcept {
  return a.size() == b.size() && (a.empty() || CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0);
}

Result<Digest> ToDigest(Bytes bytes) {
  Digest digest{};
  if (bytes.size() != digest.size()) return MakeError(Code::kMalformed, "a SHA-256 digest has 32 bytes");
  CopyBytes(bytes, digest);
  return digest;
}

std::string ToHex(Bytes bytes) {
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const std::uint8_t byte : bytes) {
    out += kHexDigits[byte >> 4];
    out += kHexDigits[byte & 15];
  }
  return out;
}

Result<Buffer> FromHex(std::string_view text) {
  if (text.size() % 2 != 0) return MakeError(Code::kMalformed, "hexadecimal text has an odd length");
  Buffer out;
  out.reserve(text.size() / 2);
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const int high = HexValue(text[i]);
    const int low = HexValue(text[i + 1]);
    if (high < 0 || low < 0) return MakeError(Code::kMalformed, "a character is not a hexadecimal digit");
    out.push_back(static_cast<std::uint8_t>(high * 16 + low));
  }
  return out;
}

std::string ToBase64Url(Bytes bytes) { return EncodeBase64(bytes, kUrlAlphabet, false); }
std::string ToBase64(Bytes bytes) { return EncodeBase64(bytes, kStdAlphabet, true); }

Result<std::size_t> FromBase64UrlInto(std::string_view text, MutableBytes out) {
  const std::size_t tail = text.size() % 4;
  if (tail == 1) return MakeError(Code::kMalformed, "base64url text has an impossible length");
  const std::size_t size = text.size() / 4 * 3 + (tail == 0 ? 0 : tail - 1);
  if (size > out.size()) return MakeError(Code::kLimit, "base64url text is longer than its field allows");
  std::size_t at = 0;
  std::size_t i = 0;
  for (; i + 4 <= text.size(); i += 4, at += 3) {  // whole groups; a symbol that is none has its high bits set
    const std::uint8_t a = Symbol(text[i]), b = Symbol(text[i + 1]), c = Symbol(text[i + 2]), d = Symbol(text[i + 3]);
    if (((a | b | c | d) & 0xC0) != 0) return MakeError(Code::kMalformed, "a character is not base64url");
    out[at] = static_cast<std::uint8_t>(a << 2 | b >> 4);
    out[at + 1] = static_cast<std::uint8_t>(b << 4 | c >> 2);
    out[at + 2] = static_cast<std::uint8_t>(c << 6 | d);
  }
  std::uint32_t bits = 0;
  unsigned held = 0;
  for (; i < text.size(); ++i) {
    const std::uint8_t symbol = Symbol(text[i]);
    if (symbol == kNoSymbol) return MakeError(Code::kMalformed, "a character is not base64url");
    bits = (bits << 6) | symbol;
    held += 6;
    if (held >= 8) {
      held -= 8;
      out[at++] = static_cast<std::uint8_t>(bits >> held);
      bits &= (1U << held) - 1;
    }
  }
  if (bits != 0) return MakeError(Code::kMalformed, "base64url text carries stray bits");
  return at;
}

Result<Buffer> FromBase64Url(std::string_view text) {
  Buffer out(text.size() / 4 * 3 + 3);
  ASSAY_TRY(const std::size_t size, FromBase64UrlInto(text, out));
  out.resize(size);
  return out;
}

Bytes Reader::Take(std::size_t count) noexcept {
  if (failed_ || count > input_.size() - position_) {
    failed_ = true;
    return {};
  }
  const Bytes taken = input_.subspan(position_, count);
  position_ += count;
  return taken;
}

Bytes Reader::TakeU16Sized(std::size_t limit) noexcept {
  const std::size_t size = U16Be();
  if (size > limit) failed_ = true;
  return Take(size);
}

std::uint8_t Reader::U8() noexcept {
  const Bytes b = Take(1);
  return b.empty() ? std::uint8_t{0} : b[0];
}

std::uint16_t Reader::U16Be() noexcept {
  const Bytes b = Take(2);
  return b.empty() ? std::uint16_t{0} : static_cast<std::uint16_t>((b[0] << 8) | b[1]);
}

std::uint32_t Reader::U32Be() noexcept {
  const Bytes b = Take(4);
  if (b.empty()) return 0;
  return (std::uint32_t{b[0]} << 24) | (std::uint32_t{b[1]} << 16) | (std::uint32_t{b[2]} << 8) | b[3];
}

std::uint64_t Reader::U64Be() noexcept {
  const std::uint64_t high = U32Be();
  return (high << 32) | U32Be();
}

std::uint16_t Reader::U16Le() noexcept {
  const Bytes b = Take(2);
  return b.empty() ? std::uint16_t{0} : static_cast<std::uint16_t>((b[1] << 8) | b[0]);
}

std::uint32_t Reader::U32Le() noexcept {
  const Bytes b = Take(4);
  if (b.empty()) return 0;
  return (std::uint32_t{b[3]} << 24) | (std::uint32_t{b[2]} << 16) | (std::uint32_t{b[1]} << 8) | b[0];
}

std::uint64_t Reader::U64Le() noexcept {
  const std::uint64_t low = U32Le();
  return (static_cast<std::uint64_t>(U32Le()) << 32) | low;
}

Status Reader::Finish(std::string_view what) const {
  if (failed_) return MakeError(Code::kMalformed, std::string(what) + " is cut short or breaks a size limit");
  if (!AtEnd()) return MakeError(Code::kMalformed, std::string(what) + " is followed by stray bytes");
  return Ok();
}

void Writer::U16Be(std::uint16_t value) {
  out_.push_back(static_cast<std::uint8_t>(value >> 8));
  out_.push_back(static_cast<std::uint8_t>(value));
}
void Writer::U32Be(std::uint32_t value) {
  U16Be(static_cast<std::uint16_t>(value >> 16));
  U16Be(static_cast<std::uint16_t>(value));
}
void Writer::U64Be(std::uint64_t value) {
  U32Be(static_cast<std::uint32_t>(value >> 32));
  U32Be(static_cast<std::uint32_t>(value));
}
void Writer::U16Le(std::uint16_t value) {
  out_.push_back(static_cast<std::uint8_t>(value));
  out_.push_back(static_cast<std::uint8_t>(value >> 8));
}
void Writer::U32Le(std::uint32_t value) {
  U16Le(static_cast<std::uint16_t>(value));
  U16Le(static_cast<std::uint16_t>(value >> 16));
}
void Writer::U64Le(std::uint64_t value) {
  U32Le(static_cast<std::uint32_t>(value));
  U32Le(static_cast<std::uint32_t>(value >> 32));
}

void Writer::PutU16Sized(Bytes bytes) {
  if (bytes.size() > 0xFFFF) std::abort();
  U16Be(static_cast<std::uint16_t>(bytes.size()));
  Put(bytes);
}

}  // namespace assay
