// SPDX-License-Identifier: Apache-2.0
// Time zones by name, from TZif data (RFC 8536): the transitions of the file and, after the last of them, its
// footer's rule. Immutable once parsed. A zone that cannot be read is refused when a rule is written.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sdk/core/bytes.h"

namespace assay::authz {

inline constexpr std::size_t kZoneName = 64;
inline constexpr std::size_t kZoneFile = 64 * 1024;
inline constexpr std::size_t kZones = 1024;

class Zone {
 public:
  static std::optional<Zone> Parse(Bytes tzif);
  static Zone Utc() { return Zone(); }
  std::int32_t OffsetAt(std::int64_t now) const noexcept;  // seconds east of UTC

 private:
  struct Change {
    std::int64_t at;
    std::int32_t offset;
  };
  // One switch of a yearly rule: "Mm.w.d/time", "Jn/time" or "n/time" of POSIX TZ.
  struct Switch {
    char form = 'M';
    int month = 0, week = 0, day = 0;
    std::int32_t time = 7200;
  };
  struct Rule {
    std::int32_t standard = 0, summer = 0;
    bool has_summer = false;
    Switch to_summer, to_standard;
  };
  friend class RuleParser;

  bool ReadBody(Reader& reader, std::size_t time_size);
  std::int32_t RuleOffset(std::int64_t now) const noexcept;

  std::int32_t first_ = 0;  // before the first change
  std::vector<Change> changes_;
  std::optional<Rule> rule_;
};

class ZoneSource {
 public:
  virtual ~ZoneSource() = default;
  // Null when there is no such zone. Shared by the source's cache and by the rules that name it.
  virtual std::shared_ptr<const Zone> Find(std::string_view name) = 0;
};

// The system's zone files, each read once. Any thread. "UTC" needs no file.
class SystemZones final : public ZoneSource {
 public:
  explicit SystemZones(std::string directory = "/usr/share/zoneinfo") : directory_(std::move(directory)) {}
  std::shared_ptr<const Zone> Find(std::string_view name) override;

 private:
  std::string directory_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const Zone>, std::less<>> zones_;
};

}  // namespace assay::authz
