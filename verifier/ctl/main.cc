// SPDX-License-Identifier: Apache-2.0
// assayctl: an operator's tool. Parses options, calls one command, prints what it returned.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>
#include <iostream>

#include "verifier/ctl/commands.h"
#include "verifier/server/operator_api.h"

namespace {

using namespace assay;
using namespace assay::ctl;

constexpr char kAbout[] =
    "Speaks to a running assay-verifier over its local operator socket, and checks policies and audit trails offline.\n"
    "\n"
    "  assayctl hosts list\n"
    "  assayctl hosts explain 3f9a1c20            why the newest verdict is what it is, and what to do\n"
    "  assayctl policy check policy.toml\n"
    "  assayctl audit verify /var/lib/assay-verifier/audit --key audit.key\n"
    "  assayctl audit export /var/lib/assay-verifier/audit --key audit.key --from 1000 --to 2000\n"
    "\n"
    "A HOST is its id, or at least 8 digits that begin exactly one. Every change needs --reason and is in the audit\n"
    "trail before it is answered; so is every read of host data.";

constexpr char kExits[] =
    "Exit status: 0 done; 1 internal error; 2 options; 3 not found; 4 no verifier at the socket; 5 refused by the\n"
    "verifier; 6 the policy or the trail that was checked is not good; 9 not implemented in this verifier.";

struct Options {
  std::string socket = operator_api::kDefaultSocket;
  bool json = false;
  std::string host, other, reason, path, key, ttl = "24h";
  unsigned limit = 10;
  std::uint64_t from = 1, to = UINT64_MAX;
};

// What the command line chose; runs after parsing.
using Action = std::function<Outcome<Shown>(const Options&)>;
using Online = std::function<Outcome<Shown>(OperatorClient&, const Options&)>;

bool ToOutput(std::string_view line) { return std::fwrite(line.data(), 1, line.size(), stdout) == line.size(); }

Action OverSocket(Online online) {
  return [online = std::move(online)](const Options& o) { return online(*ConnectOperator(o.socket), o); };
}

void AddReason(CLI::App* command, Options& o) {
  command->add_option("--reason", o.reason, "why; one line for the audit trail")->required();
}
void AddHost(CLI::App* command, Options& o) {
  command->add_option("host", o.host, "host id or its beginning")->required();
}

void AddHosts(CLI::App& app, Options& o, Action& action) {
  CLI::App* hosts = app.add_subcommand("hosts", "the machines that are enrolled");
  hosts->require_subcommand(1);
  hosts->add_subcommand("list", "all hosts")->callback([&] {
    action = OverSocket([](OperatorClient& c, const Options&) { return HostsList(c); });
  });
  CLI::App* show = hosts->add_subcommand("show", "one host and its last verdict");
  AddHost(show, o);
  show->callback(
      [&] { action = OverSocket([](OperatorClient& c, const Options& with) { return HostsShow(c, with.host); }); });
  CLI::App* explain = hosts->add_subcommand("explain", "the newest verdicts with their reasons and fixes");
  AddHost(explain, o);
  explain->add_option("--limit", o.limit, "how many verdicts (default 10)")
      ->check(CLI::Range(1U, static_cast<unsigned>(operator_api::kVerdictLimit)));
  explain->callback([&] {
    action = OverSocket([](OperatorClient& c, const Options& with) { return HostsExplain(c, with.host, with.limit); });
  });
  CLI::App* forget = hosts->add_subcommand("forget", "delete a host, its AIKs and verdicts; it must enroll again");
  AddHost(forget, o), AddReason(forget, o);
  forget->callback([&] {
    action = OverSocket([](OperatorClient& c, const Options& with) { return HostsForget(c, with.host, with.reason); });
  });
  CLI::App* accept = hosts->add_subcommand("accept-reset",
                                           "allow a host's TPM counters to start over, once (after a TPM was cleared)");
  AddHost(accept, o), AddReason(accept, o);
  accept->callback([&] {
    action =
        OverSocket([](OperatorClient& c, const Options& with) { return HostsAcceptReset(c, with.host, with.reason); });
  });
  CLI::App* replace = hosts->add_subcommand("replace", "a new board took an old one's place");
  replace->add_option("old", o.host, "the host that is gone")->required();
  replace->add_option("new", o.other, "the host that took its place, enrolled already")->required();
  AddReason(replace, o);
  replace->callback([&] {
    action = OverSocket(
        [](OperatorClient& c, const Options& with) { return HostsReplace(c, with.host, with.other, with.reason); });
  });
}

void AddOthers(CLI::App& app, Options& o, Action& action) {
  CLI::App* policy = app.add_subcommand("policy", "the appraisal policy");
  policy->require_subcommand(1);
  CLI::App* check = policy->add_subcommand("check", "read a policy file as the verifier would; needs no verifier");
  check->add_option("file", o.path, "policy in TOML")->required();
  check->callback([&] { action = [](const Options& with) { return PolicyCheck(with.path); }; });
  CLI::App* reload = policy->add_subcommand(
      "reload", "have the verifier read its policy file again; a bad one keeps the old in force");
  AddReason(reload, o);
  reload->callback([&] {
    action = OverSocket([](OperatorClient& c, const Options& with) { return PolicyReload(c, with.reason); });
  });
  CLI::App* audit = app.add_subcommand("audit", "the audit trail");
  audit->require_subcommand(1);
  CLI::App* verify = audit->add_subcommand("verify", "verify a trail's chain; needs no verifier");
  verify->add_option("directory", o.path, "the trail's directory")->required();
  verify->add_option("--key", o.key, "the trail's key file (default: the one beside the trail)");
  verify->callback([&] { action = [](const Options& with) { return AuditVerify(with.path, with.key); }; });
  const auto add_source = [&o](CLI::App* command) {
    command->add_option("directory", o.path, "the trail's directory")->required();
    command->add_option("--key", o.key, "the trail's key file (default: the one beside the trail)");
  };
  CLI::App* tail = audit->add_subcommand("tail", "the last records, verified, one JSON object a line");
  add_source(tail);
  tail->add_option("-n,--lines", o.limit, "how many (default 10)")->check(CLI::Range(1U, 100'000U));
  tail->callback([&] { action = [](const Options& with) { return AuditTail({with.path, with.key}, with.limit); }; });
  CLI::App* xport = audit->add_subcommand("export", "verified records to standard output, one JSON object a line");
  add_source(xport);
  xport->add_option("--from", o.from, "first sequence");
  xport->add_option("--to", o.to, "last sequence");
  xport->callback([&] {
    action = [](const Options& with) { return AuditExport({with.path, with.key}, {with.from, with.to}, ToOutput); };
  });
  CLI::App* tokens = app.add_subcommand("tokens", "enrollment tokens");
  tokens->require_subcommand(1);
  CLI::App* create = tokens->add_subcommand("create-enrollment", "a one-time token for one enrollment, shown once");
  create->add_option("--ttl", o.ttl, "how long it can be used: 30m, 24h (default), 7d");
  AddReason(create, o);
  create->callback([&] {
    action = [](const Options& with) -> Outcome<Shown> {
      const Result<std::int64_t> ttl = SecondsFromText(with.ttl);
      if (!ttl.ok()) return Failure{Exit::kUsage, "ttl_malformed", ttl.error().detail, ""};
      return TokensCreate(*ConnectOperator(with.socket), *ttl, with.reason);
    };
  });
  CLI::App* revoke = app.add_subcommand("revoke", "put a result token or a device id on the signed revocation list");
  revoke->add_option("kind", o.host, "token (its jti) or device (a title's device id)")
      ->required()
      ->check(CLI::IsMember({"token", "device"}));
  revoke->add_option("value", o.other, "the id as result tokens carry it")->required();
  revoke->add_option("--ttl", o.ttl, "how long it stands on the list: 24h (default), 30d");
  AddReason(revoke, o);
  revoke->callback([&] {
    action = [](const Options& with) -> Outcome<Shown> {
      const Result<std::int64_t> ttl = SecondsFromText(with.ttl);
      if (!ttl.ok()) return Failure{Exit::kUsage, "ttl_malformed", ttl.error().detail, ""};
      return Revoke(*ConnectOperator(with.socket), with.host, with.other, *ttl, with.reason);
    };
  });
  app.add_subcommand("status", "how the verifier is")->callback([&] {
    action = OverSocket([](OperatorClient& c, const Options&) { return ShowStatus(c); });
  });
}

int Print(const Options& o, const Outcome<Shown>& outcome) {
  if (const auto* failure = std::get_if<Failure>(&outcome)) {
    std::fprintf(stderr, "%s\n", FailureText(*failure).c_str());
    if (o.json) std::printf("%s\n", FailureJson(*failure).dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
    return static_cast<int>(failure->exit);
  }
  const auto& shown = std::get<Shown>(outcome);
  if (shown.json.is_null()) {  // it was written as it was found
    if (std::fflush(stdout) == 0) return static_cast<int>(shown.exit);
    std::fprintf(stderr, "the output could not be written\n");
    return static_cast<int>(Exit::kInternal);
  }
  std::printf("%s", o.json ? (shown.json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n").c_str()
                           : shown.text.c_str());
  return static_cast<int>(shown.exit);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{kAbout, "assayctl"};
  app.footer(kExits);
  app.set_version_flag("--version", "assayctl " ASSAY_VERSION);
  app.require_subcommand(1);
  app.fallthrough();
  Options options;
  Action action;
  app.add_option("--socket", options.socket, "the verifier's operator socket (default " + options.socket + ")");
  app.add_flag("--json", options.json, "print one JSON object");
  AddHosts(app, options, action);
  AddOthers(app, options, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : static_cast<int>(Exit::kUsage);
  }
  return Print(options, action(options));
}
