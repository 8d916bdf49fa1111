// SPDX-License-Identifier: Apache-2.0
#include "sdk/config/relay_config.h"

#include <charconv>

#include "sdk/config/document.h"

namespace assay::config {
namespace {

constexpr std::string_view kScheme = "https://";
constexpr std::size_t kMaxHost = 255;

Error BadUrl(std::string_view url) {
  return MakeError(Code::kConfig, "\"" + std::string(url) + "\" is no verifier address: write https://HOST:PORT");
}

bool IsHostText(std::string_view host) noexcept {
  if (host.empty() || host.size() > kMaxHost) return false;
  for (const char c : host) {
    const bool fine = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
                      c == '-' || c == ':' || c == '_';
    if (!fine) return false;
  }
  return true;
}

}  // namespace

Result<VerifierAddress> ParseVerifierUrl(std::string_view url) {
  if (!url.starts_with(kScheme)) return BadUrl(url);
  std::string_view rest = url.substr(kScheme.size());
  if (rest.ends_with('/')) rest.remove_suffix(1);
  VerifierAddress address;
  std::string_view port;
  if (rest.starts_with('[')) {
    const std::size_t close = rest.find(']');
    if (close == std::string_view::npos) return BadUrl(url);
    address.host = rest.substr(1, close - 1);
    rest.remove_prefix(close + 1);
    if (!rest.empty() && rest[0] != ':') return BadUrl(url);
    port = rest.empty() ? "" : rest.substr(1);
    if (!rest.empty() && port.empty()) return BadUrl(url);
  } else {
    const std::size_t colon = rest.find(':');
    address.host = rest.substr(0, colon);
    if (address.host.find(':') != std::string::npos) return BadUrl(url);
    if (colon != std::string_view::npos) {
      port = rest.substr(colon + 1);
      if (port.empty()) return BadUrl(url);
    }
  }
  if (!IsHostText(address.host)) return BadUrl(url);
  if (port.empty()) return address;
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (error != std::errc() || end != port.data() + port.size() || number == 0 || number > 65535) return BadUrl(url);
  address.port = static_cast<std::uint16_t>(number);
  return address;
}

namespace {

Result<RelayConfig> Read(Document document) {
  RelayConfig config;
  Table root = document.root();
  config.agent_socket = root.String("agent_socket", config.agent_socket);
  const std::string url = root.RequiredString("verifier");
  config.ca_file = root.RequiredString("ca");
  config.server_name = root.String("server_name", "");
  config.request_timeout_ms = root.DurationMs("request_timeout", config.request_timeout_ms, 100, 600'000);
  config.first_backoff_ms = root.DurationMs("first_backoff", config.first_backoff_ms, 10, 600'000);
  config.max_backoff_ms = root.DurationMs("max_backoff", config.max_backoff_ms, 10, 86'400'000);
  config.max_interval_ms = root.DurationMs("max_interval", config.max_interval_ms, 1000, 7 * 86'400'000ULL);
  if (config.max_backoff_ms < config.first_backoff_ms)
    root.Problem("max_backoff", "must not be shorter than first_backoff");
  const auto address = ParseVerifierUrl(url);
  if (address.ok()) {
    config.verifier_host = address->host;
    config.verifier_port = address->port;
  } else if (!url.empty()) {
    root.Problem("verifier", address.error().detail);
  }
  if (config.server_name.empty()) config.server_name = config.verifier_host;
  ASSAY_CHECK_OK(document.Finish());
  return config;
}

}  // namespace

Result<RelayConfig> ParseRelayConfig(std::string_view text, std::string name) {
  ASSAY_TRY(Document document, Document::Parse(text, std::move(name)));
  return Read(std::move(document));
}

Result<RelayConfig> LoadRelayConfig(const std::string& path) {
  ASSAY_TRY(Document document, Document::Load(path));
  return Read(std::move(document));
}

}  // namespace assay::config
