// SPDX-License-Identifier: Apache-2.0
#include "sdk/config/enrollment.h"

#include <doctest/doctest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>

#include "sdk/config/files.h"
#include "sdk/core/crypto.h"

namespace assay::config {
namespace {

struct TempDir {
  TempDir() {
    char name[] = "/tmp/assay-enrollment-XXXXXX";
    path = ::mkdtemp(name);
  }
  ~TempDir() { std::filesystem::remove_all(path); }
  std::string path;
};

EnrollmentRecord Sample() {
  EnrollmentRecord record;
  record.host_id = Sha256(AsBytes("host"));
  record.attester = Sha256(AsBytes("aik"));
  record.aik_handle = 0x81010100;
  record.aik_kind = tpm::AikKind::kEccP256;
  record.verifier_url = "https://127.0.0.1:8443";
  record.certificate_path = "/var/lib/assay/aik.pem";
  record.not_after = 2'000'000'000;
  record.renew_after = 1'900'000'000;
  record.generation = 3;
  record.weak = true;
  return record;
}

TEST_CASE("a record is read back as it was saved, from a file that only its owner reads") {
  const TempDir dir;
  const std::string path = EnrollmentPath(dir.path);
  REQUIRE(SaveEnrollment(path, Sample()).ok());
  struct stat info {};
  REQUIRE(::stat(path.c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
  const EnrollmentRecord read = LoadEnrollment(path).value();
  CHECK(read.host_id == Sample().host_id);
  CHECK(read.attester == Sample().attester);
  CHECK(read.aik_handle == Sample().aik_handle);
  CHECK(read.aik_kind == Sample().aik_kind);
  CHECK(read.verifier_url == Sample().verifier_url);
  CHECK(read.certificate_path == Sample().certificate_path);
  CHECK(read.not_after == Sample().not_after);
  CHECK(read.renew_after == Sample().renew_after);
  CHECK(read.generation == 3);
  CHECK(read.weak);
}

TEST_CASE("a machine that is not enrolled is told apart from a broken file") {
  const TempDir dir;
  const std::string path = EnrollmentPath(dir.path);
  CHECK(LoadEnrollment(path).error().code == Code::kNotFound);
  REQUIRE(WriteFileAtomic(path, AsBytes("version = 1\n"), 0600).ok());
  CHECK(LoadEnrollment(path).error().code == Code::kConfig);
}

TEST_CASE("a record without any one of its lines, or with a line of its own, is refused") {
  const TempDir dir;
  const std::string path = EnrollmentPath(dir.path);
  REQUIRE(SaveEnrollment(path, Sample()).ok());
  const std::string text = ReadTextFile(path, 4096).value();
  for (std::size_t at = text.find('\n') + 1; at < text.size();) {
    const std::size_t end = text.find('\n', at) + 1;
    REQUIRE(WriteFileAtomic(path, AsBytes(text.substr(0, at) + text.substr(end)), 0600).ok());
    CHECK_MESSAGE(LoadEnrollment(path).error().code == Code::kConfig, text.substr(at, end - at));
    at = end;
  }
  REQUIRE(WriteFileAtomic(path, AsBytes(text + "other = 1\n"), 0600).ok());
  CHECK_FALSE(LoadEnrollment(path).ok());
}

TEST_CASE("what would break the file's quoting is not saved") {
  const TempDir dir;
  EnrollmentRecord record = Sample();
  record.verifier_url = "https://a\"\nweak = false";
  CHECK(SaveEnrollment(EnrollmentPath(dir.path), record).error().code == Code::kConfig);
  record = Sample();
  record.aik_handle = 0x80000000;
  CHECK(SaveEnrollment(EnrollmentPath(dir.path), record).error().code == Code::kConfig);
  CHECK(LoadEnrollment(EnrollmentPath(dir.path)).error().code == Code::kNotFound);
}

}  // namespace
}  // namespace assay::config
