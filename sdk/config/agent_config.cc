// SPDX-License-Identifier: Apache-2.0
#include "sdk/config/agent_config.h"

#include <sys/un.h>

#include "sdk/config/document.h"
#include "sdk/config/files.h"
#include "sdk/core/crypto.h"

namespace assay::config {
namespace {

constexpr std::size_t kMaxFile = 1U << 20;
constexpr std::uint64_t kMaxQuotes = 100'000;
// PCRs that neither locality 0 nor a debugger resets, above the firmware's own.
constexpr std::uint64_t kFirstPcr = 8;
constexpr std::uint64_t kLastPcr = 15;
constexpr char kFirmwareLog[] = "/sys/kernel/security/tpm0/binary_bios_measurements";

void ReadTpm(Table& table, AgentConfig& config) {
  config.tcti = table.String("tcti", config.tcti);
  config.allow_developer_tcti = table.Bool("allow_developer_tcti", false);
  config.pcr = static_cast<std::uint8_t>(table.Uint("pcr", config.pcr, kFirstPcr, kLastPcr));
  // A TPM behind a socket did not measure this machine's firmware, so only a device has a log by default.
  config.firmware_log = table.String("firmware_log", config.tcti.starts_with("device:") ? kFirmwareLog : "");
  if (const Status tcti = CheckTcti(config.tcti, config.allow_developer_tcti); !tcti.ok())
    table.Problem("tcti", tcti.error().detail);
}

void ReadAgent(Table& table, AgentConfig& config) {
  config.socket = table.String("socket", config.socket);
  config.state_dir = table.String("state_dir", config.state_dir);
  config.relay_user = table.String("relay_user", config.relay_user);
  config.max_connections = table.Uint("max_connections", config.max_connections, 4, 4096);
  config.max_connections_per_user = table.Uint("max_connections_per_user", config.max_connections_per_user, 2, 4096);
  config.io_timeout_ms = table.DurationMs("io_timeout", config.io_timeout_ms, 100, 600'000);
  if (config.socket.empty() || config.socket[0] != '/' || config.socket.size() >= sizeof(sockaddr_un::sun_path)) {
    table.Problem("socket", "must be an absolute path of fewer than 108 bytes");
  }
  if (config.state_dir.empty() || config.state_dir[0] != '/') table.Problem("state_dir", "must be an absolute path");
  if (config.relay_user.empty()) table.Problem("relay_user", "must name the user that the relay runs as");
}

void ReadBudget(Table& table, std::string_view name, QuoteBudget& budget) {
  auto sub = table.Sub(name);
  if (!sub) return;
  budget.per_minute = sub->Uint("per_minute", budget.per_minute, 1, kMaxQuotes);
  budget.burst = sub->Uint("burst", budget.burst, 1, kMaxQuotes);
}

Result<AgentConfig> Read(Document document) {
  AgentConfig config;
  Table root = document.root();
  // An absent [tpm] means the device, which has a log.
  if (auto tpm = root.Sub("tpm")) ReadTpm(*tpm, config);
  else config.firmware_log = kFirmwareLog;
  if (auto agent = root.Sub("agent")) ReadAgent(*agent, config);
  if (auto budget = root.Sub("budget")) {
    ReadBudget(*budget, "relay", config.relay);
    ReadBudget(*budget, "user", config.user);
    ReadBudget(*budget, "connection", config.connection);
  }
  ASSAY_CHECK_OK(document.Finish());
  return config;
}

}  // namespace

Status CheckTcti(const std::string& tcti, bool allow_developer) {
  if (tcti.starts_with("device:/dev/") || tcti.starts_with("swtpm:path=/")) return Ok();
  for (const char* known : {"swtpm:", "mssim:", "device:", "tabrmd:"}) {
    if (!tcti.starts_with(known)) continue;
    if (allow_developer) return Ok();
    return MakeError(Code::kConfig, "\"" + tcti +
                                        "\" is a TCTI for developers: use \"device:/dev/tpmrm0\" or "
                                        "\"swtpm:path=/SOCKET\", or set allow_developer_tcti = true");
  }
  return MakeError(
      Code::kConfig,
      "\"" + tcti + "\" is no TCTI this build opens: use \"device:/dev/tpmrm0\" or \"swtpm:path=/SOCKET\"");
}

Result<AgentConfig> ParseAgentConfig(std::string_view text, std::string name) {
  ASSAY_TRY(Document document, Document::Parse(text, std::move(name)));
  ASSAY_TRY(AgentConfig config, Read(std::move(document)));
  config.digest = Sha256(AsBytes(text));
  return config;
}

Result<AgentConfig> LoadAgentConfig(const std::string& path) {
  const auto text = ReadTextFile(path, kMaxFile);
  if (text.ok()) return ParseAgentConfig(*text, path);
  if (text.error().code != Code::kNotFound || path != kDefaultAgentConfig) return text.error();
  ASSAY_TRY(AgentConfig config, ParseAgentConfig("", path));
  config.digest = {};
  return config;
}

}  // namespace assay::config
