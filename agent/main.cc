// SPDX-License-Identifier: Apache-2.0
// assay-agent: parses the command line and hands over to the rooms.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "agent/commands.h"

namespace {

using namespace assay::agent;

constexpr char kAbout[] =
    "The privileged half of an Assay endpoint: owns the TPM and the runtime log, and answers games and the relay on a\n"
    "local socket. Without a command it runs as a daemon (systemd: Type=notify). It opens no network socket.\n";

constexpr char kMore[] =
    "First steps on a machine with a TPM:\n"
    "  assay-agent doctor                 is everything it stands on well?\n"
    "  assay-enroll enroll ...            once, to make this machine known to a verifier\n"
    "  systemctl start assay-agent assay-relay\n"
    "  assay-agent status                 who we are, the last verdict, and what to do about it\n\n"
    "Configuration: TOML at /etc/assay/agent.toml, defaults when it is not there; unknown keys are errors.\n"
    "  [tpm]    tcti = \"device:/dev/tpmrm0\" | \"swtpm:path=/SOCKET\", pcr = 14, firmware_log, allow_developer_tcti\n"
    "  [agent]  socket, state_dir, relay_user, max_connections, max_connections_per_user, io_timeout\n"
    "  [budget.relay] [budget.user] [budget.connection]  per_minute, burst: quotes\n"
    "SIGHUP reads it again; [tpm], socket and state_dir wait for a restart.\n\n"
    "Not in this version: run, explain, policy and release belong to the execution gate, which evidence reports as\n"
    "`absent`. They answer `not implemented` and exit 69.\n\n"
    "Exit codes: 0 fine; 1 failed (the message names cause and fix); 2 command line or configuration; 3 doctor found "
    "a\n"
    "problem; 7 no agent answers at the socket; 69 not implemented.\n";

}  // namespace

int main(int argc, char** argv) {
  CommandOptions options;
  CLI::App app{kAbout, "assay-agent"};
  app.footer(kMore);
  app.set_version_flag("--version", std::string("assay-agent ") + ASSAY_VERSION);
  app.add_option("-c,--config", options.config, "configuration file")->capture_default_str();
  bool check = false;
  app.add_flag("--check-config", check, "read the configuration with the daemon's own parser, and exit");
  app.require_subcommand(0, 1);

  auto* status = app.add_subcommand("status", "ask the running agent how things stand");
  status->add_flag("--json", options.json, "print JSON");
  auto* doctor = app.add_subcommand("doctor", "check TPM, clock, PCR bank, runtime log and AIK; names each fix");
  doctor->add_flag("--json", options.json, "print JSON");
  auto* evidence = app.add_subcommand("evidence", "look at the evidence this machine would send");
  bool show = false;
  evidence->add_flag("--show", show, "make evidence over a nonce of zeros, which no verifier accepts, and print it")
      ->required();
  evidence->add_flag("--json", options.json, "print JSON on one line");
  std::string missing;
  for (const char* name : {"run", "explain", "policy", "release"}) {
    auto* command = app.add_subcommand(name, "not implemented: belongs to the execution gate");
    command->allow_extras();
    command->callback([&missing, name] { missing = name; });
  }
  for (auto* command : {status, doctor, evidence})
    command->add_option("-c,--config", options.config, "configuration file");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : kExitUsage;
  }
  if (!missing.empty()) {
    std::fprintf(stderr, "assay-agent %s: not implemented in this version: the execution gate is absent\n",
                 missing.c_str());
    return kExitNotImplemented;
  }
  if (check) return CheckConfig(options);
  if (status->parsed()) return ShowStatus(options);
  if (doctor->parsed()) return RunDoctor(options);
  if (evidence->parsed()) return ShowEvidence(options);
  return RunAgent(options);
}
