// SPDX-License-Identifier: Apache-2.0
#include "agent/server/status.h"

#include "sdk/core/cbor.h"
#include "sdk/core/evidence.h"
#include "sdk/core/json.h"

namespace assay::agent {
namespace {

void PutEnrollment(JsonWriter& out, const StatusInput& input) {
  out.Name("enrollment").BeginObject();
  const auto& record = input.facts->attester;
  out.Name("state").String(record ? "enrolled" : "not_usable");
  if (!record) {
    out.Name("problem").String(Printable(input.facts->attester_problem));
  } else {
    out.Name("renewal_due").Bool(record->renew_after != 0 && input.unix_now >= record->renew_after);
    out.Name("not_after").Uint(record->not_after);
    out.Name("aik").String(config::AikKindName(record->aik_kind));
    out.Name("device_id_strength").String(record->weak ? "weak" : "canonical");
    if (input.full) {
      out.Name("attester").String(ToHex(record->attester));
      out.Name("host_id").String(ToHex(record->host_id));
      out.Name("verifier").String(record->verifier_url);
      out.Name("generation").Uint(record->generation);
    }
  }
  out.EndObject();
}

void PutLog(JsonWriter& out, const StatusInput& input) {
  out.Name("log").BeginObject();
  out.Name("pcr").Uint(input.pcr);
  out.Name("entries").Uint(input.facts->log_entries);
  out.Name("value").String(ToHex(input.facts->log_value));
  out.Name("faults").BeginArray();
  for (const LogFault fault : kLogFaults) {
    if ((input.facts->log_faults & static_cast<std::uint32_t>(fault)) == 0) continue;
    out.BeginObject();
    out.Name("code").String(LogFaultCode(fault));
    out.Name("detail").String(LogFaultText(fault));
    out.Name("fix").String(LogFaultFix(fault));
    out.EndObject();
  }
  out.EndArray();
  out.EndObject();
}

void PutVerdict(JsonWriter& out, const StatusInput& input) {
  out.Name("last_result");
  const auto& verdict = input.results->verdict();
  if (!verdict) {
    out.Null();
    return;
  }
  out.BeginObject();
  out.Name("tier").String(TierName(verdict->reply.tier));
  out.Name("age_ms").Uint(input.now_ms - verdict->at_ms);
  out.Name("next_in_ms").Uint(verdict->reply.next_in_ms);
  out.Name("audit_sequence").Uint(verdict->reply.audit_sequence);
  out.Name("reasons").BeginArray();
  for (const Reason& reason : verdict->reply.reasons) {
    out.BeginObject();
    out.Name("code").String(reason.code);
    out.Name("tier").String(TierName(reason.tier));
    out.Name("detail").String(reason.detail);
    out.Name("fix").String(reason.fix);
    out.EndObject();
  }
  out.EndArray();
  out.EndObject();
}

void PutRelay(JsonWriter& out, const StatusInput& input) {
  out.Name("relay").BeginObject();
  out.Name("state").String(input.results->relay_state());
  if (input.results->relay_seen_ms() != 0) out.Name("seen_ms_ago").Uint(input.now_ms - input.results->relay_seen_ms());
  if (const auto& failure = input.results->failure()) {
    out.Name("last_error").BeginObject();
    out.Name("code").String(failure->error.code);
    out.Name("detail").String(failure->error.detail);
    out.Name("fix").String(failure->error.fix);
    out.Name("age_ms").Uint(input.now_ms - failure->at_ms);
    out.EndObject();
  }
  out.EndObject();
}

}  // namespace

std::string Printable(std::string_view text) {
  return IsUtf8(text) ? std::string(text) : "hex:" + ToHex(AsBytes(text));
}

std::string StatusJson(const StatusInput& input) {
  JsonWriter out;
  out.BeginObject();
  out.Name("agent").BeginObject();
  out.Name("version").String(ASSAY_VERSION);
  out.Name("executable").String(ToHex(input.facts->measurements.agent));
  out.Name("config").String(ToHex(input.facts->measurements.config));
  out.Name("uptime_ms").Uint(input.uptime_ms);
  out.EndObject();
  if (input.full) out.Name("tcti").String(Printable(input.tcti));
  out.Name("tpm_answered_in_ms").Uint(input.tpm_silent_ms);
  PutEnrollment(out, input);
  out.Name("gate").BeginObject();
  out.Name("state").String(GateStateName(input.facts->gate.state));
  out.Name("scope").String(input.facts->gate.scope);
  out.EndObject();
  out.Name("caller").String(input.facts->gate.state == GateState::kAbsent ? "unmeasured" : "measured");
  out.Name("runtime_anchor").String(RuntimeAnchorName(input.facts->gate.anchor));
  PutLog(out, input);
  PutRelay(out, input);
  PutVerdict(out, input);
  out.Name("connections").Uint(input.connections);
  out.Name("tokens_waiting").Uint(input.tokens_waiting);
  out.Name("quotes_waiting").Uint(input.quotes_waiting);
  out.EndObject();
  return std::move(out).Take();
}

}  // namespace assay::agent
