// SPDX-License-Identifier: Apache-2.0
#include "verifier/audit/io.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "sdk/core/handle.h"

namespace assay::audit {
namespace {

Error Fault(int os) {
  Code code = Code::kIo;
  if (os == ENOENT) code = Code::kNotFound;
  else if (os == ELOOP || os == EACCES || os == EPERM) code = Code::kDenied;
  else if (os == EEXIST) code = Code::kConflict;
  return MakeError(code, std::strerror(os), static_cast<std::uint32_t>(os));
}

FileIdentity IdentityOf(const struct stat& info) {
  return {static_cast<std::uint64_t>(info.st_dev), static_cast<std::uint64_t>(info.st_ino),
          static_cast<std::uint64_t>(info.st_nlink), static_cast<std::uint64_t>(info.st_size)};
}

class PosixFile final : public File {
 public:
  explicit PosixFile(Fd fd) : fd_(std::move(fd)) {}

  Result<std::size_t> WriteAt(std::uint64_t offset, Bytes bytes) override {
    ssize_t wrote = -1;
    do wrote = ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    while (wrote < 0 && errno == EINTR);
    if (wrote < 0) return Fault(errno);
    return static_cast<std::size_t>(wrote);
  }
  Result<std::size_t> ReadAt(std::uint64_t offset, MutableBytes out) override {
    ssize_t got = -1;
    do got = ::pread(fd_.get(), out.data(), out.size(), static_cast<off_t>(offset));
    while (got < 0 && errno == EINTR);
    if (got < 0) return Fault(errno);
    return static_cast<std::size_t>(got);
  }
  Status SyncData() override {
    if (::fdatasync(fd_.get()) != 0) return Fault(errno);
    return Ok();
  }
  Status Truncate(std::uint64_t size) override {
    if (::ftruncate(fd_.get(), static_cast<off_t>(size)) != 0) return Fault(errno);
    return Ok();
  }
  Result<FileIdentity> Identity() override {
    struct stat info {};
    if (::fstat(fd_.get(), &info) != 0) return Fault(errno);
    return IdentityOf(info);
  }
  Status Lock() override {
    if (::flock(fd_.get(), LOCK_EX | LOCK_NB) == 0) return Ok();
    if (errno == EWOULDBLOCK) return MakeError(Code::kBusy, "another process holds the lock");
    return Fault(errno);
  }

 private:
  Fd fd_;
};

Status CheckOwn(const struct stat& info) {
  if (info.st_uid != ::geteuid()) return MakeError(Code::kDenied, "belongs to another user");
  if ((info.st_mode & 077) != 0) return MakeError(Code::kDenied, "is open to others than its owner");
  return Ok();
}

class PosixDirectory final : public Directory {
 public:
  PosixDirectory(Fd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  Result<std::unique_ptr<File>> Open(const std::string& name, Access access) override {
    if (name.empty() || name.find('/') != std::string::npos)
      return MakeError(Code::kInternal, "not a file name: " + name);
    int flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;  // O_NONBLOCK: a FIFO in the file's place must not hang us
    switch (access) {
      case Access::kRead: flags |= O_RDONLY; break;
      case Access::kReadWrite: flags |= O_RDWR; break;
      case Access::kCreate: flags |= O_RDWR | O_CREAT | O_EXCL; break;
      case Access::kLockFile: flags |= O_RDWR | O_CREAT; break;
    }
    Fd fd(::openat(fd_.get(), name.c_str(), flags, 0600));
    if (!fd.valid()) return Fault(errno);
    struct stat info {};
    if (::fstat(fd.get(), &info) != 0) return Fault(errno);
    if (!S_ISREG(info.st_mode)) return MakeError(Code::kDenied, "is not a regular file");
    if (access != Access::kRead) ASSAY_CHECK_OK(CheckOwn(info));
    return std::unique_ptr<File>(std::make_unique<PosixFile>(std::move(fd)));
  }
  Status Rename(const std::string& from, const std::string& to) override {
    if (::syscall(SYS_renameat2, fd_.get(), from.c_str(), fd_.get(), to.c_str(), RENAME_NOREPLACE) != 0)
      return Fault(errno);
    return Ok();
  }
  Status Remove(const std::string& name) override {
    if (::unlinkat(fd_.get(), name.c_str(), 0) != 0) return Fault(errno);
    return Ok();
  }
  Status Sync() override {
    if (::fsync(fd_.get()) != 0) return Fault(errno);
    return Ok();
  }
  Result<std::vector<std::string>> List() override {
    Fd copy(::openat(fd_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!copy.valid()) return Fault(errno);
    const Handle<DIR, ::closedir> stream(::fdopendir(copy.get()));
    if (stream == nullptr) return Fault(errno);
    (void)copy.Release();
    std::vector<std::string> names;
    while (true) {
      errno = 0;
      const dirent* entry = ::readdir(stream.get());
      if (entry == nullptr) break;
      const std::string name = entry->d_name;
      if (name != "." && name != "..") names.push_back(name);
    }
    if (errno != 0) return Fault(errno);
    std::sort(names.begin(), names.end());
    return names;
  }
  Result<FileIdentity> Identity(const std::string& name) override {
    struct stat info {};
    if (::fstatat(fd_.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return Fault(errno);
    return IdentityOf(info);
  }
  const std::string& path() const noexcept override { return path_; }

 private:
  Fd fd_;
  std::string path_;
};

Result<Fd> OpenDirectoryFd(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return Named(Fault(errno), "opening directory", path);
  return fd;
}

Status SyncParent(const std::string& path) {
  std::string trimmed = path;
  while (trimmed.size() > 1 && trimmed.back() == '/') trimmed.pop_back();
  const std::size_t slash = trimmed.rfind('/');
  const std::string parent = slash == std::string::npos ? "." : trimmed.substr(0, slash + 1);
  ASSAY_TRY(const Fd fd, OpenDirectoryFd(parent));
  if (::fsync(fd.get()) != 0) return Named(Fault(errno), "syncing directory", parent);
  return Ok();
}

}  // namespace

Error Named(const Error& error, std::string_view doing, const std::string& name) {
  return MakeError(error.code, std::string(doing) + " " + name + ": " + error.detail, error.os);
}

Result<std::unique_ptr<Directory>> OpenOwnDirectory(const std::string& path, Missing missing) {
  if (missing == Missing::kMake) {
    if (::mkdir(path.c_str(), 0700) == 0) ASSAY_CHECK_OK(SyncParent(path));
    else if (errno != EEXIST) return Named(Fault(errno), "making directory", path);
  }
  ASSAY_TRY(Fd fd, OpenDirectoryFd(path));
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return Named(Fault(errno), "reading the owner of", path);
  if (const Status own = CheckOwn(info); !own.ok())
    return MakeError(own.error().code, "directory " + path + " " + own.error().detail +
                                           ": chown it to the verifier's user and chmod 700");
  return std::unique_ptr<Directory>(std::make_unique<PosixDirectory>(std::move(fd), path));
}

Result<std::unique_ptr<Directory>> OpenAnyDirectory(const std::string& path) {
  ASSAY_TRY(Fd fd, OpenDirectoryFd(path));
  return std::unique_ptr<Directory>(std::make_unique<PosixDirectory>(std::move(fd), path));
}

Status WriteAll(File& file, const std::string& name, std::uint64_t offset, Bytes bytes) {
  while (!bytes.empty()) {
    const Result<std::size_t> wrote = file.WriteAt(offset, bytes);
    if (!wrote.ok()) return Named(wrote.error(), "writing", name);
    if (*wrote == 0 || *wrote > bytes.size())
      return MakeError(Code::kIo, "writing " + name + ": the system wrote nothing");
    bytes = bytes.subspan(*wrote);
    offset += *wrote;
  }
  return Ok();
}

Result<Buffer> ReadWhole(File& file, const std::string& name, std::size_t limit) {
  const Result<FileIdentity> identity = file.Identity();
  if (!identity.ok()) return Named(identity.error(), "reading", name);
  if (identity->size > limit)
    return MakeError(Code::kLimit, "reading " + name + ": larger than " + std::to_string(limit) + " bytes");
  Buffer out(static_cast<std::size_t>(identity->size));
  std::size_t filled = 0;
  while (filled < out.size()) {
    const Result<std::size_t> got = file.ReadAt(filled, MutableBytes(out).subspan(filled));
    if (!got.ok()) return Named(got.error(), "reading", name);
    if (*got == 0) break;
    filled += *got;
  }
  out.resize(filled);
  return out;
}

}  // namespace assay::audit
