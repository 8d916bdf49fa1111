// SPDX-License-Identifier: Apache-2.0
#include "verifier/ctl/table.h"

#include <algorithm>
#include <array>
#include <ctime>

#include "sdk/core/cbor.h"

namespace assay::ctl {
namespace {

// Length of the UTF-8 sequence that begins with `lead`, 0 when none does.
std::size_t SequenceLength(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead < 0xE0) return 2;
  if (lead >= 0xE0 && lead < 0xF0) return 3;
  return lead >= 0xF0 && lead < 0xF5 ? 4 : 0;
}

bool Unsafe(std::string_view character) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(character[i]); };
  if (character.size() == 1) return at(0) < 0x20 || at(0) == 0x7F;
  if (character.size() == 2) return at(0) == 0xC2 && at(1) < 0xA0;  // U+0080 to U+009F
  if (character.size() != 3 || at(0) != 0xE2) return false;
  const unsigned last = at(2);
  return (at(1) == 0x80 &&
          ((last >= 0x8B && last <= 0x8F) || (last >= 0xA8 && last <= 0xAE))) ||  // U+200B-200F, 2028-202E
         (at(1) == 0x81 && last >= 0xA0 && last <= 0xAF);                         // U+2060-206F
}

std::size_t Width(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](unsigned char c) { return (c & 0xC0) != 0x80; }));
}

}  // namespace

std::string Clean(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = SequenceLength(static_cast<unsigned char>(text.front()));
    const std::string_view character = text.substr(0, std::max<std::size_t>(length, 1));
    const bool whole = length != 0 && character.size() == length && IsUtf8(character);
    if (whole && !Unsafe(character)) out += character;
    else out += '?';
    text.remove_prefix(whole ? length : 1);
  }
  return out;
}

std::string TimeText(std::int64_t seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  std::array<char, 32> text{};
  if (gmtime_r(&time, &parts) == nullptr || std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &parts) == 0)
    return std::to_string(seconds);
  return text.data();
}

std::string Table(const std::vector<std::string>& head, const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::vector<std::string>> all = {head};
  for (const auto& row : rows) all.push_back(row);
  std::vector<std::size_t> widths(head.size(), 0);
  for (auto& row : all) {
    for (std::size_t i = 0; i < row.size() && i < widths.size(); ++i) {
      row[i] = Clean(row[i]);
      widths[i] = std::max(widths[i], Width(row[i]));
    }
  }
  std::string out;
  for (const auto& row : all) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      out += row[i];
      if (i + 1 < row.size()) out.append(widths[i] - Width(row[i]) + 2, ' ');
    }
    out += '\n';
  }
  return out;
}

}  // namespace assay::ctl
