// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "tests/support/trail.h"

namespace assay::audit {
namespace {

TEST_CASE("keys are made once, private, and load as they were made") {
  const test::TempDir dir;
  const auto made = AuditKeys::Create(dir / "audit.key");
  REQUIRE(made.ok());
  struct stat info {};
  REQUIRE(::stat((dir / "audit.key").c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
  const auto loaded = AuditKeys::Load(dir / "audit.key");
  REQUIRE(loaded.ok());
  CHECK(loaded->log_id() == made->log_id());
  CHECK(loaded->key_id() == made->key_id());
  CHECK(loaded->mac_key().Mac({AsBytes("x")}) == made->mac_key().Mac({AsBytes("x")}));
  const Buffer before = test::ReadBytes(dir / "audit.key");
  CHECK(AuditKeys::Create(dir / "audit.key").error().code == Code::kConflict);
  CHECK(test::ReadBytes(dir / "audit.key") == before);
  CHECK(std::distance(std::filesystem::directory_iterator(dir.path()), {}) == 1);
}

TEST_CASE("two trails share neither log id nor MACs, even with one key") {
  const AuditKeys a(LogId{1}, Buffer(32, 7)), b(LogId{2}, Buffer(32, 7));
  CHECK(a.key_id() != b.key_id());
  CHECK(a.mac_key().Mac({AsBytes("x")}) != b.mac_key().Mac({AsBytes("x")}));
}

TEST_CASE("a key file that is open to others, cut, longer, or of another format is refused") {
  const test::TempDir dir;
  const std::string path = dir / "audit.key";
  REQUIRE(AuditKeys::Create(path).ok());
  const Buffer good = test::ReadBytes(path);
  REQUIRE(::chmod(path.c_str(), 0644) == 0);
  CHECK(AuditKeys::Load(path).error().code == Code::kDenied);
  for (std::size_t size = 0; size < good.size(); ++size) {
    test::WriteBytes(path, Bytes(good).first(size));
    REQUIRE_FALSE(AuditKeys::Load(path).ok());
  }
  Buffer longer = good;
  longer.push_back('\n');
  test::WriteBytes(path, longer);
  CHECK_FALSE(AuditKeys::Load(path).ok());
  Buffer odd = good;
  odd[0] = 'A';
  test::WriteBytes(path, odd);
  CHECK(AuditKeys::Load(path).error().code == Code::kMalformed);
  odd = good;
  odd[30] = 'g';
  test::WriteBytes(path, odd);
  CHECK_FALSE(AuditKeys::Load(path).ok());
  CHECK(AuditKeys::Load(dir / "none").error().code == Code::kNotFound);
}

}  // namespace
}  // namespace assay::audit
