// SPDX-License-Identifier: Apache-2.0
// Operator requests: who asks, the record, the work, the record of its end, the reply. In that order.
#include "verifier/server/routes_operator.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "sdk/core/cbor.h"
#include "sdk/core/crypto.h"
#include "verifier/enrollment/enrollment_token.h"
#include "verifier/server/operator_api.h"

namespace assay::server {
namespace {

using Json = nlohmann::ordered_json;
namespace api = operator_api;

std::string Dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Response JsonResponse(unsigned status, const Json& json) {
  Response response;
  response.status = status;
  response.body = ToBuffer(AsBytes(Dump(json)));
  return response;
}

Response Problem(unsigned status, std::string_view code, std::string_view detail, std::string_view fix) {
  return JsonResponse(status, {{"code", code}, {"detail", detail}, {"fix", fix}});
}

Response FromError(const Error& error) {
  switch (error.code) {
    case Code::kNotFound: return Problem(404, "not_found", error.detail, "list the hosts with `assayctl hosts list`");
    case Code::kMalformed:
    case Code::kLimit: return Problem(400, "bad_request", error.detail, "");
    case Code::kConflict: return Problem(409, "conflict", error.detail, "");
    case Code::kDenied: return Problem(403, "denied", error.detail, "");
    case Code::kConfig:
      return Problem(422, "policy_invalid", error.detail, "correct the file; the policy in force is unchanged");
    case Code::kUnavailable:
      return Problem(503, "unavailable", error.detail,
                     "the audit trail or the store has stopped: see the verifier's log");
    default: return Problem(500, CodeName(error.code), error.detail, "see the verifier's log");
  }
}

std::vector<std::string> Segments(std::string_view path) {
  std::vector<std::string> out;
  while (!path.empty()) {
    const std::size_t slash = std::min(path.find('/'), path.size());
    out.emplace_back(path.substr(0, slash));
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return out;
}

std::string QueryValue(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const std::size_t end = std::min(query.find('&'), query.size());
    const std::string_view pair = query.substr(0, end);
    if (pair.starts_with(name) && pair.substr(name.size()).starts_with('='))
      return std::string(pair.substr(name.size() + 1));
    query.remove_prefix(std::min(end + 1, query.size()));
  }
  return {};
}

Result<std::size_t> LimitOf(std::string_view query, std::size_t fallback, std::size_t most) {
  const std::string text = QueryValue(query, "limit");
  if (text.empty()) return fallback;
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value == 0 || value > most) {
    return MakeError(Code::kMalformed, "limit must be 1 to " + std::to_string(most));
  }
  return value;
}

Json HostJson(const store::HostRow& host) {
  return {{"host_id", ToHex(host.host_id)},
          {"label", host.label},
          {"ek_class", host.ek_class == store::EkClass::kChain ? "chain" : "ek-key"},
          {"device_id_strength", host.weak_device_id ? "weak" : "strong"},
          {"ek_spki_sha256", ToHex(host.ek_spki_digest)},
          {"enrolled_at", host.enrolled_at},
          {"generation", host.generation},
          {"reset_accepted", host.reset_accepted},
          {"state", host.state},
          {"replaced_by", host.replaced_by ? Json(ToHex(*host.replaced_by)) : Json(nullptr)}};
}

Json VerdictJson(const store::VerdictRow& verdict) {
  Json reasons = Json::parse(verdict.reasons_json, nullptr, false);
  if (!reasons.is_array()) reasons = Json::array();
  return {{"at_ms", verdict.at_ms},
          {"audit_sequence", verdict.audit_sequence},
          {"outcome", verdict.outcome},
          {"tier", TierName(verdict.tier)},
          {"reasons", reasons}};
}

// One sentence for a person: what the newest verdict says and what to do first.
std::string Summary(const store::HostRow& host, const std::vector<store::VerdictRow>& verdicts) {
  if (host.state != "active") return "This host was replaced: its evidence is refused.";
  if (verdicts.empty()) return "Enrolled, and never attested: start assay-agent and assay-relay on it.";
  const Json newest = VerdictJson(verdicts.front());
  std::string text =
      "The newest verdict is " +
      (verdicts.front().outcome == "judged" ? std::string(TierName(verdicts.front().tier)) : verdicts.front().outcome);
  const Json& reasons = newest["reasons"];
  if (reasons.empty() || !reasons[0].is_object()) return text + ", without a reason against it.";
  const auto text_of = [&](const char* name) {
    return reasons[0].contains(name) && reasons[0][name].is_string() ? reasons[0][name].get<std::string>()
                                                                     : std::string();
  };
  text += ": " + text_of("detail");
  const std::string fix = text_of("fix");
  return fix.empty() ? text : text + " Fix: " + fix;
}

}  // namespace

struct OperatorRoutes::Calls {
  OperatorDeps deps;

  struct Call {
    const Request& request;
    std::string action;  // "hosts.show", ...
    std::string target;  // the host as the operator wrote it, or empty
    std::string reason;  // changes only
    Json body;
    Json Record(const OperatorDeps& with, const char* phase) const {
      Json line = {{"type", "operator"},
                   {"at_ms", with.now_ms()},
                   {"operator", "uid:" + std::to_string(request.peer_uid)},
                   {"action", action},
                   {"phase", phase}};
      if (!target.empty()) line["target"] = target;
      if (!reason.empty()) line["reason"] = reason;
      return line;
    }
  };

  bool Permitted(const Request& request) const {
    if (request.listener != Listener::kOperator) return false;
    if (request.peer_uid == 0 || request.peer_uid == geteuid()) return true;
    const auto& gids = request.peer_gids;
    return deps.operator_gid.has_value() && std::find(gids.begin(), gids.end(), *deps.operator_gid) != gids.end();
  }

  Status Write(const Json& line) const {
    ASSAY_TRY(const std::uint64_t sequence, deps.audit.AppendAndWait(Dump(line)));
    (void)sequence;
    return Ok();
  }

  // Reads of host data: access record, read, release record, reply.
  Response Read(const Call& call, const std::function<Result<Json>()>& read) const {
    if (const Status recorded = Write(call.Record(deps, "access")); !recorded.ok()) return FromError(recorded.error());
    const Result<Json> data = read();
    Json line = call.Record(deps, data.ok() ? "release" : "failed");
    if (data.ok()) line["sha256"] = ToHex(Sha256(AsBytes(Dump(*data))));
    else line["detail"] = data.error().detail;
    if (const Status recorded = Write(line); !recorded.ok()) return FromError(recorded.error());
    return data.ok() ? JsonResponse(200, *data) : FromError(data.error());
  }

  // Changes: reason, record, change, record of its end, reply. `change` returns the reply's content.
  Response Change(Call call, const std::function<Result<Json>(Json& record)>& change) const {
    const Status reason = TakeReason(call);
    if (!reason.ok()) return Problem(400, "reason_required", reason.error().detail, "give --reason TEXT");
    if (const Status recorded = Write(call.Record(deps, "begin")); !recorded.ok()) return FromError(recorded.error());
    Json line = call.Record(deps, "done");
    const Result<Json> data = change(line);
    if (!data.ok()) {
      line["phase"] = "failed";
      line["detail"] = data.error().detail;
    }
    if (const Status recorded = Write(line); !recorded.ok()) return FromError(recorded.error());
    return data.ok() ? JsonResponse(200, *data) : FromError(data.error());
  }

  static Status TakeReason(Call& call) {
    call.body = Json::parse(AsText(call.request.body), nullptr, false);
    if (!call.body.is_object()) return MakeError(Code::kMalformed, "the request's body is no JSON object");
    if (!call.body.contains("reason") || !call.body["reason"].is_string())
      return MakeError(Code::kMalformed, "every change needs a reason");
    call.reason = call.body["reason"].get<std::string>();
    const bool control =
        std::any_of(call.reason.begin(), call.reason.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; });
    const bool blank = call.reason.find_first_not_of(' ') == std::string::npos;
    if (blank || control || call.reason.size() > api::kReasonLimit || !IsUtf8(call.reason)) {
      return MakeError(Code::kMalformed,
                       "a reason is one line of text, at most " + std::to_string(api::kReasonLimit) + " bytes");
    }
    return Ok();
  }

  // Exactly one host whose id begins with `text`.
  Result<store::HostRow> Resolve(std::string_view text) const {
    const Error bad =
        MakeError(Code::kMalformed, "a host is named by 64 hexadecimal digits or by at least 8 that begin its id");
    if (text.size() < api::kShortestPrefix || text.size() > 2 * kSha256Size) return bad;
    std::string padded(text);
    std::transform(padded.begin(), padded.end(), padded.begin(),
                   [](char c) { return c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c; });
    const std::string prefix = padded;
    padded.resize(2 * kSha256Size, '0');
    const Result<Buffer> bytes = FromHex(padded);
    if (!bytes.ok()) return bad;
    ASSAY_TRY(Digest first, ToDigest(*bytes));
    ASSAY_TRY(std::optional<store::HostRow> exact, deps.store.FindHost(first));
    if (prefix.size() == 2 * kSha256Size) {
      if (!exact) return MakeError(Code::kNotFound, "no host " + prefix);
      return std::move(*exact);
    }
    ASSAY_TRY(std::vector<store::HostRow> rows, deps.store.ListHosts(first, 2));
    if (exact) rows.insert(rows.begin(), std::move(*exact));
    std::erase_if(rows, [&](const store::HostRow& row) { return !ToHex(row.host_id).starts_with(prefix); });
    if (rows.empty()) return MakeError(Code::kNotFound, "no host id begins with " + prefix);
    if (rows.size() > 1)
      return MakeError(Code::kConflict, "several host ids begin with " + prefix + ": give more digits");
    return std::move(rows.front());
  }

  Response ShowStatus(const Request& request) const {
    (void)request;
    const Status audit = deps.audit.Health();
    Json out = {{"audit", audit.ok() ? "ok" : audit.error().detail}};
    if (deps.status) {
      for (const auto& [name, value] : deps.status()) out[name] = value;
    }
    return JsonResponse(200, out);
  }

  Response List(const Request& request) const {
    const Call call{request, "hosts.list", "", "", {}};
    return Read(call, [&]() -> Result<Json> {
      ASSAY_TRY(const std::size_t limit, LimitOf(request.query, 100, api::kPageLimit));
      std::optional<Digest> after;
      if (const std::string text = QueryValue(request.query, "after"); !text.empty()) {
        ASSAY_TRY(const Buffer bytes, FromHex(text));
        ASSAY_TRY(after, ToDigest(bytes));
      }
      ASSAY_TRY(const std::vector<store::HostRow> rows, deps.store.ListHosts(after, limit));
      Json hosts = Json::array();
      for (const store::HostRow& row : rows) hosts.push_back(HostJson(row));
      return Json{{"hosts", hosts}, {"next", rows.size() == limit ? Json(ToHex(rows.back().host_id)) : Json(nullptr)}};
    });
  }

  Response Show(const Request& request, const std::string& id) const {
    return Read({request, "hosts.show", id, "", {}}, [&]() -> Result<Json> {
      ASSAY_TRY(const store::HostRow host, Resolve(id));
      ASSAY_TRY(const std::vector<store::VerdictRow> verdicts, deps.store.Verdicts(host.host_id, 1));
      Json out = HostJson(host);
      out["last_verdict"] = verdicts.empty() ? Json(nullptr) : VerdictJson(verdicts.front());
      return out;
    });
  }

  Response Explain(const Request& request, const std::string& id) const {
    return Read({request, "hosts.explain", id, "", {}}, [&]() -> Result<Json> {
      ASSAY_TRY(const std::size_t limit, LimitOf(request.query, 10, api::kVerdictLimit));
      ASSAY_TRY(const store::HostRow host, Resolve(id));
      ASSAY_TRY(const std::vector<store::VerdictRow> rows, deps.store.Verdicts(host.host_id, limit));
      Json verdicts = Json::array();
      for (const store::VerdictRow& row : rows) verdicts.push_back(VerdictJson(row));
      return Json{{"host", HostJson(host)}, {"summary", Summary(host, rows)}, {"verdicts", verdicts}};
    });
  }

  Response Forget(const Request& request, const std::string& id) const {
    return Change({request, "hosts.forget", id, "", {}}, [&](Json& record) -> Result<Json> {
      ASSAY_TRY(const store::HostRow host, Resolve(id));
      record["host"] = ToHex(host.host_id);
      ASSAY_CHECK_OK(deps.store.ForgetHost(host.host_id));
      if (deps.host_changed) deps.host_changed(host.host_id);
      if (deps.host_forgotten) deps.host_forgotten(host.host_id);
      return Json{{"host_id", ToHex(host.host_id)}};
    });
  }

  Response AcceptReset(const Request& request, const std::string& id) const {
    return Change({request, "hosts.accept-reset", id, "", {}}, [&](Json& record) -> Result<Json> {
      ASSAY_TRY(const store::HostRow host, Resolve(id));
      record["host"] = ToHex(host.host_id);
      ASSAY_CHECK_OK(deps.store.SetResetAccepted(host.host_id, true));
      if (deps.accept_reset) { ASSAY_CHECK_OK(deps.accept_reset(host.host_id)); }
      return Json{{"host_id", ToHex(host.host_id)}};
    });
  }

  Response Replace(const Request& request, const std::string& id) const {
    Call call{request, "hosts.replace", id, "", {}};
    const Json body = Json::parse(AsText(request.body), nullptr, false);
    if (!body.is_object() || !body.contains("new") || !body["new"].is_string())
      return Problem(400, "bad_request", "the new host is missing", "assayctl hosts replace OLD NEW --reason TEXT");
    const std::string replacement = body["new"].get<std::string>();
    return Change(std::move(call), [&](Json& record) -> Result<Json> {
      ASSAY_TRY(const store::HostRow before, Resolve(id));
      ASSAY_TRY(const store::HostRow after, Resolve(replacement));
      if (before.host_id == after.host_id) return MakeError(Code::kConflict, "a host cannot replace itself");
      record["host"] = ToHex(before.host_id);
      record["new_host"] = ToHex(after.host_id);
      ASSAY_CHECK_OK(deps.store.ReplaceHost(before.host_id, after.host_id));
      if (deps.host_changed) deps.host_changed(before.host_id);
      return Json{{"old", ToHex(before.host_id)}, {"new", ToHex(after.host_id)}};
    });
  }

  // The new policy comes into force only after the record that names its digest is durable.
  Response ReloadPolicy(const Request& request) const {
    Call call{request, "policy.reload", "", "", {}};
    if (!deps.prepare_policy) return Problem(501, "not_implemented", "this verifier has no policy file", "");
    if (const Status reason = TakeReason(call); !reason.ok())
      return Problem(400, "reason_required", reason.error().detail, "give --reason TEXT");
    const Result<PreparedPolicy> prepared = deps.prepare_policy();
    Json line = call.Record(deps, prepared.ok() ? "done" : "failed");
    if (prepared.ok()) {
      line["old_digest"] = prepared->old_digest;
      line["new_digest"] = prepared->new_digest;
    } else {
      line["detail"] = prepared.error().detail;
    }
    if (const Status recorded = Write(line); !recorded.ok()) return FromError(recorded.error());
    if (!prepared.ok()) return FromError(prepared.error());
    prepared->apply();
    return JsonResponse(200, {{"old_digest", prepared->old_digest},
                              {"new_digest", prepared->new_digest},
                              {"changed", prepared->old_digest != prepared->new_digest}});
  }

  Response CreateToken(const Request& request) const {
    const Json body = Json::parse(AsText(request.body), nullptr, false);
    const bool given = body.is_object() && body.contains("ttl_s") && body["ttl_s"].is_number_unsigned();
    const std::uint64_t ttl = given ? body["ttl_s"].get<std::uint64_t>() : 0;
    if (ttl < api::kTokenTtlLeast || ttl > api::kTokenTtlMost)
      return Problem(400, "bad_request", "ttl_s must be 60 s to 30 days",
                     "assayctl tokens create-enrollment --ttl 24h");
    return Change({request, "tokens.create-enrollment", "", "", {}}, [&](Json& record) -> Result<Json> {
      const std::string token = enrollment::DrawEnrollmentToken();
      const Digest hash = enrollment::EnrollmentTokenHash(token);
      const auto expires_at = static_cast<std::int64_t>(deps.now_ms() / 1000 + ttl);
      record["token_hash"] = ToHex(hash);
      record["expires_at"] = expires_at;
      ASSAY_CHECK_OK(deps.store.AddEnrollmentToken(hash, expires_at));
      return Json{{"token", token}, {"expires_at", expires_at}};
    });
  }

  Response Revoke(const Request& request) const {
    const Json body = Json::parse(AsText(request.body), nullptr, false);
    const auto text = [&](const char* name) {
      return body.is_object() && body.contains(name) && body[name].is_string() ? body[name].get<std::string>()
                                                                               : std::string();
    };
    const std::string kind = text("kind"), value = text("value");
    const bool given = body.is_object() && body.contains("ttl_s") && body["ttl_s"].is_number_unsigned();
    const std::uint64_t ttl = given ? body["ttl_s"].get<std::uint64_t>() : 0;
    const bool plain = !value.empty() && value.size() <= api::kRevokedLimit && FromBase64Url(value).ok();
    if ((kind != "token" && kind != "device") || !plain || ttl < 1 || ttl > api::kRevocationTtlMost) {
      return Problem(400, "bad_request",
                     "kind is token or device, value its id as results carry it, ttl_s 1 s to 3650 days",
                     "assayctl revoke device ID --ttl 30d --reason TEXT");
    }
    return Change({request, "revocations.add", "", "", {}}, [&](Json& record) -> Result<Json> {
      const auto until = static_cast<std::int64_t>(deps.now_ms() / 1000 + ttl);
      record["kind"] = kind;
      record["value"] = value;
      record["until"] = until;
      ASSAY_CHECK_OK(deps.store.AddRevocation({kind, value, until}));
      return Json{{"kind", kind}, {"value", value}, {"until", until}};
    });
  }

  Response Dispatch(const Request& request, const std::vector<std::string>& at) const {
    const bool get = request.method == "GET", post = request.method == "POST";
    const std::size_t depth = at.size();
    if (get && depth == 1 && at[0] == "status") return ShowStatus(request);
    if (get && depth == 1 && at[0] == "hosts") return List(request);
    if (get && depth == 2 && at[0] == "hosts") return Show(request, at[1]);
    if (get && depth == 3 && at[0] == "hosts" && at[2] == "explain") return Explain(request, at[1]);
    if (post && depth == 3 && at[0] == "hosts" && at[2] == "forget") return Forget(request, at[1]);
    if (post && depth == 3 && at[0] == "hosts" && at[2] == "accept-reset") return AcceptReset(request, at[1]);
    if (post && depth == 3 && at[0] == "hosts" && at[2] == "replace") return Replace(request, at[1]);
    if (post && depth == 2 && at[0] == "policy" && at[1] == "reload") return ReloadPolicy(request);
    if (post && depth == 1 && at[0] == "enrollment-tokens") return CreateToken(request);
    if (post && depth == 1 && at[0] == "revocations") return Revoke(request);
    return Problem(404, "no_such_route", request.method + " " + request.path + " is no operator route",
                   "see `assayctl --help`");
  }
};

OperatorRoutes::OperatorRoutes(OperatorDeps deps) : calls_(std::make_unique<Calls>(Calls{std::move(deps)})) {}
OperatorRoutes::~OperatorRoutes() = default;

Response OperatorRoutes::Handle(const Request& request) {
  if (!calls_->Permitted(request))
    return Problem(403, "not_permitted", "this user is no operator of the verifier",
                   "run assayctl as root, as the verifier's user, or as a member of its operators' group");
  if (!request.path.starts_with(api::kPrefix))
    return Problem(404, "no_such_route", request.path + " is no operator route", "");
  return calls_->Dispatch(request, Segments(std::string_view(request.path).substr(sizeof(api::kPrefix) - 1)));
}

std::vector<Route> OperatorRoutes::Routes() {
  const Handler handler = [this](Request request, Responder respond) {
    auto job = [this, request = std::move(request), respond = std::move(respond)] { respond(Handle(request)); };
    if (calls_->deps.run) calls_->deps.run(std::move(job));
    else job();
  };
  std::vector<Route> routes;
  for (const char* method : {"GET", "POST"})
    routes.push_back({method, std::string(api::kPrefix) + "*", Listener::kOperator, api::kBodyLimit, handler});
  return routes;
}

}  // namespace assay::server
