// SPDX-License-Identifier: Apache-2.0
#include "sdk/config/verifier_config.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>

#include "sdk/config/document.h"
#include "sdk/config/files.h"

namespace assay::config {
namespace {

constexpr std::size_t kMaxConfigFile = 1U << 20;
constexpr std::uint64_t kMinuteMs = 60'000;
constexpr std::uint64_t kDayMs = 86'400'000;
constexpr std::size_t kMaxIssuer = 256;

std::string PathIn(const std::string& directory, std::string path) {
  return path.empty() || path.front() == '/' ? path : directory + "/" + path;
}

bool IsAddress(const std::string& text) noexcept {
  in6_addr v6{};
  in_addr v4{};
  return ::inet_pton(AF_INET, text.c_str(), &v4) == 1 || ::inet_pton(AF_INET6, text.c_str(), &v6) == 1;
}

bool IsNetwork(const std::string& text) noexcept {
  const std::size_t slash = text.find('/');
  const std::string address = text.substr(0, slash);
  if (!IsAddress(address)) return false;
  if (slash == std::string::npos) return true;
  unsigned bits = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data() + slash + 1, end, bits);
  return error == std::errc() && at == end && bits >= 1 &&
         bits <= (address.find(':') == std::string::npos ? 32U : 128U);
}

// Where the verifier is: it stands in every token, so it is a plain URL.
bool IsIssuer(std::string_view text) noexcept {
  const bool scheme = text.starts_with("https://") || text.starts_with("http://");
  return scheme && text.size() <= kMaxIssuer && text.size() > text.find("://") + 3 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7F && c != '"' && c != '\\'; });
}

void CheckAddresses(Table& root, const VerifierConfig& config) {
  if (!IsIssuer(config.issuer))
    root.Problem("issuer", "\"" + config.issuer + "\" is no URL such as \"https://verifier.example\"");
  if (!IsAddress(config.listen_address))
    root.Problem("listen_address", "\"" + config.listen_address + "\" is no IP address; \"::\" means all of them");
  for (const auto& entry : config.balancers) {
    if (!IsNetwork(entry))
      root.Problem("balancers", "\"" + entry + "\" is neither an IP address nor a network such as \"10.0.0.0/24\"");
  }
}

void ReadLimits(Table table, VerifierConfig& config) {
  config.max_connections = table.Uint("connections", config.max_connections, 1, 1'000'000);
  config.max_connections_per_source =
      table.Uint("connections_per_source", config.max_connections_per_source, 1, 1'000'000);
  config.max_handshakes = table.Uint("handshakes", config.max_handshakes, 1, 100'000);
  config.max_large_bodies = table.Uint("large_bodies", config.max_large_bodies, 1, 10'000);
  config.max_large_bodies_per_source =
      table.Uint("large_bodies_per_source", config.max_large_bodies_per_source, 1, 10'000);
  config.handshake_timeout_ms = table.DurationMs("handshake_timeout", config.handshake_timeout_ms, 100, kMinuteMs);
  config.header_timeout_ms = table.DurationMs("header_timeout", config.header_timeout_ms, 100, kMinuteMs);
  config.body_timeout_ms = table.DurationMs("body_timeout", config.body_timeout_ms, 100, 10 * kMinuteMs);
  config.handler_timeout_ms = table.DurationMs("handler_timeout", config.handler_timeout_ms, 100, 10 * kMinuteMs);
  config.write_timeout_ms = table.DurationMs("write_timeout", config.write_timeout_ms, 100, 10 * kMinuteMs);
  config.idle_timeout_ms = table.DurationMs("idle_timeout", config.idle_timeout_ms, 100, kDayMs);
  config.drain_timeout_ms = table.DurationMs("drain_timeout", config.drain_timeout_ms, 0, 10 * kMinuteMs);
}

void ReadAttestation(Table table, VerifierConfig& config) {
  config.reattest_interval_ms = table.DurationMs("interval", config.reattest_interval_ms, 1'000, kDayMs);
  config.challenge_lifetime_ms =
      table.DurationMs("challenge_lifetime", 2 * config.reattest_interval_ms, 1'000, 2 * kDayMs);
}

void ReadEnrollment(Table table, VerifierConfig& config) {
  config.aik_lifetime_ms = table.DurationMs("aik_lifetime", config.aik_lifetime_ms, kMinuteMs, 365 * kDayMs);
  config.begin_per_source_minute = table.Uint("begin_per_source_minute", config.begin_per_source_minute, 1, 1'000'000);
  config.begin_per_ek_minute = table.Uint("begin_per_ek_minute", 2 * config.begin_per_source_minute, 1, 2'000'000);
  config.begin_global_minute = table.Uint("begin_global_minute", config.begin_global_minute, 1, 10'000'000);
  if (config.begin_per_ek_minute <= config.begin_per_source_minute) {
    table.Problem("begin_per_ek_minute",
                  "must be more than begin_per_source_minute: one source could lock another's EK out");
  }
}

}  // namespace

Result<VerifierConfig> ParseVerifierConfig(std::string_view text, const std::string& name,
                                           const std::string& directory) {
  ASSAY_TRY(Document document, Document::Parse(text, name));
  Table root = document.root();
  VerifierConfig config;
  config.issuer = root.RequiredString("issuer");
  config.listen_address = root.String("listen_address", config.listen_address);
  config.listen_port = static_cast<std::uint16_t>(root.Uint("listen_port", config.listen_port, 0, 65535));
  config.tls_certificate = PathIn(directory, root.RequiredString("tls_certificate"));
  config.tls_key = PathIn(directory, root.RequiredString("tls_key"));
  config.operator_socket = PathIn(directory, root.String("operator_socket", "/run/assay-verifier/operator.sock"));
  config.operator_group = root.String("operator_group", "");
  config.state_dir = PathIn(directory, root.String("state_dir", "/var/lib/assay-verifier"));
  config.keys_dir = PathIn(directory, root.String("keys_dir", "/var/lib/assay-verifier/keys"));
  config.policy = PathIn(directory, root.RequiredString("policy"));
  config.balancers = root.Strings("balancers");
  config.threads = static_cast<unsigned>(root.Uint("threads", 0, 0, 256));
  if (auto table = root.Sub("limits")) ReadLimits(*table, config);
  if (auto table = root.Sub("attestation")) ReadAttestation(*table, config);
  if (auto table = root.Sub("enrollment")) ReadEnrollment(*table, config);
  CheckAddresses(root, config);
  ASSAY_CHECK_OK(document.Finish());
  return config;
}

Result<VerifierConfig> LoadVerifierConfig(const std::string& path) {
  ASSAY_TRY(const std::string text, ReadTextFile(path, kMaxConfigFile));
  const std::size_t slash = path.rfind('/');
  return ParseVerifierConfig(text, path, slash == std::string::npos ? "." : path.substr(0, slash));
}

}  // namespace assay::config
