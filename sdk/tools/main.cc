// SPDX-License-Identifier: Apache-2.0
// assay-fake-attester: test mode without a TPM. Its tokens are marked as tests and refused unless a server opts in.
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <iterator>

#include "sdk/include/assay/version.h"
#include "sdk/tools/fake_agent.h"

namespace assay::tools {
namespace {

std::atomic<bool> stop_asked{false};
static_assert(std::atomic<bool>::is_always_lock_free);  // set from a signal handler

struct Arguments {
  std::string keys, issuer = "https://test.assay.invalid", audience, match, nonce, key_hash, out, socket,
                    tier = "affirming";
  std::int64_t lifetime_s = 120;
  std::uint64_t sequence = 0;
  bool no_host = false, heartbeat = false;
};

std::int64_t NowMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// A key kept in a file, made on first use.
Result<PrivateKey> KeyFile(const std::string& path, KeyType type) {
  std::ifstream in(path, std::ios::binary);
  if (in) {
    const std::string pem((std::istreambuf_iterator<char>(in)), {});
    return PrivateKey::FromPem(pem);
  }
  ASSAY_TRY(PrivateKey key, PrivateKey::Generate(type));
  const mode_t before = ::umask(0077);
  std::ofstream out(path, std::ios::binary);
  (void)::umask(before);
  out << AsText(key.Pem().view());
  if (!out.flush()) return MakeError(Code::kIo, "cannot write " + path + ": does its directory exist?");
  return key;
}

Result<SoftAttester> Load(const std::string& dir) {
  ASSAY_TRY(PrivateKey signer, KeyFile(dir + "/test-signer.pem", KeyType::kP256));
  ASSAY_TRY(PrivateKey aik, KeyFile(dir + "/test-aik.pem", KeyType::kRsa2048));
  return SoftAttester::Make({std::move(signer), std::move(aik)});
}

Result<Digest> HexDigest(const std::string& text, const char* option) {
  const auto bytes = FromHex(text);
  if (!bytes.ok() || bytes->size() != kSha256Size)
    return MakeError(Code::kConfig, std::string(option) + " takes 64 hexadecimal digits");
  return ToDigest(*bytes);
}

Result<Tier> TierFrom(const std::string& name) {
  for (const Tier tier : {Tier::kNone, Tier::kAffirming, Tier::kWarning, Tier::kContraindicated})
    if (TierName(tier) == name) return tier;
  return MakeError(Code::kConfig, "--tier is none, affirming, warning or contraindicated");
}

Status Emit(const std::string& path, Bytes data) {
  if (path.empty()) {
    if (std::fwrite(data.data(), 1, data.size(), stdout) != data.size())
      return MakeError(Code::kIo, "cannot write to standard output");
    return Ok();
  }
  std::ofstream out(path, std::ios::binary);
  out << AsText(data);
  if (!out.flush()) return MakeError(Code::kIo, "cannot write " + path);
  return Ok();
}

Status Jwks(const Arguments& args) {
  ASSAY_TRY(const SoftAttester attester, Load(args.keys));
  ASSAY_TRY(const std::string jwks, attester.Jwks());
  return Emit(args.out, AsBytes(jwks + "\n"));
}

Status ResultToken(const Arguments& args) {
  ASSAY_TRY(const SoftAttester attester, Load(args.keys));
  ASSAY_TRY(const Digest nonce, HexDigest(args.nonce, "--nonce"));
  ASSAY_TRY(const Digest key_hash, HexDigest(args.key_hash, "--session-key-hash"));
  ASSAY_TRY(const Tier tier, TierFrom(args.tier));
  ASSAY_TRY(const std::string token, attester.Sign(attester.Claims({.issuer = args.issuer,
                                                                    .audience = args.audience,
                                                                    .match = args.match,
                                                                    .server_nonce = nonce,
                                                                    .session_key_hash = key_hash,
                                                                    .now_ms = NowMs(),
                                                                    .lifetime_s = args.lifetime_s,
                                                                    .tier = tier,
                                                                    .host_tokens = !args.no_host})));
  return Emit(args.out, AsBytes(token));
}

Status HostTokenCommand(const Arguments& args) {
  ASSAY_TRY(const SoftAttester attester, Load(args.keys));
  ASSAY_TRY(const Digest nonce, HexDigest(args.nonce, "--nonce"));
  ASSAY_TRY(const Digest key_hash, HexDigest(args.key_hash, "--session-key-hash"));
  ASSAY_TRY(const Buffer token, attester.MakeHostToken({.server_nonce = nonce,
                                                        .session_key_hash = key_hash,
                                                        .now_ms = NowMs(),
                                                        .heartbeat = args.heartbeat,
                                                        .sequence = args.sequence}));
  return Emit(args.out, token);
}

Status Serve(const Arguments& args) {
  ASSAY_TRY(SoftAttester attester, Load(args.keys));
  ASSAY_TRY(const Tier tier, TierFrom(args.tier));
  ASSAY_TRY(const Fd listener, ListenUnix(args.socket));
  struct sigaction action {};
  action.sa_handler = [](int) { stop_asked.store(true); };
  (void)::sigaction(SIGTERM, &action, nullptr);
  (void)::sigaction(SIGINT, &action, nullptr);
  const FakeAgent agent(
      std::move(attester),
      {.issuer = args.issuer, .lifetime_s = args.lifetime_s, .tier = tier, .host_tokens = !args.no_host});
  Status status = agent.Serve(listener, stop_asked);
  (void)std::remove(args.socket.c_str());
  return status;
}

void AddToken(CLI::App& command, Arguments& args) {
  command.add_option("--nonce", args.nonce, "The server's nonce, 64 hexadecimal digits")->required();
  command
      .add_option("--session-key-hash", args.key_hash,
                  "SHA-256 of the channel key's SubjectPublicKeyInfo, 64 hexadecimal digits")
      ->required();
  command.add_option("--out", args.out, "Write to this file instead of standard output");
}

void AddIssue(CLI::App& command, Arguments& args) {
  command.add_option("--issuer", args.issuer, "iss of the tokens")->capture_default_str();
  command.add_option("--lifetime", args.lifetime_s, "Seconds until a result ends")
      ->check(CLI::Range(1, 86400))
      ->capture_default_str();
  command.add_option("--tier", args.tier, "none, affirming, warning or contraindicated")->capture_default_str();
  command.add_flag("--no-host-tokens", args.no_host, "Results without what host tokens need");
}

}  // namespace
}  // namespace assay::tools

int main(int argc, char** argv) {
  using namespace assay::tools;
  CLI::App app{
      "assay-fake-attester: a verifier and an agent in one, WITHOUT a TPM, for developing and testing.\n"
      "Every result is marked as a test; servers refuse it unless they set allow_test.\n\n"
      "  mkdir keys && assay-fake-attester jwks --keys keys --out jwks.json\n"
      "  assay-fake-attester serve --keys keys --socket ./agent.sock\n"};
  app.set_version_flag("--version", ASSAY_VERSION_STRING);
  app.require_subcommand(1);
  Arguments args;
  const auto add = [&](const char* name, const char* text) {
    CLI::App* command = app.add_subcommand(name, text);
    command->add_option("--keys", args.keys, "Directory of the test keys; made there on first use")
        ->required()
        ->check(CLI::ExistingDirectory);
    return command;
  };
  CLI::App* jwks = add("jwks", "Print the key set that servers verify with");
  jwks->add_option("--out", args.out, "Write to this file instead of standard output");
  CLI::App* result = add("result-token", "Print a result token");
  AddToken(*result, args);
  AddIssue(*result, args);
  result->add_option("--audience", args.audience, "The title")->required();
  result->add_option("--match", args.match, "The server's match");
  CLI::App* host = add("host-token", "Print a host token (bytes)");
  AddToken(*host, args);
  host->add_flag("--heartbeat", args.heartbeat, "The answer to a heartbeat challenge");
  host->add_option("--sequence", args.sequence, "Of that challenge");
  CLI::App* serve = add("serve", "Answer games on a local socket as assay-agent would, until SIGTERM");
  AddIssue(*serve, args);
  serve->add_option("--socket", args.socket, "Path of the socket")->required();
  CLI11_PARSE(app, argc, argv);

  const assay::Status status = jwks->parsed()     ? Jwks(args)
                               : result->parsed() ? ResultToken(args)
                               : host->parsed()   ? HostTokenCommand(args)
                                                  : Serve(args);
  if (status.ok()) return 0;
  std::fprintf(stderr, "assay-fake-attester: %s\n", status.error().ToString().c_str());
  return 1;
}
