// SPDX-License-Identifier: Apache-2.0
#include "verifier/server/init.h"

#include <chrono>

#include "sdk/config/files.h"
#include "sdk/core/json.h"
#include "verifier/server/key_files.h"

namespace assay::server {
namespace {

constexpr std::int64_t kTlsLifetime = 365LL * 86400;

// A JSON string is a TOML basic string for the text that stands here.
std::string Quote(const std::string& text) { return JsonQuote(text); }

std::string ConfigText(const InitOptions& options) {
  return "# assay-verifier configuration; docs/operations.md explains each key. Paths are relative to this file.\n"
         "issuer = " +
         Quote("https://" + options.names.front() + ":" + std::to_string(options.port)) +
         "\n"
         "listen_address = \"127.0.0.1\"   # \"0.0.0.0\" or \"::\" to serve the network\n"
         "listen_port = " +
         std::to_string(options.port) +
         "\n"
         "tls_certificate = \"tls/cert.pem\"\n"
         "tls_key = \"tls/key.pem\"\n"
         "operator_socket = \"operator.sock\"\n"
         "state_dir = \"state\"\n"
         "keys_dir = \"keys\"\n"
         "policy = \"policy.toml\"\n\n"
         "[attestation]\n"
         "interval = \"60s\"              # how often a machine attests\n\n"
         "[enrollment]\n"
         "aik_lifetime = \"24h\"\n"
         "begin_per_source_minute = 10\n";
}

std::string PolicyText(const InitOptions& options) {
  std::string roots;
  for (const auto& root : options.ek_roots) roots += (roots.empty() ? "" : ", ") + Quote(root);
  return "# Appraisal policy; `assayctl policy check` reads it, SIGHUP or `assayctl policy reload` puts it in force.\n"
         "name = \"first policy: asks nothing of the runtime\"\n"
         "quoted_pcrs = [\"0\", \"1\", \"2\", \"3\", \"4\", \"5\", \"6\", \"7\"]\n"
         "aik_algorithms = [\"rsassa\", \"rsapss\", \"ecdsa-p256\"]\n"
         "freshness = \"prefetched\"        # or \"asked\": always a second round trip\n\n"
         "# Accepted values by PCR: a PCR that is named here is judged. Read yours with `tpm2_pcrread sha256:4,7`.\n"
         "# [pcr]\n"
         "# 4 = [\"sha256:...\"]\n\n"
         "[runtime]\n"
         "asks = \"nothing\"                # or \"gate\", with gate = \"enforce\"\n"
         "agents = []                     # accepted agent executables, \"sha256:...\"; empty: not judged\n\n"
         "[enrollment]\n"
         "mode = " +
         Quote(options.open_enrollment ? "open" : "token") +
         "\n"
         "ek = \"chain\"\n"
         "ek_roots = [" +
         roots + "]" + (roots.empty() ? "   # name the TPM manufacturers' root certificates here" : "") +
         "\n\n"
         "[[title]]\n"
         "audience = " +
         Quote(options.audience) +
         "\n"
         "key_file = \"keys/title.key\"     # shared with the title's game servers\n"
         "result_lifetime = \"5m\"\n"
         "host_tokens = true\n"
         "host_token_entries = [\"batch\"]\n";
}

}  // namespace

Result<std::vector<std::string>> InitDirectory(const InitOptions& options) {
  const std::string& dir = options.directory;
  const auto now =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  ASSAY_TRY(const TlsIdentity tls, MakeTlsIdentity(options.names, now, kTlsLifetime));
  ASSAY_CHECK_OK(config::MakeDirectory(dir, 0700));
  for (const char* sub : {"/tls", "/keys", "/state"}) ASSAY_CHECK_OK(config::MakeDirectory(dir + sub, 0700));
  struct File {
    std::string path;
    std::string content;
    mode_t mode;
  };
  const std::string title_key = ToHex(RandomArray<32>()) + "\n";
  const std::vector<File> files = {
      {dir + "/verifier.toml", ConfigText(options), 0600},
      {dir + "/policy.toml", PolicyText(options), 0600},
      {dir + "/tls/cert.pem", tls.certificate_pem, 0644},
      {dir + "/tls/key.pem", std::string(AsText(tls.key_pem.view())), 0600},
      {dir + "/keys/title.key", title_key, 0600},
  };
  std::vector<std::string> made;
  for (const auto& file : files) {
    const Status status = config::CreateFile(file.path, AsBytes(file.content), file.mode);
    if (!status.ok())
      return MakeError(status.error().code,
                       status.error().detail + "; init never overwrites: choose an empty directory");
    made.push_back(file.path);
  }
  return made;
}

}  // namespace assay::server
