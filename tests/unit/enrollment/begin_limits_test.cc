// SPDX-License-Identifier: Apache-2.0
#include "verifier/enrollment/begin_limits.h"

#include <doctest/doctest.h>

#include <string>

namespace assay::enrollment {
namespace {

struct Fixture {
  std::int64_t now = 1'000'000;
  BeginLimits limits;
  explicit Fixture(BeginLimitRules rules = {}) : limits(rules, [this] { return now; }) {}
  int Admitted(std::string_view source, int attempts) {
    int admitted = 0;
    for (int i = 0; i < attempts; ++i) admitted += limits.AdmitSource(source) == Admission::kAdmitted ? 1 : 0;
    return admitted;
  }
};

TEST_CASE("ten enrollments a minute begin from one address, and the minute slides") {
  Fixture f;
  CHECK(f.Admitted("192.0.2.1", 25) == 10);
  CHECK(f.limits.AdmitSource("192.0.2.1") == Admission::kSourceLimit);
  CHECK(f.Admitted("192.0.2.2", 1) == 1);
  f.now += 59'999;
  CHECK(f.Admitted("192.0.2.1", 1) == 0);
  f.now += 30'000;  // half of the previous window still counts
  CHECK(f.Admitted("192.0.2.1", 10) == 4);
  f.now += 120'000;
  CHECK(f.Admitted("192.0.2.1", 25) == 10);
}

TEST_CASE("IPv6 counts by /64, a mapped IPv4 address as IPv4, and refused attempts are not counted") {
  Fixture f;
  CHECK(f.Admitted("2001:db8:1:2::1", 10) == 10);
  CHECK(f.limits.AdmitSource("2001:db8:1:2:ffff::9") == Admission::kSourceLimit);
  CHECK(f.limits.AdmitSource("2001:db8:1:3::1") == Admission::kAdmitted);
  CHECK(f.Admitted("198.51.100.7", 10) == 10);
  CHECK(f.limits.AdmitSource("::ffff:198.51.100.7") == Admission::kSourceLimit);
  CHECK(SourceKey("2001:db8::1").size() == 9);
  CHECK(SourceKey("198.51.100.7") == SourceKey("::ffff:198.51.100.7"));
  CHECK(SourceKey("unix") != SourceKey("unix2"));
}

TEST_CASE("the global limit holds over any number of sources, and a flood frees no source's count") {
  Fixture f;
  CHECK(f.Admitted("192.0.2.1", 10) == 10);
  std::uint32_t admitted = 10;
  for (int i = 0; i < 100'000; ++i) {
    const std::string source =
        "10." + std::to_string(i >> 16) + "." + std::to_string((i >> 8) & 255) + "." + std::to_string(i & 255);
    if (f.limits.AdmitSource(source) == Admission::kAdmitted) ++admitted;
  }
  CHECK(admitted == 600);
  CHECK(f.limits.AdmitSource("192.0.2.1") == Admission::kSourceLimit);
  CHECK(f.limits.AdmitSource("203.0.113.5") == Admission::kGlobalLimit);
  f.now += 120'000;
  CHECK(f.limits.AdmitSource("203.0.113.5") == Admission::kAdmitted);
}

TEST_CASE("an EK has a limit of its own, above that of a single source") {
  Fixture f;
  const Digest ek = Sha256(AsBytes("ek"));
  int admitted = 0;
  for (int i = 0; i < 50; ++i) admitted += f.limits.AdmitEk(ek) == Admission::kAdmitted ? 1 : 0;
  CHECK(admitted == 20);
  CHECK(f.limits.AdmitEk(ek) == Admission::kEkLimit);
  CHECK(f.limits.AdmitEk(Sha256(AsBytes("other"))) == Admission::kAdmitted);
}

TEST_CASE("a clock that steps back refuses nobody for longer than a window") {
  Fixture f;
  CHECK(f.Admitted("192.0.2.1", 10) == 10);
  f.now -= 500'000;
  CHECK(f.Admitted("192.0.2.1", 1) == 0);
  f.now += 500'000 + 120'000;
  CHECK(f.Admitted("192.0.2.1", 1) == 1);
}

TEST_CASE("new rules count from what was counted before") {
  Fixture f;
  CHECK(f.Admitted("192.0.2.1", 10) == 10);
  f.limits.SetRules({12, 20, 600});
  CHECK(f.Admitted("192.0.2.1", 10) == 2);
}

}  // namespace
}  // namespace assay::enrollment
