// SPDX-License-Identifier: Apache-2.0
#include "verifier/server/audit_records.h"

#include <charconv>

#include "sdk/core/json.h"

namespace assay::server {
namespace {

class Line {
 public:
  Line(std::string_view type, std::uint64_t at_ms) {
    text_.reserve(512);
    text_ += "{\"type\":\"";
    text_ += type;
    text_ += "\",\"at_ms\":";
    text_ += std::to_string(at_ms);
  }
  Line& Text(std::string_view name, std::string_view value) {
    Name(name);
    text_ += JsonQuote(value);
    return *this;
  }
  Line& Hex(std::string_view name, Bytes value) {
    Name(name);
    text_ += '"';
    text_ += ToHex(value);
    text_ += '"';
    return *this;
  }
  Line& Number(std::string_view name, std::uint64_t value) {
    Name(name);
    text_ += std::to_string(value);
    return *this;
  }
  Line& Flag(std::string_view name, bool value) {
    Name(name);
    text_ += value ? "true" : "false";
    return *this;
  }
  Line& Codes(std::string_view name, const std::vector<Reason>& reasons) {
    Name(name);
    text_ += '[';
    for (std::size_t i = 0; i < reasons.size(); ++i) {
      if (i > 0) text_ += ',';
      text_ += JsonQuote(reasons[i].code);
    }
    text_ += ']';
    return *this;
  }
  std::string Finish() && {
    text_ += '}';
    return std::move(text_);
  }

 private:
  void Name(std::string_view name) {
    text_ += ",\"";
    text_ += name;
    text_ += "\":";
  }
  std::string text_;
};

Line& PutClock(Line& line, const tpm::ClockInfo& clock) {
  return line.Number("reset", clock.reset_count)
      .Number("restart", clock.restart_count)
      .Number("clock", clock.clock)
      .Flag("safe", clock.safe);
}

// Members of a line that EncodeRecord wrote and whose MAC was checked. Inside a string every quote is escaped, so the
// pattern ,"name": cannot stand in a value.
std::string_view Member(std::string_view line, std::string_view name) {
  const std::string pattern = ",\"" + std::string(name) + "\":";
  const std::size_t at = line.find(pattern);
  if (at == std::string_view::npos) return {};
  std::string_view rest = line.substr(at + pattern.size());
  if (!rest.empty() && rest.front() == '"') {
    rest.remove_prefix(1);
    return rest.substr(0, rest.find('"'));
  }
  return rest.substr(0, rest.find_first_of(",}"));
}

template <typename T>
bool ReadNumber(std::string_view line, std::string_view name, T& out) {
  const std::string_view text = Member(line, name);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

}  // namespace

Result<MarkKind> ReadFenceMark(std::string_view record, FenceMark& mark) {
  if (record.starts_with("{\"type\":\"operator\"")) {
    if (Member(record, "action") != "hosts.forget" || Member(record, "phase") != "done") return MarkKind::kNone;
    const auto forgotten = FromHex(Member(record, "host"));
    if (!forgotten.ok() || forgotten->size() != mark.host.size())
      return MakeError(Code::kMalformed, "a record of a forgotten host lacks its id");
    CopyBytes(*forgotten, mark.host);
    return MarkKind::kForgotten;
  }
  const bool attest = record.starts_with("{\"type\":\"attest\"");
  const bool renewal = record.starts_with("{\"type\":\"enroll\"");
  const std::string_view outcome = Member(record, "outcome");
  if (!(attest && outcome == "judged") && !(renewal && outcome == "renew")) return MarkKind::kNone;
  const auto host = FromHex(Member(record, "host"));
  const std::string_view safe = Member(record, "safe");
  if (!host.ok() || host->size() != mark.host.size() || !ReadNumber(record, "generation", mark.generation) ||
      !ReadNumber(record, "reset", mark.clock.reset_count) ||
      !ReadNumber(record, "restart", mark.clock.restart_count) || !ReadNumber(record, "clock", mark.clock.clock) ||
      (safe != "true" && safe != "false")) {
    return MakeError(Code::kMalformed, "a record of an accepted quote lacks its counters");
  }
  CopyBytes(*host, mark.host);
  mark.clock.safe = safe == "true";
  return MarkKind::kFence;
}

std::string EncodeRecord(const AttestRecord& record) {
  Line line("attest", record.at_ms);
  line.Text("outcome", record.outcome)
      .Hex("host", record.host)
      .Hex("attester", record.attester)
      .Number("generation", record.generation);
  PutClock(line, record.clock).Number("challenge_age_ms", record.challenge_age_ms).Hex("policy", record.policy);
  if (record.reasons != nullptr) line.Text("tier", TierName(record.tier)).Codes("reasons", *record.reasons);
  if (record.request != nullptr) {
    line.Text("audience", record.request->audience)
        .Text("match", record.request->match)
        .Flag("token", record.token_issued);
  }
  return std::move(line).Finish();
}

std::string EncodeRecord(const enrollment::EnrollmentRecord& record, const std::optional<tpm::ClockInfo>& clock,
                         std::uint64_t at_ms) {
  Line line("enroll", at_ms);
  line.Text("outcome", enrollment::ActionName(record.action))
      .Hex("host", record.host_id)
      .Hex("attester", record.attester);
  line.Number("generation",
              record.previous_generation + (record.action == enrollment::EnrollmentRecord::Action::kRenew ? 0 : 1));
  if (clock) PutClock(line, *clock);
  line.Flag("ek_chain", record.ek_class == store::EkClass::kChain)
      .Flag("weak_device_id", record.weak_device_id)
      .Text("anchor", record.anchor);
  line.Text("label", record.label)
      .Flag("enrollment_token", record.token_hash.has_value())
      .Number("not_after", static_cast<std::uint64_t>(record.not_after));
  return std::move(line).Finish();
}

std::string EncodeRecord(const SystemRecord& record) {
  Line line("system", record.at_ms);
  line.Text("event", record.event).Text("detail", record.detail);
  return std::move(line).Finish();
}

std::string ReasonsJson(const std::vector<Reason>& reasons) {
  std::string text = "[";
  for (const auto& reason : reasons) {
    if (text.size() > 1) text += ',';
    text += "{\"code\":";
    text += JsonQuote(reason.code);
    text += ",\"tier\":";
    text += JsonQuote(TierName(reason.tier));
    text += ",\"detail\":";
    text += JsonQuote(reason.detail);
    text += ",\"fix\":";
    text += JsonQuote(reason.fix);
    text += '}';
  }
  return text + "]";
}

}  // namespace assay::server
