// SPDX-License-Identifier: Apache-2.0
#include "sdk/config/enroll_config.h"

#include <charconv>

#include "sdk/config/document.h"
#include "sdk/core/limits.h"

namespace assay::config {
namespace {

constexpr std::uint32_t kFirstPersistent = 0x81000000;
constexpr std::uint32_t kLastPersistent = 0x81FFFFFF;

constexpr tpm::EkKind kEkKinds[] = {tpm::EkKind::kRsa2048Low, tpm::EkKind::kRsa2048High, tpm::EkKind::kEccP256Low,
                                    tpm::EkKind::kEccP256High, tpm::EkKind::kEccP384High};

Result<EnrollConfig> Read(Document document) {
  EnrollConfig config;
  Table root = document.root();
  config.verifier = root.String("verifier", "");
  config.ca = root.String("ca", "");
  config.tcti = root.String("tcti", config.tcti);
  config.state_dir = root.String("state_dir", config.state_dir);
  const Result<tpm::AikKind> aik = AikKindFromName(root.String("aik", AikKindName(config.aik)));
  if (aik.ok()) config.aik = *aik;
  else root.Problem("aik", aik.error().detail);
  const Result<std::uint32_t> handle = PersistentHandleFromText(root.String("aik_handle", "0x81010100"));
  if (handle.ok()) config.aik_handle = *handle;
  else root.Problem("aik_handle", handle.error().detail);
  const Result<tpm::EkKind> ek = EkKindFromName(root.String("ek", EkKindName(config.ek)));
  if (ek.ok()) config.ek = *ek;
  else root.Problem("ek", ek.error().detail);
  config.ek_certificate = root.String("ek_certificate", "");
  config.ek_without_certificate = root.Bool("ek_without_certificate", false);
  config.intermediates = root.Strings("intermediates");
  config.token_file = root.String("token_file", "");
  config.label = root.String("label", "");
  config.timeout_ms = root.DurationMs("timeout", config.timeout_ms, 1'000, 600'000);
  ASSAY_CHECK_OK(document.Finish());
  return config;
}

}  // namespace

std::string_view EkKindName(tpm::EkKind kind) noexcept {
  switch (kind) {
    case tpm::EkKind::kRsa2048Low: return "rsa2048";
    case tpm::EkKind::kRsa2048High: return "rsa2048-high";
    case tpm::EkKind::kEccP256Low: return "p256";
    case tpm::EkKind::kEccP256High: return "p256-high";
    case tpm::EkKind::kEccP384High: return "p384-high";
  }
  return "unknown";
}

Result<tpm::EkKind> EkKindFromName(std::string_view name) {
  for (const tpm::EkKind kind : kEkKinds) {
    if (name == EkKindName(kind)) return kind;
  }
  return MakeError(Code::kConfig, "\"" + std::string(name) +
                                      "\" is no kind of EK: rsa2048, rsa2048-high, p256, p256-high or p384-high");
}

Result<std::uint32_t> PersistentHandleFromText(std::string_view text) {
  std::uint32_t handle = 0;
  const bool hex = text.starts_with("0x") || text.starts_with("0X");
  const std::string_view digits = hex ? text.substr(2) : text;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), handle, 16);
  if (!hex || error != std::errc() || end != digits.data() + digits.size() || handle < kFirstPersistent ||
      handle > kLastPersistent) {
    return MakeError(Code::kConfig, "\"" + std::string(text) + "\" is no persistent handle: 0x81000000 to 0x81FFFFFF");
  }
  return handle;
}

Result<EnrollConfig> LoadEnrollConfig(const std::string& path) {
  ASSAY_TRY(Document document, Document::Load(path));
  return Read(std::move(document));
}

Result<EnrollConfig> ParseEnrollConfig(std::string_view text, const std::string& name) {
  ASSAY_TRY(Document document, Document::Parse(text, name));
  return Read(std::move(document));
}

Status CheckEnrollConfig(const EnrollConfig& config) {
  if (config.verifier.empty())
    return MakeError(
        Code::kConfig,
        "no verifier is named: give --verifier https://HOST[:PORT], or `verifier` in the configuration file");
  if (!config.verifier.starts_with("https://"))
    return MakeError(Code::kConfig, "the verifier \"" + config.verifier + "\" must be reached by https://");
  if (config.ca.empty())
    return MakeError(
        Code::kConfig,
        "no CA is named for the verifier's TLS certificate: give --ca FILE, or `ca` in the configuration file");
  if (config.tcti.empty() || config.state_dir.empty())
    return MakeError(Code::kConfig, "tcti and state_dir must not be empty");
  if (config.label.size() > limits::kShortText)
    return MakeError(Code::kConfig, "the label is over " + std::to_string(limits::kShortText) + " bytes");
  if (config.ek_without_certificate && !config.ek_certificate.empty())
    return MakeError(Code::kConfig, "an EK certificate file and \"without certificate\" exclude each other");
  return Ok();
}

}  // namespace assay::config
