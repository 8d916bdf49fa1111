// SPDX-License-Identifier: Apache-2.0
// Fixed-memory rate limits for the beginning of enrollments.
#include "verifier/enrollment/begin_limits.h"

#include <arpa/inet.h>

#include <algorithm>
#include <limits>
#include <string>

namespace assay::enrollment {
namespace {

constexpr std::int64_t kWindowMs = 60'000;
constexpr std::uint8_t kTagIpv4 = 4, kTagIpv6 = 6, kTagText = 0;

Buffer Tagged(std::uint8_t tag, Bytes content) {
  Buffer out{tag};
  out.insert(out.end(), content.begin(), content.end());
  return out;
}

}  // namespace

Buffer SourceKey(std::string_view source) {
  const std::string text(source);
  std::array<std::uint8_t, 16> address{};
  if (inet_pton(AF_INET, text.c_str(), address.data()) == 1) return Tagged(kTagIpv4, Bytes(address).first(4));
  if (inet_pton(AF_INET6, text.c_str(), address.data()) != 1) return Tagged(kTagText, AsBytes(source));
  // RFC 4291 section 2.5.5.2: ::ffff:a.b.c.d
  static constexpr std::array<std::uint8_t, 12> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
  if (Equal(Bytes(address).first(12), kMapped)) return Tagged(kTagIpv4, Bytes(address).subspan(12));
  return Tagged(kTagIpv6, Bytes(address).first(8));
}

BeginLimits::BeginLimits(BeginLimitRules rules, Clock clock_ms)
    : rules_(rules), clock_(std::move(clock_ms)), key_(RandomArray<32>()), window_start_(clock_()) {}

void BeginLimits::SetRules(BeginLimitRules rules) {
  const std::lock_guard lock(mutex_);
  rules_ = rules;
}

void BeginLimits::Advance(std::int64_t now) {
  const std::int64_t passed = now - window_start_;
  if (passed >= kWindowMs) {
    const bool adjacent = passed < 2 * kWindowMs;
    for (Sketch* sketch : {&sources_, &eks_}) {
      std::swap(sketch->current, sketch->previous);
      *sketch->current = Window{};
      if (!adjacent) *sketch->previous = Window{};
    }
    totals_ = {0, adjacent ? totals_.current : 0};
    window_start_ += passed / kWindowMs * kWindowMs;
  }
  const std::int64_t into = std::clamp<std::int64_t>(now - window_start_, 0, kWindowMs);
  overlap_ = 1.0 - static_cast<double>(into) / static_cast<double>(kWindowMs);
}

BeginLimits::Slots BeginLimits::SlotsOf(Bytes key) const {
  const Digest mac = key_.Mac({key});
  Reader reader(mac);
  Slots slots{};
  for (std::size_t& slot : slots) slot = reader.U64Le() % kColumns;
  return slots;
}

double BeginLimits::Estimate(const Sketch& sketch, const Slots& slots) const {
  double least = std::numeric_limits<double>::max();
  for (std::size_t row = 0; row < kRows; ++row) {
    const double count = sketch.current->counts[row][slots[row]] + overlap_ * sketch.previous->counts[row][slots[row]];
    least = std::min(least, count);
  }
  return least;
}

void BeginLimits::Count(Sketch& sketch, const Slots& slots) {
  for (std::size_t row = 0; row < kRows; ++row) {
    std::uint16_t& count = sketch.current->counts[row][slots[row]];
    if (count < std::numeric_limits<std::uint16_t>::max()) ++count;
  }
}

Admission BeginLimits::AdmitSource(std::string_view source) {
  const Buffer key = SourceKey(source);
  const Slots slots = SlotsOf(key);
  const std::lock_guard lock(mutex_);
  Advance(clock_());
  if (Estimate(sources_, slots) + 1 > rules_.per_source) return Admission::kSourceLimit;
  const double total = static_cast<double>(totals_.current) + overlap_ * static_cast<double>(totals_.previous);
  if (total + 1 > rules_.global) return Admission::kGlobalLimit;
  Count(sources_, slots);
  ++totals_.current;
  return Admission::kAdmitted;
}

Admission BeginLimits::AdmitEk(const Digest& ek_spki) {
  const Slots slots = SlotsOf(ek_spki);
  const std::lock_guard lock(mutex_);
  Advance(clock_());
  if (Estimate(eks_, slots) + 1 > rules_.per_ek) return Admission::kEkLimit;
  Count(eks_, slots);
  return Admission::kAdmitted;
}

std::string_view AdmissionCode(Admission admission) noexcept {
  switch (admission) {
    case Admission::kAdmitted: return "admitted";
    case Admission::kSourceLimit: return "begin_limit_source";
    case Admission::kEkLimit: return "begin_limit_ek";
    case Admission::kGlobalLimit: return "begin_limit_global";
  }
  return "begin_limit_global";
}

}  // namespace assay::enrollment
