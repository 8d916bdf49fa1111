// SPDX-License-Identifier: Apache-2.0
#include "sdk/config/enrollment.h"

#include <unistd.h>

#include <cstdio>

#include "sdk/config/document.h"
#include "sdk/config/files.h"

namespace assay::config {
namespace {

constexpr std::uint64_t kFormatVersion = 1;
constexpr std::uint32_t kFirstPersistent = 0x81000000;
constexpr std::uint32_t kLastPersistent = 0x81FFFFFF;
constexpr std::uint64_t kMaxTime = 1ULL << 40;
constexpr std::uint64_t kMaxGeneration = 1ULL << 40;
constexpr std::size_t kMaxText = 1024;

// Text that stands between double quotes in the file as it is.
bool IsPlain(std::string_view text) noexcept {
  if (text.size() > kMaxText) return false;
  for (const char c : text) {
    if (c < 0x20 || c == 0x7F || c == '"' || c == '\\') return false;
  }
  return true;
}

Digest GetDigest(Table& table, std::string_view key) {
  const std::string text = table.RequiredString(key);
  const auto bytes = FromHex(text);
  if (bytes.ok() && bytes->size() == kSha256Size) return ToDigest(*bytes).value();
  if (!text.empty()) table.Problem(key, "must be 64 hex digits, found \"" + text + "\"");
  return {};
}

}  // namespace

std::string_view AikKindName(tpm::AikKind kind) noexcept {
  switch (kind) {
    case tpm::AikKind::kRsaSsa: return "rsassa";
    case tpm::AikKind::kRsaPss: return "rsapss";
    case tpm::AikKind::kEccP256: return "ecdsa-p256";
  }
  return "unknown";
}

Result<tpm::AikKind> AikKindFromName(std::string_view name) {
  for (const auto kind : {tpm::AikKind::kRsaSsa, tpm::AikKind::kRsaPss, tpm::AikKind::kEccP256}) {
    if (name == AikKindName(kind)) return kind;
  }
  return MakeError(Code::kConfig, "\"" + std::string(name) + "\" is no kind of AIK: rsassa, rsapss or ecdsa-p256");
}

std::string EnrollmentPath(const std::string& state_dir) { return state_dir + "/" + kEnrollmentFile; }

Result<EnrollmentRecord> LoadEnrollment(const std::string& path) {
  // Document::Load reports a missing file as a fault of configuration; here it only means "not enrolled".
  if (::access(path.c_str(), F_OK) != 0)
    return MakeError(Code::kNotFound, path + " is not there: this machine is not enrolled; run assay-enroll enroll");
  ASSAY_TRY(Document document, Document::Load(path));
  Table root = document.root();
  EnrollmentRecord record;
  (void)root.Uint("version", 0, kFormatVersion, kFormatVersion);
  record.host_id = GetDigest(root, "host_id");
  record.attester = GetDigest(root, "attester");
  record.aik_handle = static_cast<std::uint32_t>(root.Uint("aik_handle", 0, kFirstPersistent, kLastPersistent));
  const std::string kind = root.OneOf("aik_kind", "", {"rsassa", "rsapss", "ecdsa-p256"});
  record.verifier_url = root.RequiredString("verifier_url");
  record.certificate_path = root.RequiredString("certificate_path");
  record.not_after = root.Uint("not_after", 0, 0, kMaxTime);
  record.renew_after = root.Uint("renew_after", 0, 0, kMaxTime);
  record.generation = root.Uint("generation", 0, 0, kMaxGeneration);
  record.weak = root.Bool("weak", true);
  for (const char* key : {"version", "aik_handle", "aik_kind", "not_after", "renew_after", "generation", "weak"}) {
    if (!root.Has(key)) root.Problem(key, "is missing");
  }
  ASSAY_CHECK_OK(document.Finish());
  ASSAY_TRY(record.aik_kind, AikKindFromName(kind));
  return record;
}

Status SaveEnrollment(const std::string& path, const EnrollmentRecord& record) {
  if (!IsPlain(record.verifier_url) || !IsPlain(record.certificate_path)) {
    return MakeError(
        Code::kConfig,
        "the verifier's URL and the certificate's path may hold no quotes, backslashes or control characters");
  }
  if (record.aik_handle < kFirstPersistent || record.aik_handle > kLastPersistent) {
    return MakeError(Code::kConfig, "the AIK's handle is not a persistent one (0x81000000 to 0x81FFFFFF)");
  }
  char handle[16];
  std::snprintf(handle, sizeof handle, "0x%08X", record.aik_handle);
  std::string text = "# Written by assay-enroll. Change it with assay-enroll renew, rotate or remove.\n";
  text += "version = " + std::to_string(kFormatVersion) + "\n";
  text += "host_id = \"" + ToHex(record.host_id) + "\"\n";
  text += "attester = \"" + ToHex(record.attester) + "\"\n";
  text += "aik_handle = " + std::string(handle) + "\n";
  text += "aik_kind = \"" + std::string(AikKindName(record.aik_kind)) + "\"\n";
  text += "verifier_url = \"" + record.verifier_url + "\"\n";
  text += "certificate_path = \"" + record.certificate_path + "\"\n";
  text += "not_after = " + std::to_string(record.not_after) + "\n";
  text += "renew_after = " + std::to_string(record.renew_after) + "\n";
  text += "generation = " + std::to_string(record.generation) + "\n";
  text += std::string("weak = ") + (record.weak ? "true" : "false") + "\n";
  return WriteFileAtomic(path, AsBytes(text), 0600);
}

}  // namespace assay::config
