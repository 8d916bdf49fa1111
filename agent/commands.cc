// SPDX-License-Identifier: Apache-2.0
#include "agent/commands.h"

#include <cstdio>

#include "agent/daemon.h"
#include "agent/doctor.h"
#include "agent/local/client.h"
#include "agent/platform/platform_claims.h"
#include "sdk/core/json.h"

namespace assay::agent {
namespace {

constexpr std::uint64_t kTimeoutMs = 60'000;
constexpr std::size_t kMaxJson = 1U << 20;

void Complain(const Error& error) { std::fprintf(stderr, "assay-agent: %s\n", error.ToString().c_str()); }

std::string Scalar(const JsonValue& value) {
  switch (value.kind()) {
    case JsonKind::kString: return std::string(*value.String());
    case JsonKind::kInteger: return std::to_string(value.Int().value_or(0));
    case JsonKind::kBool: return *value.Bool() ? "yes" : "no";
    default: return "none";
  }
}

// One line a value, indented by depth: for people.
void PrintValue(const JsonValue& value, const std::string& name, int depth) {
  const std::string indent(static_cast<std::size_t>(depth) * 2, ' ');
  if (value.kind() == JsonKind::kObject) {
    if (!name.empty()) std::printf("%s%s\n", indent.c_str(), name.c_str());
    (void)value.EachMember([depth, &name](std::string_view member, JsonValue inner) {
      PrintValue(inner, std::string(member), name.empty() ? depth : depth + 1);
      return true;
    });
  } else if (value.kind() == JsonKind::kArray) {
    bool empty = true;
    (void)value.EachElement([&](JsonValue inner) {
      PrintValue(inner, inner.kind() == JsonKind::kObject ? name + " -" : name, depth);
      empty = false;
      return true;
    });
    if (empty) std::printf("%s%s: none\n", indent.c_str(), name.c_str());
  } else {
    std::printf("%s%s: %s\n", indent.c_str(), name.c_str(), Scalar(value).c_str());
  }
}

int Print(std::string_view json, bool as_json) {
  if (as_json) {
    std::printf("%.*s\n", static_cast<int>(json.size()), json.data());
    return 0;
  }
  JsonParser parser(kMaxJson);
  const auto value = parser.Parse(json);
  if (!value.ok()) {
    Complain(value.error());
    return kExitFailed;
  }
  PrintValue(*value, "", 0);
  return 0;
}

Result<local::Reply> Ask(const std::string& socket, const local::Request& request) {
  ASSAY_TRY(local::Client client, local::Client::Connect(socket));
  return client.Call(request, kTimeoutMs);
}

// Asks the running agent and prints what it says.
int AskAndPrint(const CommandOptions& options, const local::Request& request) {
  const auto config = config::LoadAgentConfig(options.config);
  if (!config.ok()) {
    Complain(config.error());
    return kExitUsage;
  }
  const auto reply = Ask(config->socket, request);
  if (!reply.ok()) {
    Complain(reply.error());
    return reply.error().code == Code::kUnavailable ? kExitNoAgent : kExitFailed;
  }
  if (!reply->ok) {
    std::fprintf(stderr, "assay-agent: %s: %s%s%s\n", reply->error.code.c_str(), reply->error.detail.c_str(),
                 reply->error.fix.empty() ? "" : "; ", reply->error.fix.c_str());
    return kExitFailed;
  }
  return Print(AsText(reply->payload), options.json);
}

void PrintFinding(std::string_view check, bool fine, std::string_view detail, std::string_view fix) {
  std::printf("%-8s %-13.*s %.*s\n", fine ? "ok" : "problem", static_cast<int>(check.size()), check.data(),
              static_cast<int>(detail.size()), detail.data());
  if (!fine) std::printf("         fix: %.*s\n", static_cast<int>(fix.size()), fix.data());
}

int PrintFindings(std::string_view json, bool as_json) {
  JsonParser parser(kMaxJson);
  const auto value = parser.Parse(json);
  if (!value.ok()) {
    Complain(value.error());
    return kExitFailed;
  }
  if (as_json) std::printf("%.*s\n", static_cast<int>(json.size()), json.data());
  bool all_fine = false;
  (void)value->EachMember([&](std::string_view name, JsonValue member) {
    if (name == "ok") all_fine = member.Bool().value_or(false);
    if (name != "findings" || as_json) return true;
    return member.EachElement([](JsonValue finding) {
      std::string_view check, detail, fix;
      bool fine = false;
      (void)finding.EachMember([&](std::string_view key, JsonValue part) {
        if (key == "check") check = part.String().value_or("");
        if (key == "detail") detail = part.String().value_or("");
        if (key == "fix") fix = part.String().value_or("");
        if (key == "ok") fine = part.Bool().value_or(false);
        return true;
      });
      PrintFinding(check, fine, detail, fix);
      return true;
    });
  });
  return all_fine ? 0 : kExitProblem;
}

std::vector<Finding> ExamineHere(const config::AgentConfig& config) {
  auto device = tpm::OpenDevice(config.tcti);
  if (!device.ok()) {
    return {
        {"tpm", false, device.error().ToString(),
         "check that the TPM is enabled in the firmware, that this user may open it, and tcti in the configuration"}};
  }
  return Examine({device->get(), config, nullptr, {}});
}

}  // namespace

int CheckConfig(const CommandOptions& options) {
  const auto config = config::LoadAgentConfig(options.config);
  if (!config.ok()) {
    Complain(config.error());
    return kExitUsage;
  }
  std::printf("%s is fine: TPM %s, socket %s, state %s\n", options.config.c_str(), config->tcti.c_str(),
              config->socket.c_str(), config->state_dir.c_str());
  return 0;
}

int ShowStatus(const CommandOptions& options) { return AskAndPrint(options, local::StatusRequest{}); }

int ShowEvidence(const CommandOptions& options) { return AskAndPrint(options, local::ShowEvidenceRequest{}); }

// A running agent examines itself (a TPM behind a socket serves one client at a time); else this process looks.
int RunDoctor(const CommandOptions& options) {
  const auto config = config::LoadAgentConfig(options.config);
  if (!config.ok()) {
    Complain(config.error());
    return kExitUsage;
  }
  const auto reply = Ask(config->socket, local::DoctorRequest{});
  if (reply.ok() && reply->ok) return PrintFindings(AsText(reply->payload), options.json);
  if (reply.ok() || reply.error().code != Code::kUnavailable) {
    Complain(reply.ok() ? MakeError(Code::kDenied, reply->error.code + ": " + reply->error.detail) : reply.error());
    return kExitFailed;
  }
  return PrintFindings(FindingsJson(ExamineHere(*config)), options.json);
}

int RunAgent(const CommandOptions& options) {
  const auto config = config::LoadAgentConfig(options.config);
  if (!config.ok()) {
    Complain(config.error());
    return kExitUsage;
  }
  auto device = tpm::OpenDevice(config->tcti);
  if (!device.ok()) {
    Complain(device.error());
    return kExitFailed;
  }
  DaemonParts parts;
  parts.config = *config;
  parts.config_path = options.config;
  parts.device = std::move(device).value();
  parts.gate = std::make_unique<AbsentGate>();
  parts.log = [](const std::string& line) { std::fprintf(stderr, "assay-agent: %s\n", line.c_str()); };
  const Status ran = RunDaemon(std::move(parts));
  if (ran.ok()) return 0;
  Complain(ran.error());
  return kExitFailed;
}

}  // namespace assay::agent
