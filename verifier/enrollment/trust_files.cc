// SPDX-License-Identifier: Apache-2.0
// What enrollment takes out of the policy file, and the bundle of roots from the files and directories it names.
#include <algorithm>
#include <filesystem>
#include <system_error>

#include "sdk/config/files.h"
#include "verifier/enrollment/service.h"

namespace assay::enrollment {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxBundleFile = 4U << 20;
constexpr std::size_t kMaxFiles = 1024;

// A directory stands for its *.pem and *.crt files, in order of name. Those must be PEM.
Result<std::vector<std::string>> FilesOf(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return std::vector<std::string>{path};
  std::vector<std::string> files;
  for (fs::directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
    const std::string extension = at->path().extension().string();
    if (extension == ".pem" || extension == ".crt") files.push_back(at->path().string());
    if (files.size() > kMaxFiles)
      return MakeError(Code::kLimit, path + ": over " + std::to_string(kMaxFiles) + " files");
  }
  if (error) return MakeError(Code::kIo, path + ": " + error.message());
  std::sort(files.begin(), files.end());
  return files;
}

Result<std::string> ReadAll(const std::vector<std::string>& paths) {
  std::string text;
  for (const std::string& path : paths) {
    ASSAY_TRY(const std::vector<std::string> files, FilesOf(path));
    for (const std::string& file : files) {
      ASSAY_TRY(const std::string content, config::ReadTextFile(file, kMaxBundleFile));
      if (content.find("-----BEGIN CERTIFICATE-----") == std::string::npos)
        return MakeError(Code::kConfig,
                         file + ": holds no PEM certificate; convert DER with `openssl x509 -inform DER`");
      text += content + "\n";
    }
  }
  return text;
}

}  // namespace

Result<std::shared_ptr<const TrustBundle>> LoadTrustBundle(const std::vector<std::string>& roots,
                                                           const std::vector<std::string>& intermediates) {
  ASSAY_TRY(const std::string root_pem, ReadAll(roots));
  ASSAY_TRY(const std::string intermediate_pem, ReadAll(intermediates));
  ASSAY_TRY(TrustBundle bundle, TrustBundle::FromPem(root_pem, intermediate_pem));
  return std::shared_ptr<const TrustBundle>(std::make_shared<TrustBundle>(std::move(bundle)));
}

Result<std::shared_ptr<const EnrollmentPolicy>> EnrollmentPolicyOf(const config::Policy& policy,
                                                                   std::int64_t certificate_lifetime) {
  auto out = std::make_shared<EnrollmentPolicy>();
  out->require_token = !policy.enrollment_open;
  out->allow_ek_key = policy.allow_ek_key;
  out->other_kinds = policy.ek_kinds;
  out->aik_schemes = policy.aik_schemes;
  out->require_canonical_proof = policy.require_canonical_proof;
  out->chain = {policy.ek_allow_expired, policy.ek_allow_sha1};
  out->certificate_lifetime = certificate_lifetime;
  if (!policy.ek_roots.empty() || !policy.allow_ek_key) {
    ASSAY_TRY(out->bundle, LoadTrustBundle(policy.ek_roots, policy.ek_intermediates));
  }
  return std::shared_ptr<const EnrollmentPolicy>(std::move(out));
}

}  // namespace assay::enrollment
