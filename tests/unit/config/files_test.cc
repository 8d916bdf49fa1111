// SPDX-License-Identifier: Apache-2.0
#include "sdk/config/files.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

namespace assay::config {
namespace {

struct TempDir {
  std::string path = "/tmp/assay-files-XXXXXX";
  TempDir() { REQUIRE(::mkdtemp(path.data()) != nullptr); }
  ~TempDir() { std::filesystem::remove_all(path); }
  std::string operator/(const char* name) const { return path + "/" + name; }
};

TEST_CASE("files are written whole with their mode, replaced whole, and never created over another") {
  const TempDir dir;
  CHECK(WriteFileAtomic(dir / "a", AsBytes("one"), 0640).ok());
  CHECK(WriteFileAtomic(dir / "a", AsBytes("two"), 0600).ok());
  CHECK(ReadTextFile(dir / "a", 10).value() == "two");
  struct stat info {};
  REQUIRE(::stat((dir / "a").c_str(), &info) == 0);
  CHECK((info.st_mode & 07777) == 0600);
  CHECK(CreateFile(dir / "a", AsBytes("three"), 0600).error().code == Code::kConflict);
  CHECK(ReadTextFile(dir / "a", 10).value() == "two");
  CHECK(std::distance(std::filesystem::directory_iterator(dir.path), {}) == 1);
}

TEST_CASE("reading is bounded and takes regular files only") {
  const TempDir dir;
  CHECK(ReadFile(dir / "none", 10).error().code == Code::kNotFound);
  CHECK(WriteFileAtomic(dir / "a", AsBytes("0123456789"), 0600).ok());
  CHECK(ReadFile(dir / "a", 9).error().code == Code::kLimit);
  CHECK(ReadFile(dir / "a", 10).ok());
  CHECK_FALSE(ReadFile(dir.path, 10).ok());
}

TEST_CASE("a secret that others may read is refused") {
  const TempDir dir;
  CHECK(WriteFileAtomic(dir / "key", AsBytes("k"), 0644).ok());
  CHECK(ReadSecretFile(dir / "key", 10).error().code == Code::kDenied);
  CHECK(WriteFileAtomic(dir / "key", AsBytes("k"), 0600).ok());
  CHECK(ReadSecretFile(dir / "key", 10).ok());
}

}  // namespace
}  // namespace assay::config
