// SPDX-License-Identifier: Apache-2.0
// The enrollment CA on disk: enroll_ca.pem and enroll_ca.key. Never overwrites either.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "verifier/enrollment/ca.h"

namespace assay::enrollment {
namespace {

constexpr std::size_t kMaxPem = 64U << 10;
constexpr std::int64_t kCaLifetime = std::int64_t{10} * 365 * 86400;  // seconds

Error IoError(const std::string& path, std::string_view what) {
  const int error = errno;
  return MakeError(Code::kIo, path + ": " + std::string(what) + ": " + std::strerror(error), static_cast<std::uint32_t>(error));
}

// Nothing when the file does not exist.
Result<std::optional<Secret>> ReadFile(const std::string& path) {
  const Fd fd{open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!fd.valid() && errno == ENOENT) return std::optional<Secret>();
  if (!fd.valid()) return IoError(path, "cannot open");
  Secret content(kMaxPem);
  std::size_t used = 0;
  while (used < kMaxPem) {
    const ssize_t got = read(fd.get(), content.fill().data() + used, kMaxPem - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return IoError(path, "cannot read");
    if (got == 0) return std::optional<Secret>(Secret::CopyOf(content.view().first(used)));
    used += static_cast<std::size_t>(got);
  }
  return MakeError(Code::kLimit, path + ": over " + std::to_string(kMaxPem) + " bytes");
}

Status WriteNew(const std::string& path, Bytes content, mode_t mode) {
  const Fd fd{open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)};
  if (!fd.valid()) return IoError(path, "cannot create");
  while (!content.empty()) {
    const ssize_t put = write(fd.get(), content.data(), content.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return IoError(path, "cannot write");
    content = content.subspan(static_cast<std::size_t>(put));
  }
  if (fsync(fd.get()) != 0) return IoError(path, "cannot fsync");
  return Ok();
}

Status SyncDirectory(const std::string& directory) {
  const Fd fd{open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (!fd.valid() || fsync(fd.get()) != 0) return IoError(directory, "cannot fsync");
  return Ok();
}

}  // namespace

Result<EnrollmentCa> EnrollmentCa::LoadOrCreate(const std::string& directory, std::int64_t now) {
  const std::string certificate_path = directory + "/enroll_ca.pem";
  const std::string key_path = directory + "/enroll_ca.key";
  ASSAY_TRY(const std::optional<Secret> certificate, ReadFile(certificate_path));
  ASSAY_TRY(const std::optional<Secret> key, ReadFile(key_path));
  if (certificate.has_value() != key.has_value()) {
    return MakeError(Code::kConfig, directory + ": one of enroll_ca.pem and enroll_ca.key is missing: restore it from the backup, or remove both to begin anew");
  }
  if (certificate.has_value()) return Load(AsText(certificate->view()), AsText(key->view()));
  ASSAY_TRY(EnrollmentCa ca, Create("assay enrollment CA", now, kCaLifetime));
  ASSAY_CHECK_OK(WriteNew(key_path, ca.KeyPem().view(), 0600));
  ASSAY_CHECK_OK(WriteNew(certificate_path, AsBytes(ca.CertificatePem()), 0644));
  ASSAY_CHECK_OK(SyncDirectory(directory));
  return ca;
}

}  // namespace assay::enrollment
