// SPDX-License-Identifier: Apache-2.0
// The file behind the agent's measured log: a header that binds it to one boot, then entries, each framed by its
// size and its digest. Append returns only when the entry is on disk. Knows nothing of a TPM.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sdk/core/bytes.h"
#include "sdk/core/handle.h"
#include "sdk/core/result.h"

namespace assay::agent {

struct LogHeader {
  std::uint32_t reset_count = 0;
  std::uint32_t restart_count = 0;
  Digest boot_id{};               // SHA-256 of the kernel's boot id; zeros: not known
  Digest base{};                  // the register before entry 0
  std::uint64_t predecessor = 0;  // entries of a log of this boot that went before
  std::uint32_t faults = 0;       // LogFault bits: sticky for the boot
};

struct LogContent {
  LogHeader header;
  std::vector<Buffer> entries;
  std::uint64_t damaged = 0;  // bytes after the last whole entry: a torn write, or worse
};

class LogFile {
 public:
  static Result<LogContent> Load(const std::string& path);  // kNotFound; kMalformed when the header is broken
  // Replaces the file atomically by this content and opens it for appending.
  static Result<LogFile> Create(const std::string& path, const LogContent& content);
  Status Append(Bytes entry);  // on disk when it returns Ok

 private:
  explicit LogFile(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
  bool broken_ = false;  // a write failed half way: nothing may follow it
};

Buffer EncodeLogContent(const LogContent& content);
Result<LogContent> DecodeLogContent(Bytes encoded);

// The header alone, kept beside the log: tells a log that was lost in this boot from one that never was.
Status SaveBootMark(const std::string& path, const LogHeader& header);
Result<LogHeader> LoadBootMark(const std::string& path);

}  // namespace assay::agent
