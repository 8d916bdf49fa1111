// SPDX-License-Identifier: Apache-2.0
// How often an enrollment may begin: per source (IPv4 address, IPv6 /64), per EK, and in all. Memory is fixed: counts
// live in count-min sketches under a secret hash, which may count a stranger's attempts in, never leave one's own out,
// so a flood can't push its own count away. A sliding minute is kept as two windows.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "sdk/core/bytes.h"
#include "sdk/core/crypto.h"

namespace assay::enrollment {

struct BeginLimitRules {
  std::uint32_t per_source = 10;  // a minute
  std::uint32_t per_ek = 20;      // a minute: more than a source's, so one source can't lock another's EK out
  std::uint32_t global = 600;     // a minute
};

enum class Admission : std::uint8_t { kAdmitted, kSourceLimit, kEkLimit, kGlobalLimit };
std::string_view AdmissionCode(Admission admission) noexcept;  // "begin_limit_source", ...

// The part of an address that counts as one source: the address for IPv4 (also when mapped into IPv6), the first 64
// bits for IPv6, the text itself for anything else.
Buffer SourceKey(std::string_view source);

// Any thread. `clock_ms` is monotonic milliseconds.
class BeginLimits {
 public:
  using Clock = std::function<std::int64_t()>;
  BeginLimits(BeginLimitRules rules, Clock clock_ms);

  // Before anything of the request is parsed. A refused attempt is not counted.
  Admission AdmitSource(std::string_view source);
  // After the EK is known and before credentials are made.
  Admission AdmitEk(const Digest& ek_spki);
  void SetRules(BeginLimitRules rules);  // a policy was reloaded: counts stay

 private:
  static constexpr std::size_t kRows = 4, kColumns = 4096;
  struct Window {
    std::array<std::array<std::uint16_t, kColumns>, kRows> counts{};
  };
  using Slots = std::array<std::size_t, kRows>;
  // Two windows of one minute each: the estimate weighs the previous one by what still overlaps.
  struct Sketch {
    std::unique_ptr<Window> current = std::make_unique<Window>();
    std::unique_ptr<Window> previous = std::make_unique<Window>();
  };
  struct Totals {
    std::uint64_t current = 0, previous = 0;
  };

  void Advance(std::int64_t now);
  Slots SlotsOf(Bytes key) const;
  double Estimate(const Sketch& sketch, const Slots& slots) const;
  static void Count(Sketch& sketch, const Slots& slots);

  std::mutex mutex_;
  BeginLimitRules rules_;
  Clock clock_;
  HmacKey key_;
  std::int64_t window_start_ = 0;
  double overlap_ = 0;  // how much of the previous window still counts
  Sketch sources_, eks_;
  Totals totals_;
};

}  // namespace assay::enrollment
