// SPDX-License-Identifier: Apache-2.0
// Evidence as people look at it: decoded by the real decoders, nothing verified.
#include "agent/server/status.h"
#include "sdk/core/evidence.h"
#include "sdk/core/json.h"
#include "sdk/core/runtime_log.h"
#include "sdk/core/tpm.h"

namespace assay::agent {
namespace {

std::string_view TriName(PlatformEvidence::Tri value) noexcept {
  switch (value) {
    case PlatformEvidence::Tri::kUnknown: return "unknown";
    case PlatformEvidence::Tri::kOff: return "off";
    case PlatformEvidence::Tri::kOn: return "on";
  }
  return "unknown";
}

std::string_view EntryName(EntryKind kind) noexcept {
  switch (kind) {
    case EntryKind::kIdentity: return "identity";
    case EntryKind::kPolicy: return "policy";
    case EntryKind::kBatch: return "batch";
    case EntryKind::kRelease: return "release";
    case EntryKind::kStop: return "stop";
  }
  return "unknown";
}

void PutQuote(JsonWriter& out, const Evidence& evidence, const tpm::Attest& attest) {
  out.Name("quote").BeginObject();
  out.Name("extra_data").String(ToHex(attest.extra_data));
  out.Name("clock_ms").Uint(attest.clock.clock);
  out.Name("reset_count").Uint(attest.clock.reset_count);
  out.Name("restart_count").Uint(attest.clock.restart_count);
  out.Name("safe").Bool(attest.clock.safe);
  out.Name("pcr_digest").String(ToHex(attest.pcr_digest));
  out.Name("attest").String(ToHex(evidence.quote));
  out.Name("signature").String(ToHex(evidence.signature));
  out.EndObject();
  out.Name("pcrs").BeginObject();
  for (std::size_t i = 0; i < evidence.pcrs.count; ++i) {
    out.Name(std::to_string(evidence.pcrs.items[i].pcr)).String(ToHex(evidence.pcrs.items[i].value));
  }
  out.EndObject();
}

void PutLog(JsonWriter& out, const RuntimeEvidence& runtime) {
  out.Name("log").BeginArray();
  for (const Bytes encoded : runtime.log) {
    const auto entry = DecodeRuntimeEntry(encoded);
    if (!entry.ok()) continue;
    out.BeginObject();
    out.Name("index").Uint(entry->index);
    out.Name("kind").String(EntryName(entry->kind));
    if (entry->kind == EntryKind::kIdentity) {
      out.Name("agent").String(ToHex(entry->agent));
      out.Name("config").String(ToHex(entry->config));
      out.Name("predecessor").Uint(entry->predecessor);
    }
    if (entry->kind == EntryKind::kBatch) out.Name("digests").Uint(entry->digests.size());
    out.EndObject();
  }
  out.EndArray();
}

void PutBody(JsonWriter& out, const EvidenceBody& body) {
  out.Name("attester").String(ToHex(body.attester));
  out.Name("firmware_log_bytes").Uint(body.boot.firmware_log.size());
  out.Name("ima_log_bytes").Uint(body.boot.ima_log.size());
  out.Name("runtime").BeginObject();
  out.Name("agent").String(ToHex(body.runtime.agent));
  out.Name("gate").String(GateStateName(body.runtime.gate));
  out.Name("anchor").String(RuntimeAnchorName(body.runtime.anchor));
  out.Name("scope").String(body.runtime.scope);
  out.Name("counters").BeginObject();
  for (const Counter& counter : body.runtime.counters) out.Name(counter.name).Uint(counter.value);
  out.EndObject();
  PutLog(out, body.runtime);
  out.EndObject();
  out.Name("platform").BeginObject();
  out.Name("secure_boot").String(TriName(body.platform.secure_boot));
  out.Name("lockdown").String(body.platform.lockdown);
  out.Name("module_signatures").String(TriName(body.platform.module_signatures));
  out.Name("iommu").String(TriName(body.platform.iommu));
  out.Name("kernel_release").String(body.platform.kernel_release);
  out.Name("taint").Uint(body.platform.taint);
  out.Name("kexec_loaded").String(TriName(body.platform.kexec_loaded));
  out.Name("unprivileged_bpf").String(TriName(body.platform.unprivileged_bpf));
  out.EndObject();
}

}  // namespace

Result<std::string> EvidenceJson(Bytes encoded) {
  ASSAY_TRY(const Evidence evidence, DecodeEvidence(encoded));
  ASSAY_TRY(const EvidenceBody body, DecodeEvidenceBody(evidence.body));
  ASSAY_TRY(const tpm::Attest attest, tpm::DecodeAttest(evidence.quote));
  JsonWriter out;
  out.BeginObject();
  PutBody(out, body);
  PutQuote(out, evidence, attest);
  out.Name("size").Uint(encoded.size());
  out.EndObject();
  return std::move(out).Take();
}

}  // namespace assay::agent
