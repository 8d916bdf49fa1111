// SPDX-License-Identifier: Apache-2.0
// assay-enroll: makes this machine known to a verifier, once, and keeps its certificate fresh. Parses options, builds
// the objects, prints what the flows return. Output goes to stdout, progress and errors to stderr.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <ctime>
#include <iostream>
#include <memory>

#include "enroll/enroll_flow.h"
#include "enroll/local.h"
#include "enroll/renew_flow.h"
#include "sdk/config/enroll_config.h"
#include "sdk/config/files.h"
#include "sdk/core/limits.h"

namespace {

using namespace assay;
using namespace assay::enroll;

constexpr char kAbout[] =
    "Enrolls this machine's TPM at an Assay verifier, once, and keeps its AIK certificate fresh.\n"
    "\n"
    "  assay-enroll enroll --verifier https://verifier:8443 --ca ca.pem\n"
    "  assay-enroll status\n"
    "\n"
    "`enroll` reads the EK certificate, creates an attestation key (AIK) in the TPM, proves by credential activation\n"
    "that both live in the same TPM, and keeps the AIK at a persistent handle. `renew` gets a new certificate for the\n"
    "same AIK by a fresh quote; `rotate` draws a new AIK and retires the old one; `remove` deletes AIK and record.";

constexpr char kExits[] =
    "Exit status: 0 done; 1 internal error; 2 options or configuration; 3 not enrolled; 4 already enrolled; 5 TPM;\n"
    "6 verifier unreachable; 7 refused by the verifier; 8 `status`: the certificate ended or renewal is due;\n"
    "9 state directory.";

struct Options {
  std::string config_file;
  bool json = false, quiet = false, check_config = false, yes = false;
  // As typed; empty or absent: the file's value or the default.
  std::string verifier, ca, tcti, state_dir, aik, aik_handle, ek, ek_certificate, token_file, label;
  std::vector<std::string> intermediates;
  bool ek_without_certificate = false;
  unsigned timeout_s = 0;
};

void AddOptions(CLI::App& app, Options& o) {
  app.add_option("--config", o.config_file,
                 "TOML file; its keys are these options' names with _ for -. Options win over it");
  app.add_flag("--check-config", o.check_config, "read and check file and options, then exit");
  app.add_flag("--json", o.json, "print one JSON object");
  app.add_flag("--quiet", o.quiet, "no progress on stderr");
  app.add_option("--verifier", o.verifier, "https://HOST[:PORT]");
  app.add_option("--ca", o.ca, "PEM file: CA of the verifier's TLS certificate");
  app.add_option("--tcti", o.tcti, "the TPM: device:/dev/tpmrm0 (default), swtpm:path=SOCKET");
  app.add_option("--state-dir", o.state_dir, "where record and certificate are kept (default /var/lib/assay)");
  app.add_option("--aik", o.aik, "rsassa (default), rsapss or ecdsa-p256");
  app.add_option("--aik-handle", o.aik_handle, "persistent handle (default 0x81010100)");
  app.add_option("--ek", o.ek, "rsa2048 (default; the canonical one), rsa2048-high, p256, p256-high, p384-high");
  app.add_option("--ek-certificate", o.ek_certificate, "EK certificate from a file instead of NV, DER or PEM");
  app.add_flag("--ek-without-certificate", o.ek_without_certificate,
               "offer the bare EK; verifiers refuse it by default");
  app.add_option("--intermediate", o.intermediates,
                 "file with intermediates, DER or PEM; instead of those in NV 0x01C00100")
      ->allow_extra_args(false);
  app.add_option("--token-file", o.token_file, "file with the one-time enrollment token");
  app.add_option("--label", o.label, "a name for people (default: the host name); it proves nothing");
  app.add_option("--timeout", o.timeout_s, "seconds for one request to the verifier (default 30)")
      ->check(CLI::Range(1, 600));
}

// The file first, the options over it.
Result<config::EnrollConfig> Merge(const Options& o) {
  config::EnrollConfig c;
  if (!o.config_file.empty()) { ASSAY_TRY(c, config::LoadEnrollConfig(o.config_file)); }
  const auto take = [](const std::string& typed, std::string& into) {
    if (!typed.empty()) into = typed;
  };
  take(o.verifier, c.verifier), take(o.ca, c.ca), take(o.tcti, c.tcti), take(o.state_dir, c.state_dir);
  take(o.ek_certificate, c.ek_certificate), take(o.token_file, c.token_file), take(o.label, c.label);
  if (!o.aik.empty()) { ASSAY_TRY(c.aik, config::AikKindFromName(o.aik)); }
  if (!o.aik_handle.empty()) { ASSAY_TRY(c.aik_handle, config::PersistentHandleFromText(o.aik_handle)); }
  if (!o.ek.empty()) { ASSAY_TRY(c.ek, config::EkKindFromName(o.ek)); }
  if (!o.intermediates.empty()) c.intermediates = o.intermediates;
  if (o.ek_without_certificate) c.ek_without_certificate = true;
  if (o.timeout_s != 0) c.timeout_ms = o.timeout_s * 1000ULL;
  return c;
}

int Fail(const Options& o, const Failure& failure) {
  std::fprintf(stderr, "%s\n", FailureText(failure).c_str());
  if (o.json) std::printf("%s\n", FailureJson(failure).c_str());
  return static_cast<int>(failure.exit);
}

int Show(const Options& o, const config::EnrollmentRecord& record) {
  const std::int64_t now = std::time(nullptr);
  std::printf("%s", o.json ? (RecordJson(record, now) + "\n").c_str() : RecordText(record, now).c_str());
  return static_cast<int>(Exit::kDone);
}

int Finish(const Options& o, const Outcome<config::EnrollmentRecord>& outcome) {
  if (const auto* failure = std::get_if<Failure>(&outcome)) return Fail(o, *failure);
  return Show(o, std::get<config::EnrollmentRecord>(outcome));
}

int RunStatus(const Options& o, const config::EnrollConfig& c) {
  const Outcome<config::EnrollmentRecord> record = LoadRecord(c.state_dir);
  const int shown = Finish(o, record);
  if (shown != 0) return shown;
  const bool valid =
      StateOf(std::get<config::EnrollmentRecord>(record), std::time(nullptr)) == CertificateState::kValid;
  return static_cast<int>(valid ? Exit::kDone : Exit::kRenewalDue);
}

Result<std::string> ReadToken(const std::string& path) {
  if (path.empty()) return std::string();
  ASSAY_TRY(std::string token, config::ReadTextFile(path, limits::kEnrollmentToken + 2));
  while (!token.empty() && (token.back() == '\n' || token.back() == '\r')) token.pop_back();
  if (token.empty() || token.size() > limits::kEnrollmentToken)
    return MakeError(Code::kConfig, path + ": holds no enrollment token");
  return token;
}

int RunWithVerifier(const Options& o, const config::EnrollConfig& c, const std::string& command,
                    const std::function<void(std::string_view)>& progress) {
  if (const Status checked = config::CheckEnrollConfig(c); !checked.ok()) return Fail(o, UsageFailure(checked.error()));
  const Result<std::string> token = ReadToken(c.token_file);
  if (!token.ok()) return Fail(o, UsageFailure(token.error()));
  const Result<std::unique_ptr<VerifierClient>> verifier = ConnectVerifier(c);
  if (!verifier.ok()) return Fail(o, VerifierFailure(verifier.error(), c.verifier));
  const Result<std::unique_ptr<tpm::Device>> device = tpm::OpenDevice(c.tcti);
  if (!device.ok()) return Fail(o, TpmFailure(device.error(), "opening " + c.tcti));
  const Deps deps{**device, **verifier, progress};
  if (command == "renew") return Finish(o, Renew(deps, c));
  return Finish(o, EnrollFlow(deps, c, *token).Run(command == "rotate" ? Mode::kRotate : Mode::kEnroll));
}

int RunRemove(const Options& o, const config::EnrollConfig& c, const std::function<void(std::string_view)>& progress) {
  if (!o.yes)
    return Fail(o, {Exit::kUsage, "confirmation_missing",
                    "`remove` deletes the AIK from the TPM: a new enrollment is needed afterwards",
                    "say --yes if you mean it"});
  if (Outcome<config::EnrollmentRecord> record = LoadRecord(c.state_dir); std::holds_alternative<Failure>(record))
    return Fail(o, std::get<Failure>(record));
  const Result<std::unique_ptr<tpm::Device>> device = tpm::OpenDevice(c.tcti);
  if (!device.ok()) return Fail(o, TpmFailure(device.error(), "opening " + c.tcti));
  if (const Check failure = Remove(**device, c.state_dir, progress)) return Fail(o, *failure);
  if (o.json) std::printf("{\"ok\":true}\n");
  return static_cast<int>(Exit::kDone);
}

int Run(const Options& o, const std::string& command) {
  const Result<config::EnrollConfig> merged = Merge(o);
  if (!merged.ok()) return Fail(o, UsageFailure(merged.error()));
  const config::EnrollConfig& c = *merged;
  if (o.check_config) {
    if (const Status checked = config::CheckEnrollConfig(c); !checked.ok())
      return Fail(o, UsageFailure(checked.error()));
    std::printf("%s\n", o.json ? "{\"ok\":true}" : "configuration ok");
    return static_cast<int>(Exit::kDone);
  }
  const auto progress = [&o](std::string_view line) {
    if (!o.quiet) std::cerr << "assay-enroll: " << line << "\n";
  };
  if (command == "status") return RunStatus(o, c);
  if (command == "remove") return RunRemove(o, c, progress);
  return RunWithVerifier(o, c, command, progress);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{kAbout, "assay-enroll"};
  app.footer(kExits);
  app.set_version_flag("--version", "assay-enroll " ASSAY_VERSION);
  app.require_subcommand(0, 1);
  app.fallthrough();
  Options options;
  AddOptions(app, options);
  app.add_subcommand("enroll", "enroll this machine");
  app.add_subcommand("status", "what this machine knows of its enrollment; exit 8 when renewal is due");
  app.add_subcommand("renew", "a new certificate for the same AIK, by a fresh quote");
  app.add_subcommand("rotate", "a new AIK for the same host; the old one is retired");
  CLI::App* remove = app.add_subcommand("remove", "delete the AIK and the record");
  remove->add_flag("--yes", options.yes, "really");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : static_cast<int>(Exit::kUsage);
  }
  const auto chosen = app.get_subcommands();
  if (chosen.empty() && !options.check_config) {
    std::cerr << app.help();
    return static_cast<int>(Exit::kUsage);
  }
  return Run(options, chosen.empty() ? "" : chosen.front()->get_name());
}
