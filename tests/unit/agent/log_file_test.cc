// SPDX-License-Identifier: Apache-2.0
#include "agent/events/log_file.h"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <csignal>

#include "sdk/config/files.h"
#include "sdk/core/crypto.h"
#include "sdk/core/limits.h"
#include "tests/support/temp_dir.h"

namespace assay::agent {
namespace {

using assay::test::TempDir;

LogContent Sample() {
  LogContent content;
  content.header = {7, 2, Sha256(AsBytes("boot")), Sha256(AsBytes("base")), 5, 3};
  content.entries = {{1, 2, 3}, Buffer(300, 9), {4}};
  return content;
}

TEST_CASE("a log is read back as it was written and appended to") {
  const TempDir dir;
  LogFile file = LogFile::Create(dir / "log", Sample()).value();
  REQUIRE(file.Append(Buffer{7, 7}).ok());
  const LogContent read = LogFile::Load(dir / "log").value();
  CHECK(read.header.reset_count == 7);
  CHECK(read.header.restart_count == 2);
  CHECK(read.header.boot_id == Sha256(AsBytes("boot")));
  CHECK(read.header.base == Sha256(AsBytes("base")));
  CHECK(read.header.predecessor == 5);
  CHECK(read.header.faults == 3);
  REQUIRE(read.entries.size() == 4);
  CHECK(read.entries[1] == Buffer(300, 9));
  CHECK(read.entries[3] == Buffer{7, 7});
  CHECK(read.damaged == 0);
}

TEST_CASE("a log cut at any byte yields the whole entries before the cut and says that bytes were lost") {
  const Buffer encoded = EncodeLogContent(Sample());
  const std::size_t header = EncodeLogContent({Sample().header, {}, 0}).size();
  for (std::size_t size = 0; size < encoded.size(); ++size) {
    const auto content = DecodeLogContent(Bytes(encoded).first(size));
    CHECK(content.ok() == (size >= header));
    if (!content.ok()) continue;
    CHECK(content->entries.size() < 3);
    for (std::size_t i = 0; i < content->entries.size(); ++i) CHECK(content->entries[i] == Sample().entries[i]);
    LogContent again{Sample().header, content->entries, 0};
    CHECK(EncodeLogContent(again).size() + content->damaged == size);
  }
}

TEST_CASE("a flipped bit anywhere costs the entry it is in and all after it") {
  const Buffer encoded = EncodeLogContent(Sample());
  for (std::size_t at = 0; at < encoded.size(); ++at) {
    Buffer bad = encoded;
    bad[at] ^= 0x10;
    const auto content = DecodeLogContent(bad);
    if (!content.ok()) continue;
    CHECK(content->damaged > 0);
    CHECK(content->entries.size() < 3);
  }
}

TEST_CASE("an entry over the limit is refused before it is written") {
  const TempDir dir;
  LogFile file = LogFile::Create(dir / "log", Sample()).value();
  CHECK(file.Append(Buffer(limits::kRuntimeEntry + 1)).error().code == Code::kLimit);
  CHECK(file.Append(Buffer(limits::kRuntimeEntry)).ok());
  CHECK(LogFile::Load(dir / "log").value().entries.size() == 4);
}

TEST_CASE("a write that fails half way is an error, and nothing follows it") {
  const TempDir dir;
  const std::size_t size = EncodeLogContent(Sample()).size();
  const pid_t child = ::fork();
  if (child == 0) {
    // In a process of its own: the limit on file sizes stands for a full disk.
    ::signal(SIGXFSZ, SIG_IGN);
    auto file = LogFile::Create(dir / "log", Sample());
    const rlimit limit{size + 20, size + 20};
    if (!file.ok() || ::setrlimit(RLIMIT_FSIZE, &limit) != 0) ::_exit(10);
    if (file->Append(Buffer(100, 1)).ok()) ::_exit(11);
    if (file->Append(Buffer{1}).ok()) ::_exit(12);
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  const LogContent read = LogFile::Load(dir / "log").value();
  CHECK(read.entries.size() == 3);
  CHECK(read.damaged == 20);
}

TEST_CASE("the boot mark is a header of its own and refuses what is none") {
  const TempDir dir;
  REQUIRE(SaveBootMark(dir / "mark", Sample().header).ok());
  CHECK(LoadBootMark(dir / "mark").value().reset_count == 7);
  REQUIRE(config::WriteFileAtomic(dir / "mark", EncodeLogContent(Sample()), 0600).ok());
  CHECK_FALSE(LoadBootMark(dir / "mark").ok());
  CHECK(LoadBootMark(dir / "none").error().code == Code::kNotFound);
}

}  // namespace
}  // namespace assay::agent
