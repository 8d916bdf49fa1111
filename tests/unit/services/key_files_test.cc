// SPDX-License-Identifier: Apache-2.0
#include "verifier/server/key_files.h"

#include <doctest/doctest.h>

#include "sdk/config/files.h"
#include "tests/support/temp_dir.h"

namespace assay::server {
namespace {

TEST_CASE("a key file that does not hold its key is named, at the check and at the start") {
  for (const char* name : {"result.pem", "device.key"}) {
    test::TempDir dir;
    CHECK(CheckIssuerKeys(dir.path()).ok());  // nothing there yet: the first start makes them
    const std::string path = dir.path() + "/" + name;
    REQUIRE(config::CreateFile(path, AsBytes("garbage\n"), 0600).ok());
    const Status checked = CheckIssuerKeys(dir.path());
    REQUIRE_FALSE(checked.ok());
    CHECK(checked.error().code == Code::kConfig);
    CHECK(checked.error().detail.find(path) != std::string::npos);
    const auto started = LoadOrCreateIssuerKeys(dir.path());
    REQUIRE_FALSE(started.ok());
    CHECK(started.error().code == Code::kConfig);
    CHECK(started.error().detail.find(path) != std::string::npos);
  }
}

TEST_CASE("keys that a first start made are the same at the next, and pass the check") {
  test::TempDir dir;
  const auto first = LoadOrCreateIssuerKeys(dir.path());
  REQUIRE(first.ok());
  CHECK(CheckIssuerKeys(dir.path()).ok());
  const auto second = LoadOrCreateIssuerKeys(dir.path());
  REQUIRE(second.ok());
  CHECK(first->signing.Public()->SpkiDigest() == second->signing.Public()->SpkiDigest());
  CHECK(Equal(first->device_master.view(), second->device_master.view()));
}

}  // namespace
}  // namespace assay::server
