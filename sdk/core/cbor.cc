// SPDX-License-Identifier: Apache-2.0
#include "sdk/core/cbor.h"

#include <bit>

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

// Nearly all text is ASCII: eight bytes are looked at together. At most seven ASCII bytes may follow what it counts.
std::size_t AsciiPrefix(Bytes bytes) noexcept {
  constexpr std::uint64_t kHighBits = 0x8080808080808080;
  std::size_t at = 0;
  for (; bytes.size() - at >= sizeof(std::uint64_t); at += sizeof(std::uint64_t)) {
    std::array<std::uint8_t, sizeof(std::uint64_t)> word;
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), word.size(), word.begin());
    if ((std::bit_cast<std::uint64_t>(word) & kHighBits) != 0) break;
  }
  return at;
}

bool HoldsUtf8(Bytes b) noexcept {
  std::size_t i = AsciiPrefix(b);
  while (i < b.size()) {
    const std::uint8_t lead = b[i];
    if (lead < 0x80) {
      ++i;
      continue;
    }
    std::size_t more = 0;
    std::uint32_t point = 0;
    std::uint32_t smallest = 0;
    if (lead >= 0xC2 && lead <= 0xDF) {
      more = 1;
      point = lead & 0x1FU;
      smallest = 0x80;
    } else if (lead >= 0xE0 && lead <= 0xEF) {
      more = 2;
      point = lead & 0x0FU;
      smallest = 0x800;
    } else if (lead >= 0xF0 && lead <= 0xF4) {
      more = 3;
      point = lead & 0x07U;
      smallest = 0x10000;
    } else return false;
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

}  // namespace

bool IsUtf8(std::string_view text) noexcept { return HoldsUtf8(AsBytes(text)); }

CborKind CborReader::Peek() const noexcept {
  if (!ok() || AtEnd()) return CborKind::kEnd;
  const std::uint8_t major = input_[position_] >> 5;
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
  const Bytes one = Take(1);
  const std::uint8_t first = one.empty() ? std::uint8_t{0xFF} : one[0];
  const std::uint8_t major = first >> 5;
  const std::uint8_t info = first & 0x1F;
  if (info < 24) return {major, info};
  if (info > 27) {  // indefinite, reserved, or nothing left
    Fail();
    return {major, 0};
  }
  const Bytes number = Take(std::size_t{1} << (info - 24));
  std::uint64_t value = 0;
  for (const std::uint8_t byte : number) value = value << 8 | byte;
  // The least that does not fit the next shorter head.
  const std::uint64_t smallest = info == 24 ? 24 : std::uint64_t{1} << (4U << (info - 24));
  if (value < smallest) Fail();
  return {major, value};
}

std::uint64_t CborReader::ExpectLong(std::uint8_t major, std::uint64_t limit) noexcept {
  const Head head = ReadHead();
  if (head.major != major || head.value > limit) Fail();
  return ok() ? head.value : 0;
}

std::int64_t CborReader::Int() noexcept {
  const Head head = ReadHead();
  if ((head.major != kMajorUint && head.major != kMajorNegative) || head.value > INT64_MAX) Fail();
  if (!ok()) return 0;
  const auto value = static_cast<std::int64_t>(head.value);
  return head.major == kMajorUint ? value : -1 - value;
}

std::string_view CborReader::TextString(std::size_t limit) noexcept {
  const Bytes text = Take(Expect(kMajorText, limit));
  if (HoldsUtf8(text)) return AsText(text);
  Fail();
  return {};
}

bool CborReader::Bool() noexcept {
  const Bytes one = Take(1);
  const std::uint8_t byte = one.empty() ? std::uint8_t{0} : one[0];
  if (byte != kTrue && byte != kFalse) Fail();
  return ok() && byte == kTrue;
}

bool CborReader::TryNull() noexcept {
  if (!ok() || AtEnd() || input_[position_] != kNull) return false;
  ++position_;
  return true;
}

std::uint8_t CborReader::Key(int& previous) noexcept {
  const auto key = static_cast<std::uint8_t>(Uint(255));
  if (static_cast<int>(key) <= previous) Fail();
  previous = key;
  return ok() ? key : 0;
}

Status CborReader::Finish(std::string_view what) const {
  Reader rest(input_);
  rest.Skip(position_);
  if (failed_) rest.Fail();
  return rest.Finish(what);
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
