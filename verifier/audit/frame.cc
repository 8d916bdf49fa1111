// SPDX-License-Identifier: Apache-2.0
#include "verifier/audit/frame.h"

#include "verifier/audit/audit_log.h"

namespace assay::audit {
namespace {

constexpr std::string_view kMacLabel = "{\"mac\":\"";
constexpr std::string_view kLenLabel = "\",\"len\":\"";
constexpr std::string_view kEpochLabel = "\",\"epoch\":\"";
constexpr std::string_view kSeqLabel = "\",\"seq\":\"";
constexpr std::string_view kAckLabel = "\",\"ack\":\"";
constexpr std::string_view kKindLabel = "\",\"kind\":\"";
constexpr std::string_view kRecLabel = "\",\"rec\":";
constexpr std::size_t kShort = 8, kLong = 16;  // digits
static_assert(kMacLabel.size() == kMacAt);
static_assert(kMacLabel.size() + 64 + kLenLabel.size() + kShort + kEpochLabel.size() + kShort + kSeqLabel.size() +
                  kLong + kAckLabel.size() + kLong + kKindLabel.size() + 1 + kRecLabel.size() ==
              kHeadSize);

void PutText(Buffer& out, std::string_view text) { out.insert(out.end(), text.begin(), text.end()); }

void PutDecimal(Buffer& out, std::uint64_t value, std::size_t digits) {
  const std::size_t at = out.size();
  out.resize(at + digits, '0');
  for (std::size_t i = digits; i > 0 && value > 0; --i, value /= 10)
    out[at + i - 1] = static_cast<std::uint8_t>('0' + value % 10);
  if (value > 0) std::abort();  // 10^16 records or a line of 10^8 bytes: neither can be
}

std::uint64_t TakeDecimal(Reader& in, std::size_t digits) {
  std::uint64_t value = 0;
  for (const std::uint8_t c : in.Take(digits)) {
    if (c < '0' || c > '9') {
      in.Fail();
      return 0;
    }
    value = value * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return value;
}

void TakeLabel(Reader& in, std::string_view label) {
  if (!Equal(in.Take(label.size()), AsBytes(label))) in.Fail();
}

int NibbleOf(std::uint8_t c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

void TakeMac(Reader& in, Digest& mac) {
  const Bytes digits = in.Take(64);
  for (std::size_t i = 0; i < mac.size() && in.ok(); ++i) {
    const int high = NibbleOf(digits[2 * i]);
    const int low = NibbleOf(digits[2 * i + 1]);
    if (high < 0 || low < 0) in.Fail();
    else mac[i] = static_cast<std::uint8_t>(high * 16 + low);
  }
}

bool KnownKind(std::uint8_t c) noexcept { return c == 'h' || c == 'r' || c == 'c' || c == 's'; }

}  // namespace

std::size_t AppendLine(Buffer& out, const LineFields& fields, std::string_view json) {
  const std::size_t start = out.size();
  PutText(out, kMacLabel);
  out.resize(out.size() + 64, '0');
  PutText(out, kLenLabel);
  PutDecimal(out, json.size() + kFrameOverhead, kShort);
  PutText(out, kEpochLabel);
  PutDecimal(out, fields.epoch, kShort);
  PutText(out, kSeqLabel);
  PutDecimal(out, fields.sequence, kLong);
  PutText(out, kAckLabel);
  PutDecimal(out, fields.acknowledged, kLong);
  PutText(out, kKindLabel);
  out.push_back(static_cast<std::uint8_t>(fields.kind));
  PutText(out, kRecLabel);
  PutText(out, json);
  PutText(out, "}\n");
  return start;
}

void PutMac(Buffer& out, std::size_t line_offset, const Digest& mac) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::size_t at = line_offset + kMacAt;
  for (const std::uint8_t byte : mac) {
    out[at++] = static_cast<std::uint8_t>(kDigits[byte >> 4]);
    out[at++] = static_cast<std::uint8_t>(kDigits[byte & 15]);
  }
}

std::optional<Line> ParseLine(Bytes bytes, std::size_t max_record, const char*& why) {
  Line line;
  Reader in(bytes);
  TakeLabel(in, kMacLabel);
  TakeMac(in, line.mac);
  TakeLabel(in, kLenLabel);
  line.length = static_cast<std::uint32_t>(TakeDecimal(in, kShort));
  TakeLabel(in, kEpochLabel);
  line.epoch = static_cast<std::uint32_t>(TakeDecimal(in, kShort));
  TakeLabel(in, kSeqLabel);
  line.sequence = TakeDecimal(in, kLong);
  TakeLabel(in, kAckLabel);
  line.acknowledged = TakeDecimal(in, kLong);
  TakeLabel(in, kKindLabel);
  const std::uint8_t kind = in.U8();
  TakeLabel(in, kRecLabel);
  why = "its head breaks the format";
  if (!in.ok() || !KnownKind(kind)) return std::nullopt;
  why = "its length is impossible";
  if (line.length < kFrameOverhead + 2 || line.length > max_record + kFrameOverhead || line.length > bytes.size())
    return std::nullopt;
  line.kind = static_cast<Kind>(kind);
  line.covered = bytes.subspan(kCoveredAt, line.length - kCoveredAt);
  line.record = bytes.subspan(kHeadSize, line.length - kFrameOverhead);
  why = "it does not end where its length says";
  if (bytes[line.length - 2] != '}' || bytes[line.length - 1] != '\n') return std::nullopt;
  why = RefuseRecord(AsText(line.record));
  if (why != nullptr) return std::nullopt;
  return line;
}

const char* RefuseRecord(std::string_view json) noexcept {
  if (json.size() < 2 || json.front() != '{' || json.back() != '}') return "it is not a JSON object";
  for (const char c : json) {
    if (static_cast<unsigned char>(c) < 0x20) return "it holds a newline or another control character";
  }
  return nullptr;
}

}  // namespace assay::audit
