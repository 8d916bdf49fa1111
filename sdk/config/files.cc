// SPDX-License-Identifier: Apache-2.0
#include "sdk/config/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "sdk/core/crypto.h"
#include "sdk/core/handle.h"

namespace assay::config {
namespace {

Error FileError(const std::string& path, const char* what) {
  const int os = errno;
  return MakeError(os == ENOENT ? Code::kNotFound : Code::kIo, path + ": " + what + ": " + std::strerror(os),
                   static_cast<std::uint32_t>(os));
}

Result<Fd> OpenRegular(const std::string& path, struct stat& info) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!fd.valid()) return FileError(path, "cannot open");
  if (::fstat(fd.get(), &info) != 0) return FileError(path, "cannot stat");
  if (!S_ISREG(info.st_mode)) return MakeError(Code::kIo, path + ": is not a regular file");
  return fd;
}

Status ReadInto(const Fd& fd, const std::string& path, MutableBytes out, std::size_t& size) {
  size = 0;
  while (size < out.size()) {
    const ssize_t got = ::read(fd.get(), out.data() + size, out.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FileError(path, "cannot read");
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  return Ok();
}

Error TooLarge(const std::string& path, std::size_t limit) {
  return MakeError(Code::kLimit, path + ": is larger than " + std::to_string(limit) + " bytes");
}

std::string DirectoryOf(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

Status SyncDirectory(const std::string& directory) {
  const Fd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid() || ::fsync(fd.get()) != 0) return FileError(directory, "cannot sync the directory");
  return Ok();
}

Status WriteTemporary(const std::string& temporary, Bytes content, mode_t mode) {
  const Fd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
  if (!fd.valid()) return FileError(temporary, "cannot create");
  if (::fchmod(fd.get(), mode) != 0) return FileError(temporary, "cannot set the mode");
  std::size_t done = 0;
  while (done < content.size()) {
    const ssize_t put = ::write(fd.get(), content.data() + done, content.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return FileError(temporary, "cannot write");
    done += static_cast<std::size_t>(put);
  }
  if (::fsync(fd.get()) != 0) return FileError(temporary, "cannot sync");
  return Ok();
}

std::string TemporaryName(const std::string& path) {
  return path + ".tmp-" + std::to_string(::getpid()) + "-" + ToHex(Bytes(RandomArray<4>()));
}

}  // namespace

Result<Buffer> ReadFile(const std::string& path, std::size_t limit) {
  struct stat info {};
  ASSAY_TRY(const Fd fd, OpenRegular(path, info));
  if (static_cast<std::uint64_t>(info.st_size) > limit) return TooLarge(path, limit);
  Buffer out(static_cast<std::size_t>(info.st_size) + 1);  // one more: a file that grows meanwhile shows
  std::size_t size = 0;
  ASSAY_CHECK_OK(ReadInto(fd, path, out, size));
  if (size > limit) return TooLarge(path, limit);
  out.resize(size);
  return out;
}

Result<std::string> ReadTextFile(const std::string& path, std::size_t limit) {
  ASSAY_TRY(const Buffer bytes, ReadFile(path, limit));
  return std::string(AsText(bytes));
}

Result<Secret> ReadSecretFile(const std::string& path, std::size_t limit) {
  struct stat info {};
  ASSAY_TRY(const Fd fd, OpenRegular(path, info));
  if ((info.st_mode & 077) != 0) {
    return MakeError(Code::kDenied, path + ": holds a secret and is open to others; run: chmod 600 " + path);
  }
  if (static_cast<std::uint64_t>(info.st_size) > limit) return TooLarge(path, limit);
  Secret out(static_cast<std::size_t>(info.st_size));
  std::size_t size = 0;
  ASSAY_CHECK_OK(ReadInto(fd, path, out.fill(), size));
  if (size != out.view().size()) return MakeError(Code::kIo, path + ": changed while it was read");
  return out;
}

Status WriteFileAtomic(const std::string& path, Bytes content, mode_t mode) {
  const std::string temporary = TemporaryName(path);
  const Status written = WriteTemporary(temporary, content, mode);
  if (!written.ok()) {
    ::unlink(temporary.c_str());
    return written;
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    const Error error = FileError(path, "cannot replace");
    ::unlink(temporary.c_str());
    return error;
  }
  return SyncDirectory(DirectoryOf(path));
}

Status CreateFile(const std::string& path, Bytes content, mode_t mode) {
  const std::string temporary = TemporaryName(path);
  const Status written = WriteTemporary(temporary, content, mode);
  Status linked = Ok();
  if (!written.ok()) {
    linked = written;
  } else if (::link(temporary.c_str(), path.c_str()) != 0) {
    linked = errno == EEXIST ? Status(MakeError(Code::kConflict, path + ": exists already"))
                             : Status(FileError(path, "cannot create"));
  }
  ::unlink(temporary.c_str());
  if (!linked.ok()) return linked;
  return SyncDirectory(DirectoryOf(path));
}

Status MakeDirectory(const std::string& path, mode_t mode) {
  if (::mkdir(path.c_str(), mode) != 0 && errno != EEXIST) return FileError(path, "cannot make the directory");
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return FileError(path, "cannot stat");
  if (!S_ISDIR(info.st_mode)) return MakeError(Code::kIo, path + ": is not a directory");
  return Ok();
}

}  // namespace assay::config
