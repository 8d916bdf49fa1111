// SPDX-License-Identifier: Apache-2.0
#include "verifier/authz/constraints.h"

#include <algorithm>

namespace assay::authz {
namespace {

constexpr int kDayMinutes = 24 * 60;

// "HH:MM", 00:00 to 23:59.
std::optional<int> ParseMinutes(std::string_view text) noexcept {
  if (text.size() != 5 || text[2] != ':') return std::nullopt;
  for (const std::size_t i : {0, 1, 3, 4})
    if (text[i] < '0' || text[i] > '9') return std::nullopt;
  const int hours = (text[0] - '0') * 10 + (text[1] - '0');
  const int minutes = (text[3] - '0') * 10 + (text[4] - '0');
  if (hours > 23 || minutes > 59) return std::nullopt;
  return hours * 60 + minutes;
}

std::optional<TimeWindow> ParseTimeWindow(JsonValue value, ZoneSource& zones, bool zone_optional) {
  std::optional<std::string_view> start, end, zone;
  const bool whole = value.EachMember([&](std::string_view name, JsonValue member) {
    auto* const target = name == "start" ? &start : name == "end" ? &end : name == "zone" ? &zone : nullptr;
    if (target == nullptr) return false;
    *target = member.String();
    return target->has_value();
  });
  if (!zone && zone_optional) zone = "UTC";
  if (!whole || !start || !end || !zone) return std::nullopt;
  return TimeWindow::Make(*start, *end, zones.Find(*zone));
}

std::optional<std::vector<TextPattern>> ParsePatterns(JsonValue value) {
  std::vector<TextPattern> patterns;
  const bool whole = value.EachElement([&](JsonValue element) {
    const auto text = element.String();
    auto pattern = text ? TextPattern::Compile(*text) : std::nullopt;
    if (!pattern || patterns.size() == kArgumentPatterns) return false;
    patterns.push_back(std::move(*pattern));
    return true;
  });
  if (!whole) return std::nullopt;
  return patterns;
}

}  // namespace

std::optional<TimeWindow> TimeWindow::Make(std::string_view start, std::string_view end,
                                           std::shared_ptr<const Zone> zone) {
  const auto first = ParseMinutes(start);
  const auto last = ParseMinutes(end);
  if (!first || !last || zone == nullptr) return std::nullopt;
  return TimeWindow{*first, *last, std::move(zone)};
}

bool TimeWindow::Contains(std::int64_t now) const noexcept {
  const std::int64_t minutes = (now + zone->OffsetAt(now)) / 60 - ((now + zone->OffsetAt(now)) % 60 < 0 ? 1 : 0);
  const auto minute = static_cast<int>((minutes % kDayMinutes + kDayMinutes) % kDayMinutes);
  return start <= end ? minute >= start && minute <= end : minute >= start || minute <= end;
}

bool AllowsIp(const std::vector<IpRange>& ranges, const std::optional<IpAddress>& ip) noexcept {
  return ip && std::any_of(ranges.begin(), ranges.end(), [&](const IpRange& range) { return range.Contains(*ip); });
}

// Every value anywhere in the arguments is a string that one pattern matches; none at all proves nothing.
bool Constraints::CheckArguments(const Arguments& arguments) const {
  if (!arguments.present() || !arguments.only_texts() || arguments.texts().empty()) return false;
  return std::all_of(arguments.texts().begin(), arguments.texts().end(), [&](const std::string& value) {
    return std::any_of(argument_patterns->begin(), argument_patterns->end(),
                       [&](const TextPattern& p) { return p.Matches(value); });
  });
}

Reason Constraints::Check(const CallFacts& facts) const {
  if (time_window && !time_window->Contains(facts.now)) return Reason::kOutsideTimeWindow;
  if (ip_allowlist && !AllowsIp(*ip_allowlist, facts.ip)) return Reason::kIpNotAllowed;
  if (argument_patterns && !CheckArguments(*facts.arguments)) return Reason::kArgumentNotAllowed;
  return Reason::kNone;
}

bool Constraints::MayApply(const CallFacts& facts) const {
  if (time_window && !time_window->Contains(facts.now)) return false;
  if (ip_allowlist && facts.ip && !AllowsIp(*ip_allowlist, facts.ip)) return false;
  if (!argument_patterns || !facts.arguments->present() || !facts.arguments->only_texts()) return true;
  const auto& texts = facts.arguments->texts();
  return std::any_of(texts.begin(), texts.end(), [&](const std::string& value) {
    return std::any_of(argument_patterns->begin(), argument_patterns->end(),
                       [&](const TextPattern& p) { return p.Matches(value); });
  });
}

std::optional<std::vector<IpRange>> ParseIpAllowlist(JsonValue array) {
  std::vector<IpRange> ranges;
  const bool whole = array.EachElement([&](JsonValue element) {
    const auto text = element.String();
    const auto range = text ? IpRange::Parse(*text) : std::nullopt;
    if (!range || ranges.size() == kIpRanges) return false;
    ranges.push_back(*range);
    return true;
  });
  if (!whole) return std::nullopt;
  return ranges;
}

std::optional<Constraints> ParseConstraints(JsonValue object, ZoneSource& zones, const ConstraintNames& names) {
  Constraints out;
  const bool whole = object.EachMember([&](std::string_view name, JsonValue value) {
    if (name == names.time_window) {
      out.time_window = ParseTimeWindow(value, zones, names.zone_optional);
      return out.time_window.has_value();
    }
    if (name == names.ip_allowlist) {
      out.ip_allowlist = ParseIpAllowlist(value);
      return out.ip_allowlist.has_value();
    }
    if (name == names.argument_patterns) {
      out.argument_patterns = ParsePatterns(value);
      return out.argument_patterns.has_value();
    }
    if (name == names.approval_required) {
      out.approval_required = value.Bool().value_or(false);
      return value.Bool().has_value();
    }
    if (name != names.calls_per_hour) return false;
    const auto calls = value.Int();
    if (!calls || *calls < 0 || *calls > kMaxCallsPerHour) return false;
    out.calls_per_hour = static_cast<std::uint32_t>(*calls);
    return true;
  });
  if (!whole) return std::nullopt;
  return out;
}

}  // namespace assay::authz
