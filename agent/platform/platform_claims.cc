// SPDX-License-Identifier: Apache-2.0
#include "agent/platform/platform_claims.h"

#include <dirent.h>
#include <fcntl.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <optional>

#include "sdk/core/cbor.h"
#include "sdk/core/crypto.h"
#include "sdk/core/handle.h"
#include "sdk/core/limits.h"

namespace assay::agent {
namespace {

using Tri = PlatformEvidence::Tri;
constexpr std::size_t kSmall = 256;
constexpr char kSecureBootVariable[] = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";
constexpr std::size_t kEfiAttributes = 4;  // efivarfs puts them before the value

// The first bytes of a pseudo file, without the newline at the end; nothing when it cannot be read.
std::optional<std::string> ReadSmall(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return std::nullopt;
  std::array<char, kSmall> buffer;
  const ssize_t size = ::read(fd.get(), buffer.data(), buffer.size());
  if (size < 0) return std::nullopt;
  std::string text(buffer.data(), static_cast<std::size_t>(size));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

std::optional<std::uint64_t> ReadNumber(const std::string& path) {
  const auto text = ReadSmall(path);
  std::uint64_t value = 0;
  if (!text || text->empty()) return std::nullopt;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size()) return std::nullopt;
  return value;
}

Tri OnIf(bool on) noexcept { return on ? Tri::kOn : Tri::kOff; }

Tri ReadSecureBoot(const std::string& root) {
  const auto value = ReadSmall(root + kSecureBootVariable);
  if (!value || value->size() != kEfiAttributes + 1) return Tri::kUnknown;
  return OnIf((*value)[kEfiAttributes] == 1);
}

// "none [integrity] confidentiality": the chosen one stands in brackets.
std::string ReadLockdown(const std::string& root) {
  const auto text = ReadSmall(root + "/sys/kernel/security/lockdown");
  if (!text) return "unknown";
  for (const char* mode : {"none", "integrity", "confidentiality"}) {
    if (text->find("[" + std::string(mode) + "]") != std::string::npos) return mode;
  }
  return "unknown";
}

Tri ReadModuleSignatures(const std::string& root) {
  const auto text = ReadSmall(root + "/sys/module/module/parameters/sig_enforce");
  if (text == "Y") return Tri::kOn;
  if (text == "N") return Tri::kOff;
  return Tri::kUnknown;
}

Tri ReadIommu(const std::string& root) {
  const Handle<DIR, ::closedir> groups(::opendir((root + "/sys/kernel/iommu_groups").c_str()));
  if (groups == nullptr) return Tri::kUnknown;
  while (const dirent* entry = ::readdir(groups.get())) {
    if (entry->d_name[0] != '.') return Tri::kOn;
  }
  return Tri::kOff;
}

Tri ReadFlag(const std::string& path) {
  const auto value = ReadNumber(path);
  return value ? OnIf(*value != 0) : Tri::kUnknown;
}

}  // namespace

PlatformEvidence PlatformClaims::View() const {
  PlatformEvidence view;
  view.secure_boot = secure_boot;
  view.lockdown = lockdown;
  view.module_signatures = module_signatures;
  view.iommu = iommu;
  view.kernel_release = kernel_release;
  view.taint = taint;
  view.kexec_loaded = kexec_loaded;
  view.unprivileged_bpf = unprivileged_bpf;
  return view;
}

PlatformClaims ReadPlatformClaims(const std::string& root) {
  PlatformClaims claims;
  claims.secure_boot = ReadSecureBoot(root);
  claims.lockdown = ReadLockdown(root);
  claims.module_signatures = ReadModuleSignatures(root);
  claims.iommu = ReadIommu(root);
  const std::string release =
      ReadSmall(root + "/proc/sys/kernel/osrelease").value_or("unknown").substr(0, limits::kShortText);
  claims.kernel_release = IsUtf8(release) ? release : "unknown";
  claims.taint = ReadNumber(root + "/proc/sys/kernel/tainted").value_or(0);
  claims.kexec_loaded = ReadFlag(root + "/sys/kernel/kexec_loaded");
  // The sysctl disables it: 1 for good, 2 until an administrator says otherwise.
  const auto disabled = ReadNumber(root + "/proc/sys/kernel/unprivileged_bpf_disabled");
  if (disabled) claims.unprivileged_bpf = OnIf(*disabled == 0);
  return claims;
}

Digest ReadBootId(const std::string& root) {
  const auto text = ReadSmall(root + "/proc/sys/kernel/random/boot_id");
  return text && !text->empty() ? Sha256(AsBytes(*text)) : Digest{};
}

Result<Digest> DigestOfFile(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return MakeError(Code::kIo, "cannot open " + path, static_cast<std::uint32_t>(errno));
  Sha256Stream stream;
  std::array<std::uint8_t, 64U << 10> buffer;
  for (;;) {
    const ssize_t size = ::read(fd.get(), buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return MakeError(Code::kIo, "cannot read " + path, static_cast<std::uint32_t>(errno));
    if (size == 0) return stream.Finish();
    stream.Update(Bytes(buffer).first(static_cast<std::size_t>(size)));
  }
}

Result<Digest> DigestOfThisExecutable() { return DigestOfFile("/proc/self/exe"); }

}  // namespace assay::agent
