// SPDX-License-Identifier: Apache-2.0
// assay-verifier: arguments, signals, exit codes. Everything else is in app.cc.
#include <signal.h>
#include <sys/signalfd.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>

#include "sdk/config/verifier_config.h"
#include "verifier/server/app.h"
#include "verifier/server/init.h"

namespace {

constexpr int kExitConfig = 2;
constexpr int kExitStart = 3;
constexpr char kVersion[] = "assay-verifier 0.1.0";

int Fail(int code, const assay::Error& error) {
  std::fprintf(stderr, "assay-verifier: %s\n", error.detail.c_str());
  return code;
}

int Init(const assay::server::InitOptions& options) {
  const auto made = assay::server::InitDirectory(options);
  if (!made.ok()) return Fail(kExitConfig, made.error());
  for (const auto& path : *made) std::printf("made %s\n", path.c_str());
  std::printf("next: edit policy.toml, then run: assay-verifier serve --config %s/verifier.toml\n",
              options.directory.c_str());
  return 0;
}

int CheckConfig(const std::string& path) {
  const auto config = assay::config::LoadVerifierConfig(path);
  if (!config.ok()) return Fail(kExitConfig, config.error());
  const auto status = assay::server::CheckConfiguration(*config);
  if (!status.ok()) return Fail(kExitConfig, status.error());
  std::printf("%s: ok\n", path.c_str());
  return 0;
}

int Serve(const std::string& path) {
  // Signals are read from a descriptor by this thread alone; every other thread inherits the mask.
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  const auto config = assay::config::LoadVerifierConfig(path);
  if (!config.ok()) return Fail(kExitConfig, config.error());
  auto app = assay::server::App::Start(*config);
  if (!app.ok()) return Fail(app.error().code == assay::Code::kConfig ? kExitConfig : kExitStart, app.error());
  std::fprintf(stderr, "assay-verifier: listening on %s port %u\n", config->listen_address.c_str(), (*app)->port());
  sd_notify(0, "READY=1");
  for (;;) {
    int signal = 0;
    if (sigwait(&signals, &signal) != 0) continue;
    if (signal != SIGHUP) break;
    sd_notify(0, "RELOADING=1");
    const auto status = (*app)->ReloadPolicy();
    if (status.ok()) std::fprintf(stderr, "assay-verifier: policy reloaded\n");
    else
      std::fprintf(stderr, "assay-verifier: policy not reloaded, the one in force stays: %s\n",
                   status.error().detail.c_str());
    sd_notify(0, "READY=1");
  }
  sd_notify(0, "STOPPING=1");
  std::fprintf(stderr, "assay-verifier: draining\n");
  (*app)->Stop();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App cli{"Checks TPM quotes, appraises them by a policy, records every verdict and issues result tokens."};
  cli.footer(
      "Exit codes: 0 ok, 2 configuration or arguments, 3 could not start.\n"
      "First start: assay-verifier init DIR, edit DIR/policy.toml, assay-verifier serve --config DIR/verifier.toml\n"
      "Signals: SIGHUP reloads the policy, SIGTERM drains and stops.");
  cli.set_version_flag("--version", kVersion);
  std::string check;
  cli.add_option("--check-config", check,
                 "Read this configuration, its policy, keys and certificate, say what is wrong, and exit")
      ->type_name("FILE");

  CLI::App* serve = cli.add_subcommand("serve", "Serve until SIGTERM");
  std::string path = "/etc/assay/verifier.toml";
  serve->add_option("--config", path, "Configuration file")->capture_default_str()->type_name("FILE");

  CLI::App* init = cli.add_subcommand("init", "Make a directory with keys, configuration and a policy to edit");
  assay::server::InitOptions options;
  init->add_option("directory", options.directory, "Directory to make or fill; nothing in it is overwritten")
      ->required();
  init->add_option("--name", options.names, "Names and addresses of the TLS certificate")->capture_default_str();
  init->add_option("--port", options.port, "Port to serve")->capture_default_str();
  init->add_option("--ek-roots", options.ek_roots, "PEM files or directories with TPM manufacturers' roots");
  init->add_option("--audience", options.audience, "The first title's audience")->capture_default_str();
  init->add_flag("--open-enrollment", options.open_enrollment,
                 "Let any machine with a good EK certificate enroll without a token");
  cli.require_subcommand(0, 1);
  try {
    cli.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = cli.exit(error);
    return code == 0 ? 0 : kExitConfig;
  }
  if (!check.empty()) return CheckConfig(check);
  if (*serve) return Serve(path);
  if (*init) return Init(options);
  std::fputs(cli.help().c_str(), stdout);
  return kExitConfig;
}
