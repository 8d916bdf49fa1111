// SPDX-License-Identifier: Apache-2.0
// assay-relay: parses the command line, builds the links, and turns until it is killed. There is nothing to clean up,
// so signals keep their defaults.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <ctime>
#include <string>

#include "agent/relay/relay.h"
#include "sdk/core/crypto.h"
#include "sdk/core/json.h"

namespace {

using namespace assay;

constexpr int kExitConfig = 2;
constexpr int kExitWarning = 3;
constexpr int kExitContraindicated = 4;
constexpr int kExitRefused = 5;
constexpr int kExitVerifier = 6;
constexpr int kExitAgent = 7;

constexpr char kAbout[] =
    "Carries this machine's evidence to an Assay verifier and the verdicts back to assay-agent.\n"
    "Needs no privileges and holds no key: run it as a user of its own that [agent] relay_user names.\n\n"
    "Configuration (TOML; unknown keys are errors):\n"
    "  verifier = \"https://HOST:8443\"         required\n"
    "  ca = \"/etc/assay/verifier-ca.pem\"      required: the only roots that count\n"
    "  server_name = \"HOST\"                   name in the verifier's certificate\n"
    "  agent_socket = \"/run/assay/agent.sock\"\n"
    "  request_timeout = \"30s\"  first_backoff = \"1s\"  max_backoff = \"5m\"  max_interval = \"1h\"\n";

constexpr char kExits[] =
    "Exit codes: 0 affirming (--once) or done; 2 configuration; with --once: 3 warning, 4 contraindicated,\n"
    "5 refused, 6 verifier not reached, 7 agent not reached or without evidence.\n\n"
    "Try: assay-relay --config relay.toml --once --json\n";

std::uint64_t MonotonicMs() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000 + static_cast<std::uint64_t>(now.tv_nsec) / 1'000'000;
}

void Sleep(std::uint64_t ms) {
  const timespec wait{static_cast<time_t>(ms / 1000), static_cast<long>(ms % 1000) * 1'000'000};
  (void)::clock_nanosleep(CLOCK_BOOTTIME, 0, &wait, nullptr);
}

std::uint64_t Random() {
  const auto bytes = RandomArray<8>();
  return Reader(bytes).U64Le();
}

std::string RoundJson(const relay::Round& round) {
  JsonWriter out;
  out.BeginObject();
  out.Name("state").String(relay::StateName(round.state));
  if (round.reply) {
    out.Name("tier").String(TierName(round.reply->tier));
    out.Name("audit_sequence").Uint(round.reply->audit_sequence);
    out.Name("next_in_ms").Uint(round.reply->next_in_ms);
    out.Name("reasons").BeginArray();
    for (const Reason& reason : round.reply->reasons) {
      out.BeginObject();
      out.Name("code").String(reason.code).Name("tier").String(TierName(reason.tier));
      out.Name("detail").String(reason.detail).Name("fix").String(reason.fix);
      out.EndObject();
    }
    out.EndArray();
  } else {
    out.Name("error").BeginObject();
    out.Name("code")
        .String(round.error.code)
        .Name("detail")
        .String(round.error.detail)
        .Name("fix")
        .String(round.error.fix);
    out.EndObject();
  }
  out.EndObject();
  return std::move(out).Take();
}

void PrintRound(const relay::Round& round) {
  if (!round.reply) {
    std::printf("%s: %s: %s\n", std::string(relay::StateName(round.state)).c_str(), round.error.code.c_str(),
                round.error.detail.c_str());
    if (!round.error.fix.empty()) std::printf("  fix: %s\n", round.error.fix.c_str());
    return;
  }
  std::printf("%s (audit record %llu)\n", std::string(TierName(round.reply->tier)).c_str(),
              static_cast<unsigned long long>(round.reply->audit_sequence));
  for (const Reason& reason : round.reply->reasons) {
    std::printf("  %s [%s]: %s\n", reason.code.c_str(), std::string(TierName(reason.tier)).c_str(),
                reason.detail.c_str());
    if (!reason.fix.empty()) std::printf("    fix: %s\n", reason.fix.c_str());
  }
}

int ExitCodeOf(const relay::Round& round) {
  switch (round.state) {
    case relay::State::kConnected: break;
    case relay::State::kRefused: return kExitRefused;
    case relay::State::kVerifierUnavailable: return kExitVerifier;
    case relay::State::kBackingOff:
    case relay::State::kAgentUnavailable: return kExitAgent;
  }
  switch (round.reply->tier) {
    case Tier::kAffirming: return 0;
    case Tier::kWarning: return kExitWarning;
    case Tier::kContraindicated: return kExitContraindicated;
    case Tier::kNone: return kExitRefused;
  }
  return kExitRefused;
}

struct Options {
  std::string config = config::kDefaultRelayConfig;
  bool once = false, json = false, check = false;
};

int Run(const Options& options) {
  const auto loaded = config::LoadRelayConfig(options.config);
  if (!loaded.ok()) {
    std::fprintf(stderr, "assay-relay: %s\n", loaded.error().ToString().c_str());
    return kExitConfig;
  }
  auto verifier = relay::MakeVerifierLink(*loaded);
  if (!verifier.ok()) {
    std::fprintf(stderr, "assay-relay: %s\n", verifier.error().ToString().c_str());
    return kExitConfig;
  }
  if (options.check) {
    std::printf("%s is fine\n", options.config.c_str());
    return 0;
  }
  const auto agent = relay::MakeAgentLink(loaded->agent_socket);
  relay::Relay relay({agent.get(), verifier->get(), *loaded,
                      [](const std::string& line) { std::fprintf(stderr, "assay-relay: %s\n", line.c_str()); },
                      MonotonicMs, Sleep, Random, [] { return static_cast<std::uint64_t>(std::time(nullptr)); }});
  if (!options.once) {
    for (;;) relay.Turn();
  }
  const relay::Round round = relay.AttestOnce(0);
  if (options.json) std::printf("%s\n", RoundJson(round).c_str());
  else PrintRound(round);
  return ExitCodeOf(round);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{kAbout, "assay-relay"};
  app.footer(kExits);
  app.set_version_flag("--version", std::string("assay-relay ") + ASSAY_VERSION);
  app.add_option("-c,--config", options.config, "configuration file")->capture_default_str();
  app.add_flag("--once", options.once, "attest once, print the answer, and exit by its tier");
  app.add_flag("--json", options.json, "with --once: print JSON");
  app.add_flag("--check-config", options.check, "read the configuration and the CA file, and exit");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : kExitConfig;
  }
  return Run(options);
}
