// SPDX-License-Identifier: Apache-2.0
#include "sdk/core/json.h"
#include "verifier/audit/verify.h"

namespace assay::audit {
namespace {

// File names are anyone's bytes: what is no printable ASCII is shown as a question mark.
std::string Clean(std::string text) {
  for (char& c : text) {
    if (c < 0x20 || c > 0x7E) c = '?';
  }
  return text;
}

}  // namespace

std::string ReportJson(const VerifyReport& report) {
  JsonWriter out;
  out.BeginObject().Name("ok").Bool(report.ok()).Name("directory").String(Clean(report.directory));
  out.Name("log_id").String(ToHex(report.log_id)).Name("key_id").String(ToHex(report.key_id));
  out.Name("segments")
      .Uint(report.segments)
      .Name("lines")
      .Uint(report.lines)
      .Name("records")
      .Uint(report.records)
      .Name("bytes")
      .Uint(report.bytes);
  out.Name("last_sequence").Uint(report.last_sequence).Name("last_mac").String(ToHex(report.last_mac));
  out.Name("faults").BeginArray();
  for (const Fault& fault : report.faults) {
    out.BeginObject()
        .Name("class")
        .String(FaultName(fault.kind))
        .Name("segment")
        .Uint(fault.segment)
        .Name("record")
        .Uint(fault.record);
    out.Name("offset").Uint(fault.offset).Name("detail").String(Clean(fault.detail)).EndObject();
  }
  out.EndArray().Name("faults_left_off").Uint(report.faults_left_off).Name("notes").BeginArray();
  for (const std::string& note : report.notes) out.String(Clean(note));
  out.EndArray().EndObject();
  return std::move(out).Take();
}

std::string ReportText(const VerifyReport& report) {
  std::string out = report.ok() ? "audit trail verified: " : "audit trail NOT verified: ";
  out += std::to_string(report.records) + " records in " + std::to_string(report.segments) + " segments, log " +
         ToHex(report.log_id) + ", key " + ToHex(report.key_id) + "\n";
  out +=
      "chain verified up to record " + std::to_string(report.last_sequence) + ", MAC " + ToHex(report.last_mac) + "\n";
  for (const Fault& fault : report.faults) out += "fault: " + Clean(fault.ToString()) + "\n";
  if (report.faults_left_off > 0) out += "and " + std::to_string(report.faults_left_off) + " more faults\n";
  for (const std::string& note : report.notes) out += "note: " + Clean(note) + "\n";
  return out;
}

}  // namespace assay::audit
