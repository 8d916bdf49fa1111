// SPDX-License-Identifier: Apache-2.0
// The seam over the file system: one directory and the files in it, so that a test can fail any write, sync, rename or
// open. Names are plain file names. Nothing here retries: above all no sync is ever repeated after it failed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sdk/core/bytes.h"
#include "sdk/core/result.h"

namespace assay::audit {

// Two descriptors or names show the same file when device and inode are equal.
struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t links = 0;
  std::uint64_t size = 0;
  bool Same(const FileIdentity& other) const noexcept { return device == other.device && inode == other.inode; }
};

class File {
 public:
  virtual ~File() = default;
  // May write less than all. An Error carries errno.
  virtual Result<std::size_t> WriteAt(std::uint64_t offset, Bytes bytes) = 0;
  // May read less than all; 0 at the end.
  virtual Result<std::size_t> ReadAt(std::uint64_t offset, MutableBytes out) = 0;
  virtual Status SyncData() = 0;                    // fdatasync
  virtual Status Truncate(std::uint64_t size) = 0;  // and the caller syncs
  virtual Result<FileIdentity> Identity() = 0;
  virtual Status Lock() = 0;  // exclusive flock, at once; kBusy when another holds it
};

enum class Access : std::uint8_t {
  kRead,       // must exist
  kReadWrite,  // must exist
  kCreate,     // must not exist; made 0600
  kLockFile,   // made 0600 or opened; never truncated
};

class Directory {
 public:
  virtual ~Directory() = default;
  // Regular files only, symbolic links refused (kDenied). Except for kRead also refused: a file that another user owns
  // or that others than its owner may read or write.
  virtual Result<std::unique_ptr<File>> Open(const std::string& name, Access access) = 0;
  virtual Status Rename(const std::string& from, const std::string& to) = 0;  // kConflict when `to` exists
  virtual Status Remove(const std::string& name) = 0;
  virtual Status Sync() = 0;
  virtual Result<std::vector<std::string>> List() = 0;                 // sorted
  virtual Result<FileIdentity> Identity(const std::string& name) = 0;  // kNotFound
  virtual const std::string& path() const noexcept = 0;                // for messages
};

enum class Missing : std::uint8_t { kRefuse, kMake };
// For the writer (kMake, or a directory that must be ours and private) and for readers.
Result<std::unique_ptr<Directory>> OpenOwnDirectory(const std::string& path, Missing missing);
Result<std::unique_ptr<Directory>> OpenAnyDirectory(const std::string& path);

// Loops over short writes; an Error names the file.
Status WriteAll(File& file, const std::string& name, std::uint64_t offset, Bytes bytes);
// kLimit when the file holds more than `limit` bytes.
Result<Buffer> ReadWhole(File& file, const std::string& name, std::size_t limit);
// "doing NAME: cause", keeping code and errno.
Error Named(const Error& error, std::string_view doing, const std::string& name);

}  // namespace assay::audit
