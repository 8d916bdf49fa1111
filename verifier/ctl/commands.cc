// SPDX-License-Identifier: Apache-2.0
// Commands that speak to the verifier. The reply is another program's: members are taken with checks.
#include "verifier/ctl/commands.h"

#include <charconv>

#include "verifier/ctl/table.h"
#include "verifier/server/operator_api.h"

namespace assay::ctl {
namespace {

namespace api = operator_api;

constexpr std::size_t kMaxPages = 10'000;
constexpr std::size_t kShortId = 16;

const Json& Member(const Json& object, const char* name) {
  static const Json kNothing = nullptr;
  return object.is_object() && object.contains(name) ? object[name] : kNothing;
}
std::string Text(const Json& object, const char* name) {
  const Json& value = Member(object, name);
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_integer()) return std::to_string(value.get<std::int64_t>());
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  return "-";
}
std::string Time(const Json& object, const char* name, std::int64_t divisor) {
  const Json& value = Member(object, name);
  return value.is_number_integer() ? TimeText(value.get<std::int64_t>() / divisor) : "-";
}

// Hosts and reasons become a path: only what an id can hold may stand there.
Outcome<std::string> HostPath(const std::string& host, const char* action) {
  const bool hex = host.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos;
  if (!hex || host.size() < api::kShortestPrefix || host.size() > 64) {
    return Failure{Exit::kUsage, "host_malformed",
                   "\"" + Clean(host) + "\" names no host: give 64 hexadecimal digits, or at least 8 that begin its id",
                   "see `assayctl hosts list`"};
  }
  return std::string(api::kHosts) + "/" + host + action;
}

Outcome<Shown> Change(OperatorClient& client, const Outcome<std::string>& path, const Json& body,
                      const std::string& done) {
  if (const auto* failure = std::get_if<Failure>(&path)) return *failure;
  Outcome<Json> reply = Ask(client, "POST", std::get<std::string>(path), body);
  if (auto* failure = std::get_if<Failure>(&reply)) return std::move(*failure);
  return Shown{std::move(std::get<Json>(reply)), done + "\n"};
}

std::string HostText(const Json& host) {
  std::string out;
  const auto line = [&](std::string_view name, const std::string& value) {
    out += name;
    out.append(16 - name.size(), ' ');
    out += Clean(value) + "\n";
  };
  line("host", Text(host, "host_id"));
  line("label", Text(host, "label"));
  line("EK", Text(host, "ek_class") + ", " + Text(host, "ek_spki_sha256"));
  line("device id", Text(host, "device_id_strength"));
  line("enrolled", Time(host, "enrolled_at", 1));
  line("AIK generation", Text(host, "generation"));
  line("state",
       Text(host, "state") + (Member(host, "replaced_by").is_string() ? " by " + Text(host, "replaced_by") : ""));
  line("reset accepted", Text(host, "reset_accepted"));
  return out;
}

std::string VerdictText(const Json& verdict) {
  std::string out = Time(verdict, "at_ms", 1000) + "  " + Clean(Text(verdict, "outcome")) + "  " +
                    Clean(Text(verdict, "tier")) + "  (audit " + Text(verdict, "audit_sequence") + ")\n";
  const Json& reasons = Member(verdict, "reasons");
  if (!reasons.is_array()) return out;
  for (const Json& reason : reasons) {
    out += "  " + Clean(Text(reason, "code")) + " [" + Clean(Text(reason, "tier")) +
           "]: " + Clean(Text(reason, "detail")) + "\n";
    const std::string fix = Text(reason, "fix");
    if (!fix.empty() && fix != "-") out += "    fix: " + Clean(fix) + "\n";
  }
  return out;
}

}  // namespace

Outcome<Shown> HostsList(OperatorClient& client) {
  Json hosts = Json::array();
  std::string after;
  for (std::size_t page = 0; page < kMaxPages; ++page) {
    Outcome<Json> reply = Ask(client, "GET",
                              std::string(api::kHosts) + "?limit=" + std::to_string(api::kPageLimit) +
                                  (after.empty() ? "" : "&after=" + after),
                              nullptr);
    if (auto* failure = std::get_if<Failure>(&reply)) return std::move(*failure);
    const Json& json = std::get<Json>(reply);
    const Json& items = Member(json, "hosts");
    if (!items.is_array()) return Failure{Exit::kInternal, "reply_malformed", "the verifier's list holds no hosts", ""};
    for (const Json& host : items) hosts.push_back(host);
    const Json& next = Member(json, "next");
    if (!next.is_string() || next.get<std::string>() == after) break;
    after = next.get<std::string>();
  }
  std::vector<std::vector<std::string>> rows;
  for (const Json& host : hosts) {
    rows.push_back({Text(host, "host_id").substr(0, kShortId), Text(host, "label"), Text(host, "ek_class"),
                    Text(host, "device_id_strength"), Text(host, "generation"), Text(host, "state"),
                    Time(host, "enrolled_at", 1)});
  }
  const std::string text = rows.empty()
                               ? "no hosts are enrolled\n"
                               : Table({"HOST", "LABEL", "EK", "DEVICE ID", "AIK", "STATE", "ENROLLED (UTC)"}, rows);
  return Shown{Json{{"hosts", std::move(hosts)}}, text};
}

Outcome<Shown> HostsShow(OperatorClient& client, const std::string& host) {
  const Outcome<std::string> path = HostPath(host, "");
  if (const auto* failure = std::get_if<Failure>(&path)) return *failure;
  Outcome<Json> reply = Ask(client, "GET", std::get<std::string>(path), nullptr);
  if (auto* failure = std::get_if<Failure>(&reply)) return std::move(*failure);
  Json& json = std::get<Json>(reply);
  const Json& verdict = Member(json, "last_verdict");
  const std::string text =
      HostText(json) + "last verdict    " + (verdict.is_object() ? VerdictText(verdict) : "none\n");
  return Shown{std::move(json), text};
}

Outcome<Shown> HostsExplain(OperatorClient& client, const std::string& host, unsigned limit) {
  const Outcome<std::string> path = HostPath(host, "/explain?limit=");
  if (const auto* failure = std::get_if<Failure>(&path)) return *failure;
  Outcome<Json> reply = Ask(client, "GET", std::get<std::string>(path) + std::to_string(limit), nullptr);
  if (auto* failure = std::get_if<Failure>(&reply)) return std::move(*failure);
  Json& json = std::get<Json>(reply);
  std::string text = Clean(Text(json, "summary")) + "\n\n" + HostText(Member(json, "host"));
  const Json& verdicts = Member(json, "verdicts");
  if (verdicts.is_array() && !verdicts.empty()) text += "\n";
  for (std::size_t i = 0; verdicts.is_array() && i < verdicts.size(); ++i) text += VerdictText(verdicts[i]);
  return Shown{std::move(json), text};
}

Outcome<Shown> HostsForget(OperatorClient& client, const std::string& host, const std::string& reason) {
  return Change(client, HostPath(host, "/forget"), {{"reason", reason}},
                "forgotten; its last clock is kept against replays");
}

Outcome<Shown> HostsAcceptReset(OperatorClient& client, const std::string& host, const std::string& reason) {
  return Change(client, HostPath(host, "/accept-reset"), {{"reason", reason}},
                "the next quote of this host may have lower counters, once");
}

Outcome<Shown> HostsReplace(OperatorClient& client, const std::string& old_host, const std::string& new_host,
                            const std::string& reason) {
  if (const Outcome<std::string> checked = HostPath(new_host, ""); std::holds_alternative<Failure>(checked))
    return std::get<Failure>(checked);
  return Change(client, HostPath(old_host, "/replace"), {{"new", new_host}, {"reason", reason}},
                "replaced: the old host's evidence is refused from now on");
}

Outcome<Shown> PolicyReload(OperatorClient& client, const std::string& reason) {
  Outcome<Shown> shown = Change(client, std::string(api::kPolicyReload), {{"reason", reason}}, "");
  if (auto* done = std::get_if<Shown>(&shown)) {
    const bool changed = Member(done->json, "changed") == true;
    done->text = changed ? "in force: " + Clean(Text(done->json, "new_digest")) +
                               " (before: " + Clean(Text(done->json, "old_digest")) + ")\n"
                         : "unchanged: " + Clean(Text(done->json, "new_digest")) + "\n";
  }
  return shown;
}

Outcome<Shown> TokensCreate(OperatorClient& client, std::int64_t ttl_s, const std::string& reason) {
  Outcome<Shown> shown =
      Change(client, std::string(api::kEnrollmentTokens), {{"ttl_s", ttl_s}, {"reason", reason}}, "");
  // The token alone on its line, for a script or a file; the rest belongs to a person's eyes.
  if (auto* done = std::get_if<Shown>(&shown)) done->text = Clean(Text(done->json, "token")) + "\n";
  return shown;
}

Outcome<Shown> Revoke(OperatorClient& client, const std::string& kind, const std::string& value, std::int64_t ttl_s,
                      const std::string& reason) {
  return Change(client, std::string(api::kRevocations),
                {{"kind", kind}, {"value", value}, {"ttl_s", ttl_s}, {"reason", reason}},
                "revoked: game servers refuse it once they read the next list");
}

Outcome<Shown> ShowStatus(OperatorClient& client) {
  Outcome<Json> reply = Ask(client, "GET", api::kStatus, nullptr);
  if (auto* failure = std::get_if<Failure>(&reply)) return std::move(*failure);
  Json& json = std::get<Json>(reply);
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, value] : json.items())
    rows.push_back({name, value.is_string() ? value.get<std::string>()
                                            : value.dump(-1, ' ', false, Json::error_handler_t::replace)});
  return Shown{std::move(json), Table({"WHAT", "IS"}, rows)};
}

Result<std::int64_t> SecondsFromText(std::string_view text) {
  const Error bad = MakeError(Code::kMalformed, "\"" + Clean(text) + "\" is no duration: 90s, 30m, 24h, 7d");
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  const std::int64_t factor = unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : unit == "d" ? 86400 : 0;
  if (error != std::errc() || factor == 0 || value <= 0 || value > 1'000'000) return bad;
  return value * factor;
}

std::string FailureText(const Failure& failure) {
  std::string text = "assayctl: " + Clean(failure.detail) + " [" + Clean(failure.code) + "]";
  return failure.fix.empty() ? text : text + "\n  fix: " + Clean(failure.fix);
}

Json FailureJson(const Failure& failure) {
  return {{"ok", false},
          {"code", failure.code},
          {"detail", failure.detail},
          {"fix", failure.fix},
          {"exit", static_cast<int>(failure.exit)}};
}

}  // namespace assay::ctl
