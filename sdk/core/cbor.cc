// SPDX-License-Identifier: Apache-2.0
#include "sdk/core/cbor.h"

namespace assay {
namespace {

constexpr std::uint8_t kMajorUint = 0;
constexpr std::uint8_t kMajorNegative = 1;
constexpr std::uint8_t kMajorBytes = 2;
constexpr std::uint8_t kMajorText = 3;
constexpr std::uint8_t kMajorArray = 4;
constexpr std::uint8_t kMajorMap = 5;
constexpr std::uint8_t kFalse = 0xF4;
constexpr std::uint8_t kTrue = 0xF5;
constexpr std::uint8_t kNull = 0xF6;

}  // namespace

bool IsUtf8(std::string_view text) noexcept {
  const Bytes b = AsBytes(text);
  std::size_t i = 0;
  while (i < b.size()) {
    const std::uint8_t lead = b[i];
    if (lead < 0x80) {
      ++i;
      continue;
    }
    std::size_t more = 0;
    std::uint32_t point = 0;
    std::uint32_t smallest = 0;
    if (lead >= 0xC2 && lead <= 0xDF) { more = 1; point = lead & 0x1FU; smallest = 0x80; }
    else if (lead >= 0xE0 && lead <= 0xEF) { more = 2; point = lead & 0x0FU; smallest = 0x800; }
    else if (lead >= 0xF0 && lead <= 0xF4) { more = 3; point = lead & 0x07U; smallest = 0x10000; }
    else return false;
    if (b.size() - i <= more) return false;
    for (std::size_t k = 1; k <= more; ++k) {
      if ((b[i + k] & 0xC0) != 0x80) return false;
      point = (point << 6) | (b[i + k] & 0x3FU);
    }
    if (point < smallest || point > 0x10FFFF || (point >= 0xD800 && point <= 0xDFFF)) return false;
    i += more + 1;
  }
  return true;
}

CborKind CborReader::Peek() const noexcept {
  if (!reader_.ok() || reader_.AtEnd()) return CborKind::kEnd;
  const std::uint8_t major = reader_.Rest()[0] >> 5;
  switch (major) {
    case kMajorUint: return CborKind::kUint;
    case kMajorNegative: return CborKind::kNegative;
    case kMajorBytes: return CborKind::kBytes;
    case kMajorText: return CborKind::kText;
    case kMajorArray: return CborKind::kArray;
    case kMajorMap: return CborKind::kMap;
    case 6: return CborKind::kTag;
    default: return CborKind::kSimple;
  }
}

CborReader::Head CborReader::ReadHead() noexcept {
  const std::uint8_t first = reader_.U8();
  const std::uint8_t major = first >> 5;
  const std::uint8_t info = first & 0x1F;
  if (info < 24) return {major, info};
  std::uint64_t value = 0;
  std::uint64_t smallest = 0;  // what must not have fitted a shorter head
  switch (info) {
    case 24: value = reader_.U8(); smallest = 24; break;
    case 25: value = reader_.U16Be(); smallest = 0x100; break;
    case 26: value = reader_.U32Be(); smallest = 0x10000; break;
    case 27: value = reader_.U64Be(); smallest = 0x100000000; break;
    default: reader_.Fail(); return {major, 0};  // indefinite or reserved
  }
  if (value < smallest) reader_.Fail();
  return {major, value};
}

std::uint64_t CborReader::Expect(std::uint8_t major, std::uint64_t limit) noexcept {
  const Head head = ReadHead();
  if (head.major != major || head.value > limit) reader_.Fail();
  return reader_.ok() ? head.value : 0;
}

std::uint64_t CborReader::Uint(std::uint64_t limit) noexcept { return Expect(kMajorUint, limit); }

std::int64_t CborReader::Int() noexcept {
  const Head head = ReadHead();
  if ((head.major != kMajorUint && head.major != kMajorNegative) || head.value > INT64_MAX) reader_.Fail();
  if (!reader_.ok()) return 0;
  const auto value = static_cast<std::int64_t>(head.value);
  return head.major == kMajorUint ? value : -1 - value;
}

Bytes CborReader::ByteString(std::size_t limit) noexcept { return reader_.Take(Expect(kMajorBytes, limit)); }

std::string_view CborReader::TextString(std::size_t limit) noexcept {
  const std::string_view text = AsText(reader_.Take(Expect(kMajorText, limit)));
  if (!IsUtf8(text)) {
    reader_.Fail();
    return {};
  }
  return text;
}

bool CborReader::Bool() noexcept {
  const std::uint8_t byte = reader_.U8();
  if (byte != kTrue && byte != kFalse) reader_.Fail();
  return reader_.ok() && byte == kTrue;
}

bool CborReader::TryNull() noexcept {
  if (!reader_.ok() || reader_.AtEnd() || reader_.Rest()[0] != kNull) return false;
  reader_.Skip(1);
  return true;
}

std::size_t CborReader::Array(std::size_t limit) noexcept { return Expect(kMajorArray, limit); }
std::size_t CborReader::Map(std::size_t limit) noexcept { return Expect(kMajorMap, limit); }

Digest CborReader::Digest32() noexcept {
  Digest out{};
  const Bytes bytes = ByteString(kSha256Size);
  if (bytes.size() != kSha256Size) reader_.Fail();
  else CopyBytes(bytes, out);
  return out;
}

std::uint8_t CborReader::Key(int& previous) noexcept {
  const auto key = static_cast<std::uint8_t>(Uint(255));
  if (static_cast<int>(key) <= previous) reader_.Fail();
  previous = key;
  return reader_.ok() ? key : 0;
}

void CborReader::ExpectMap(std::size_t pairs) noexcept {
  if (Map(pairs) != pairs) reader_.Fail();
}

void CborReader::ExpectKey(std::uint8_t key) noexcept {
  if (Uint(255) != key) reader_.Fail();
}

void CborWriter::Head(std::uint8_t major, std::uint64_t value) {
  const auto top = static_cast<std::uint8_t>(major << 5);
  if (value < 24) {
    out_.U8(static_cast<std::uint8_t>(top | value));
  } else if (value <= 0xFF) {
    out_.U8(top | 24);
    out_.U8(static_cast<std::uint8_t>(value));
  } else if (value <= 0xFFFF) {
    out_.U8(top | 25);
    out_.U16Be(static_cast<std::uint16_t>(value));
  } else if (value <= 0xFFFFFFFF) {
    out_.U8(top | 26);
    out_.U32Be(static_cast<std::uint32_t>(value));
  } else {
    out_.U8(top | 27);
    out_.U64Be(value);
  }
}

void CborWriter::Int(std::int64_t value) {
  if (value >= 0) Head(kMajorUint, static_cast<std::uint64_t>(value));
  else Head(kMajorNegative, static_cast<std::uint64_t>(-1 - value));
}

void CborWriter::ByteString(Bytes bytes) {
  Head(kMajorBytes, bytes.size());
  out_.Put(bytes);
}

void CborWriter::TextString(std::string_view text) {
  Head(kMajorText, text.size());
  out_.Put(AsBytes(text));
}

}  // namespace assay
