// SPDX-License-Identifier: Apache-2.0
#include "verifier/authz/zone.h"

#include <algorithm>
#include <bit>
#include <fstream>
#include <iterator>

namespace assay::authz {
namespace {

constexpr std::int64_t kDay = 86'400;

bool IsLeap(std::int64_t year) noexcept { return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0; }

// Days from 1970-01-01 to the first of a month of the proleptic Gregorian calendar.
std::int64_t DaysTo(std::int64_t year, int month) noexcept {
  static constexpr int kBefore[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
  const std::int64_t y = year - 1;
  const std::int64_t days = 365 * (year - 1970) + (y / 4 - 1969 / 4) - (y / 100 - 1969 / 100) + (y / 400 - 1969 / 400);
  return days + kBefore[month - 1] + (month > 2 && IsLeap(year) ? 1 : 0);
}

std::int64_t FloorDiv(std::int64_t a, std::int64_t b) noexcept { return a / b - (a % b < 0 ? 1 : 0); }

std::int64_t YearOf(std::int64_t time) noexcept {
  std::int64_t year = 1970 + FloorDiv(time, 31'556'952);  // the mean year: off by one at most
  const std::int64_t day = FloorDiv(time, kDay);
  while (DaysTo(year, 1) > day) --year;
  while (DaysTo(year + 1, 1) <= day) ++year;
  return year;
}

bool IsName(std::string_view name) noexcept {
  if (name.empty() || name.size() > kZoneName || name.front() == '/' || name.find("..") != std::string_view::npos)
    return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '+' || c == '/';
  });
}

}  // namespace

// The footer of a TZif file: a POSIX TZ string with RFC 8536's longer range of hours.
class RuleParser {
 public:
  explicit RuleParser(std::string_view text) : text_(text) {}
  std::optional<Zone::Rule> Parse() {
    Zone::Rule rule;
    if (!Name() || !Time(rule.standard)) return std::nullopt;
    rule.standard = -rule.standard;
    if (Done()) return rule;
    rule.has_summer = true;
    if (!Name()) return std::nullopt;
    rule.summer = rule.standard + 3600;
    if (!Done() && Peek() != ',') {
      if (!Time(rule.summer)) return std::nullopt;
      rule.summer = -rule.summer;
    }
    if (!Take(',') || !One(rule.to_summer) || !Take(',') || !One(rule.to_standard) || !Done()) return std::nullopt;
    return rule;
  }

 private:
  bool Done() const { return at_ == text_.size(); }
  char Peek() const { return Done() ? '\0' : text_[at_]; }
  bool Take(char c) {
    if (Peek() != c) return false;
    ++at_;
    return true;
  }
  bool Number(int& out, int low, int high) {
    const std::size_t start = at_;
    out = 0;
    while (Peek() >= '0' && Peek() <= '9' && at_ - start < 4) out = out * 10 + (text_[at_++] - '0');
    return at_ > start && out >= low && out <= high;
  }
  bool Name() {
    if (Take('<')) {
      const std::size_t end = text_.find('>', at_);
      if (end == std::string_view::npos) return false;
      at_ = end + 1;
      return true;
    }
    const std::size_t start = at_;
    while ((Peek() >= 'a' && Peek() <= 'z') || (Peek() >= 'A' && Peek() <= 'Z')) ++at_;
    return at_ - start >= 3;
  }
  bool Time(std::int32_t& out) {
    const bool minus = Take('-');
    if (!minus) (void)Take('+');
    int hours = 0, minutes = 0, seconds = 0;
    if (!Number(hours, 0, 167)) return false;
    if (Take(':') && (!Number(minutes, 0, 59) || (Take(':') && !Number(seconds, 0, 59)))) return false;
    out = (hours * 60 + minutes) * 60 + seconds;
    if (minus) out = -out;
    return true;
  }
  bool One(Zone::Switch& out) {
    if (Take('M')) {
      if (!Number(out.month, 1, 12) || !Take('.') || !Number(out.week, 1, 5) || !Take('.') || !Number(out.day, 0, 6))
        return false;
    } else {
      out.form = Take('J') ? 'J' : 'n';
      if (!Number(out.day, out.form == 'J' ? 1 : 0, 365)) return false;
    }
    return !Take('/') || Time(out.time);
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

// RFC 8536 section 3.2: sizes, transition times, types, type records, names, leap seconds, indicators.
bool Zone::ReadBody(Reader& reader, std::size_t time_size) {
  const std::uint32_t ut_count = reader.U32Be(), std_count = reader.U32Be(), leaps = reader.U32Be();
  const std::uint32_t times = reader.U32Be(), types = reader.U32Be(), chars = reader.U32Be();
  if (!reader.ok() || times > 4096 || types == 0 || types > 256 || chars > 1024 || leaps > 256) return false;
  std::vector<std::int64_t> at(times);
  for (auto& one : at) {
    one = time_size == 8 ? std::bit_cast<std::int64_t>(reader.U64Be()) : std::bit_cast<std::int32_t>(reader.U32Be());
  }
  const Bytes indexes = reader.Take(times);
  std::vector<std::int32_t> offsets(types);
  for (auto& offset : offsets) {
    offset = std::bit_cast<std::int32_t>(reader.U32Be());
    reader.Skip(2);
  }
  reader.Skip(std::size_t{chars} + leaps * (time_size + 4) + std_count + ut_count);
  if (!reader.ok() || !std::is_sorted(at.begin(), at.end())) return false;
  first_ = offsets[0];
  changes_.clear();
  for (std::size_t i = 0; i < times; ++i) {
    if (indexes[i] >= types) return false;
    changes_.push_back({at[i], offsets[indexes[i]]});
  }
  return true;
}

std::optional<Zone> Zone::Parse(Bytes tzif) {
  Reader reader(tzif);
  Zone zone;
  const auto header = [&reader]() -> int {
    const Bytes magic = reader.Take(4);
    const int version = reader.U8();
    reader.Skip(15);
    return reader.ok() && AsText(magic) == "TZif" ? version : -1;
  };
  const int version = header();
  if (version < 0 || !zone.ReadBody(reader, 4)) return std::nullopt;
  if (version < '2') return zone;
  if (header() < 0 || !zone.ReadBody(reader, 8)) return std::nullopt;
  std::string_view footer = AsText(reader.Rest());
  if (footer.size() < 2 || footer.front() != '\n' || footer.back() != '\n') return std::nullopt;
  footer = footer.substr(1, footer.size() - 2);
  if (footer.empty()) return zone;
  zone.rule_ = RuleParser(footer).Parse();
  if (!zone.rule_) return std::nullopt;
  return zone;
}

std::int32_t Zone::OffsetAt(std::int64_t now) const noexcept {
  const auto after =
      std::upper_bound(changes_.begin(), changes_.end(), now, [](std::int64_t t, const Change& c) { return t < c.at; });
  if (after == changes_.end() && rule_) return RuleOffset(now);
  return after == changes_.begin() ? first_ : std::prev(after)->offset;
}

std::int32_t Zone::RuleOffset(std::int64_t now) const noexcept {
  const Rule& rule = *rule_;
  if (!rule.has_summer) return rule.standard;
  const std::int64_t year = YearOf(now + rule.standard);
  const auto local = [year](const Switch& when) {
    std::int64_t day = 0;
    if (when.form == 'M') {
      const std::int64_t first = DaysTo(year, when.month);
      const std::int64_t weekday = ((first + 4) % 7 + 7) % 7;  // 1970-01-01 was a Thursday
      day = first + (when.day - weekday + 7) % 7 + (when.week - 1) * 7;
      const std::int64_t end = when.month == 12 ? DaysTo(year + 1, 1) : DaysTo(year, when.month + 1);
      while (day >= end) day -= 7;
    } else {
      day = DaysTo(year, 1) + when.day - (when.form == 'J' ? 1 : 0);
      if (when.form == 'J' && IsLeap(year) && when.day >= 60) ++day;
    }
    return day * kDay + when.time;
  };
  const std::int64_t summer = local(rule.to_summer) - rule.standard;
  const std::int64_t standard = local(rule.to_standard) - rule.summer;
  const bool in_summer = summer < standard ? now >= summer && now < standard : now >= summer || now < standard;
  return in_summer ? rule.summer : rule.standard;
}

std::shared_ptr<const Zone> SystemZones::Find(std::string_view name) {
  if (!IsName(name)) return nullptr;
  const std::lock_guard lock(mutex_);
  if (const auto known = zones_.find(name); known != zones_.end()) return known->second;
  std::optional<Zone> zone;
  if (name == "UTC") {
    zone = Zone::Utc();
  } else {
    std::ifstream file(directory_ + "/" + std::string(name), std::ios::binary);
    std::string data(kZoneFile + 1, '\0');
    if (file) file.read(data.data(), static_cast<std::streamsize>(data.size()));
    const auto size = static_cast<std::size_t>(file.gcount());
    if (size == 0 || size > kZoneFile) return nullptr;
    zone = Zone::Parse(AsBytes(data).first(size));
  }
  if (!zone || zones_.size() >= kZones) return nullptr;
  return zones_.emplace(name, std::make_shared<const Zone>(std::move(*zone))).first->second;
}

}  // namespace assay::authz
