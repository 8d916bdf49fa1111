// SPDX-License-Identifier: Apache-2.0
#include "verifier/audit/chain.h"

#include <cstdio>

namespace assay::audit {
namespace {

std::string Padded(std::uint64_t value, std::size_t digits) {
  std::string text = std::to_string(value);
  return text.size() < digits ? std::string(digits - text.size(), '0') + text : text;
}

std::optional<std::uint64_t> Decimal(std::string_view text) {
  std::uint64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return value;
}

}  // namespace

Digest ComputeMac(const MacInput& input) noexcept {
  std::array<std::uint8_t, 8> segment{};
  for (std::size_t i = 0; i < segment.size(); ++i)
    segment[i] = static_cast<std::uint8_t>(input.segment >> (56 - 8 * i));
  return input.keys.mac_key().Mac(
      {AsBytes("assay/audit/1"), input.keys.log_id(), input.keys.key_id(), segment, input.previous, input.covered});
}

void AppendChained(Buffer& out, const AuditKeys& keys, ChainState& state, const NewLine& line, std::string_view json) {
  const std::size_t at = AppendLine(out, {state.epoch, state.next, line.acknowledged, line.kind}, json);
  state.previous = ComputeMac({keys, line.segment, state.previous, Bytes(out).subspan(at + kCoveredAt)});
  PutMac(out, at, state.previous);
  ++state.next;
}

std::string EncodeHeader(const SegmentHeader& header) {
  return "{\"audit\":\"segment\",\"format\":1,\"log\":\"" + ToHex(header.log_id) + "\",\"key\":\"" +
         ToHex(header.key_id) + "\",\"segment\":\"" + Padded(header.segment, 8) + "\",\"bytes\":\"" +
         Padded(header.bytes, 12) + "\",\"previous\":\"" + ToHex(header.previous) + "\"}";
}

std::optional<SegmentHeader> ParseHeader(Bytes record) {
  static const std::string kModel = EncodeHeader(SegmentHeader{});
  const std::string_view text = AsText(record);
  if (text.size() != kModel.size()) return std::nullopt;
  const std::size_t log_at = kModel.find("\"log\":\"") + 7, key_at = kModel.find("\"key\":\"") + 7,
                    segment_at = kModel.find("\"segment\":\"") + 11, bytes_at = kModel.find("\"bytes\":\"") + 9,
                    previous_at = kModel.find("\"previous\":\"") + 12;
  SegmentHeader header;
  const auto log = FromHex(text.substr(log_at, 32));
  const auto key = FromHex(text.substr(key_at, 32));
  const auto previous = FromHex(text.substr(previous_at, 64));
  const auto segment = Decimal(text.substr(segment_at, 8));
  const auto bytes = Decimal(text.substr(bytes_at, 12));
  if (!log.ok() || !key.ok() || !previous.ok() || !segment || !bytes) return std::nullopt;
  CopyBytes(*log, header.log_id);
  CopyBytes(*key, header.key_id);
  CopyBytes(*previous, header.previous);
  header.segment = *segment;
  header.bytes = *bytes;
  if (EncodeHeader(header) != text) return std::nullopt;
  return header;
}

std::string EncodeSeal(const SealContent& seal) {
  return "{\"audit\":\"sealed\",\"segment\":" + std::to_string(seal.segment) +
         ",\"lines\":" + std::to_string(seal.lines) + ",\"first\":" + std::to_string(seal.first) +
         ",\"last\":" + std::to_string(seal.last) + "}";
}

std::string SegmentName(std::uint64_t segment) { return "segment-" + Padded(segment, 8) + ".log"; }

std::optional<std::uint64_t> SegmentNumber(const std::string& name) {
  if (name.size() != SegmentName(0).size() || !name.starts_with("segment-")) return std::nullopt;
  const auto number = Decimal(std::string_view(name).substr(8, 8));
  if (!number || *number == 0 || SegmentName(*number) != name) return std::nullopt;
  return number;
}

}  // namespace assay::audit
