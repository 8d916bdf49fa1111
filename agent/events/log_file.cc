// SPDX-License-Identifier: Apache-2.0
#include "agent/events/log_file.h"

#include <fcntl.h>

#include <cerrno>

#include "sdk/config/files.h"
#include "sdk/core/crypto.h"
#include "sdk/core/limits.h"

namespace assay::agent {
namespace {

constexpr std::uint32_t kMagic = 0x314C5241;  // "ARL1"
constexpr std::size_t kMaxFile = 64U << 20;
constexpr std::size_t kMaxMark = 4096;
constexpr mode_t kMode = 0600;

Buffer EncodeHeader(const LogHeader& header) {
  Writer out(160);
  out.U32Le(kMagic);
  out.U32Le(header.reset_count);
  out.U32Le(header.restart_count);
  out.Put(header.boot_id);
  out.Put(header.base);
  out.U64Le(header.predecessor);
  out.U32Le(header.faults);
  const Digest check = Sha256(out.buffer());
  out.Put(check);
  return std::move(out).Take();
}

Result<LogHeader> ReadHeader(Reader& in) {
  const Bytes start = in.Rest();
  LogHeader header;
  const std::uint32_t magic = in.U32Le();
  header.reset_count = in.U32Le();
  header.restart_count = in.U32Le();
  const Bytes boot_id = in.Take(kSha256Size);
  const Bytes base = in.Take(kSha256Size);
  header.predecessor = in.U64Le();
  header.faults = in.U32Le();
  const std::size_t covered = in.position();
  const Bytes check = in.Take(kSha256Size);
  if (!in.ok() || magic != kMagic || !Equal(check, Sha256(start.first(covered)))) {
    return MakeError(Code::kMalformed, "the log's header is broken");
  }
  CopyBytes(boot_id, header.boot_id);
  CopyBytes(base, header.base);
  return header;
}

Buffer Frame(Bytes entry) {
  Writer out(entry.size() + 36);
  out.U32Le(static_cast<std::uint32_t>(entry.size()));
  out.Put(entry);
  out.Put(Sha256(entry));
  return std::move(out).Take();
}

// One whole frame, or nothing when the bytes are torn or changed.
bool ReadFrame(Reader& in, Buffer& entry) {
  const std::uint32_t size = in.U32Le();
  if (size > limits::kRuntimeEntry) return false;
  const Bytes content = in.Take(size);
  const Bytes check = in.Take(kSha256Size);
  if (!in.ok() || !Equal(check, Sha256(content))) return false;
  entry = ToBuffer(content);
  return true;
}

Error IoError(const std::string& what) {
  const int os = errno;
  return MakeError(Code::kIo, what, static_cast<std::uint32_t>(os));
}

}  // namespace

Buffer EncodeLogContent(const LogContent& content) {
  Writer out;
  out.Put(EncodeHeader(content.header));
  for (const Buffer& entry : content.entries) out.Put(Frame(entry));
  return std::move(out).Take();
}

Result<LogContent> DecodeLogContent(Bytes encoded) {
  Reader in(encoded);
  LogContent content;
  ASSAY_TRY(content.header, ReadHeader(in));
  while (!in.AtEnd()) {
    const std::size_t good = in.position();
    Buffer entry;
    if (!ReadFrame(in, entry)) {
      content.damaged = encoded.size() - good;
      break;
    }
    content.entries.push_back(std::move(entry));
  }
  return content;
}

Result<LogContent> LogFile::Load(const std::string& path) {
  ASSAY_TRY(const Buffer bytes, config::ReadFile(path, kMaxFile));
  return DecodeLogContent(bytes);
}

Result<LogFile> LogFile::Create(const std::string& path, const LogContent& content) {
  ASSAY_CHECK_OK(config::WriteFileAtomic(path, EncodeLogContent(content), kMode));
  Fd fd(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.valid()) return IoError("cannot open " + path);
  return LogFile(std::move(fd));
}

Status LogFile::Append(Bytes entry) {
  if (broken_)
    return MakeError(Code::kIo, "the log took a half write before: restart the agent when the disk is well again");
  if (entry.size() > limits::kRuntimeEntry) return MakeError(Code::kLimit, "a log entry is larger than the limit");
  const Buffer frame = Frame(entry);
  Bytes rest = frame;
  while (!rest.empty()) {
    const ssize_t written = ::write(fd_.get(), rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      broken_ = true;
      return IoError("cannot write the log");
    }
    rest = rest.subspan(static_cast<std::size_t>(written));
  }
  // A failed fsync may have dropped the pages: what is on disk is unknown from here on.
  if (::fdatasync(fd_.get()) != 0) {
    broken_ = true;
    return IoError("cannot flush the log to disk");
  }
  return Ok();
}

Status SaveBootMark(const std::string& path, const LogHeader& header) {
  return config::WriteFileAtomic(path, EncodeHeader(header), kMode);
}

Result<LogHeader> LoadBootMark(const std::string& path) {
  ASSAY_TRY(const Buffer bytes, config::ReadFile(path, kMaxMark));
  Reader in(bytes);
  ASSAY_TRY(const LogHeader header, ReadHeader(in));
  ASSAY_CHECK_OK(in.Finish("the boot mark"));
  return header;
}

}  // namespace assay::agent
