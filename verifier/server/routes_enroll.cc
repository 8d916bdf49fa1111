// SPDX-License-Identifier: Apache-2.0
#include "verifier/server/routes_enroll.h"

#include <memory>
#include <utility>

#include "verifier/server/audit_records.h"

namespace assay::server {
namespace {

Response Cbor(unsigned status, Buffer body) {
  Response response;
  response.status = status;
  response.content_type = "application/cbor";
  response.body = std::move(body);
  return response;
}

Response Unavailable(std::string_view code, const std::string& detail) {
  return ErrorResponse(503, code, detail, "try again later", true);
}

}  // namespace

std::vector<Route> EnrollRoutes::Routes() {
  const auto route = [](const char* path, std::size_t limit, Handler handler) {
    return Route{.method = "POST",
                 .path = path,
                 .listener = Listener::kNetwork,
                 .body_limit = limit,
                 .handler = std::move(handler)};
  };
  return {
      route(route::kEnrollBegin, limits::kOtherBody,
            [this](Request request, Responder respond) { HandleBegin(std::move(request), std::move(respond)); }),
      route(route::kEnrollComplete, limits::kOtherBody,
            [this](Request request, Responder respond) { HandleComplete(std::move(request), std::move(respond)); }),
      route(route::kEnrollRenew, limits::kEvidenceBody,
            [this](Request request, Responder respond) { HandleRenew(std::move(request), std::move(respond)); }),
  };
}

void EnrollRoutes::Refuse(const Responder& respond, const ErrorReply& refusal) {
  counts_.refused.Add();
  respond(Cbor(enrollment::RefusalStatus(refusal.code), EncodeErrorReply(refusal)));
}

void EnrollRoutes::HandleBegin(Request request, Responder respond) {
  const auto message = DecodeEnrollBegin(request.body);
  if (!message.ok())
    return Refuse(respond, {"malformed", message.error().detail, "send EnrollBegin as docs/evidence.cddl says"});
  auto outcome = deps_.service.Begin(*message, request.source);
  if (!outcome.ok()) return respond(Unavailable("enrollment_unavailable", outcome.error().detail));
  if (const auto* refusal = std::get_if<ErrorReply>(&*outcome)) return Refuse(respond, *refusal);
  counts_.begun.Add();
  respond(Cbor(200, EncodeEnrollChallenge(std::get<EnrollChallenge>(*outcome))));
}

void EnrollRoutes::HandleComplete(Request request, Responder respond) {
  const auto message = DecodeEnrollComplete(request.body);
  if (!message.ok())
    return Refuse(respond, {"malformed", message.error().detail, "send EnrollComplete as docs/evidence.cddl says"});
  auto outcome = deps_.service.PrepareComplete(*message);
  if (!outcome.ok()) return respond(Unavailable("enrollment_unavailable", outcome.error().detail));
  if (const auto* refusal = std::get_if<ErrorReply>(&*outcome)) return Refuse(respond, *refusal);
  RecordAndCommit(std::get<enrollment::Pending>(*std::move(outcome)), std::nullopt, std::move(respond));
}

void EnrollRoutes::HandleRenew(Request request, Responder respond) {
  const auto proven = deps_.attestation.Prove(std::move(request), respond);
  if (!proven) return counts_.refused.Add();
  auto outcome = deps_.service.PrepareRenew(proven->aik->aik.attester);
  if (!outcome.ok()) return respond(Unavailable("enrollment_unavailable", outcome.error().detail));
  if (const auto* refused = std::get_if<ErrorReply>(&*outcome)) return Refuse(respond, *refused);
  RecordAndCommit(std::get<enrollment::Pending>(*std::move(outcome)), proven->clock, std::move(respond));
}

void EnrollRoutes::RecordAndCommit(enrollment::Pending pending, std::optional<tpm::ClockInfo> clock,
                                   Responder respond) {
  const std::string line = EncodeRecord(pending.record, clock, deps_.now_ms());
  auto shared = std::make_shared<enrollment::Pending>(std::move(pending));  // by the completion, then by the work item
  const Status queued = deps_.audit.Append(line, [this, shared, respond](Result<std::uint64_t> sequence) {
    if (!sequence.ok())
      return respond(
          Unavailable("audit_unavailable", "the enrollment could not be recorded: " + sequence.error().detail));
    const Queued run = deps_.work.Run([this, shared, respond] { Commit(*shared, respond); });
    if (run == Queued::kFull) respond(Unavailable("busy", "too many enrollments wait for the store"));
  });
  if (!queued.ok()) respond(Unavailable("audit_unavailable", queued.error().detail));
}

void EnrollRoutes::Commit(const enrollment::Pending& pending, const Responder& respond) {
  const auto outcome = deps_.service.Commit(pending);
  if (!outcome.ok()) return respond(Unavailable("store_unavailable", outcome.error().detail));
  if (const auto* refusal = std::get_if<ErrorReply>(&*outcome)) {
    // The trail says that this enrollment was accepted: what became of it is recorded before it is answered.
    const auto recorded = deps_.audit.AppendAndWait(EncodeRecord(SystemRecord{
        "enrollment_not_kept",
        refusal->code + " host " + ToHex(pending.record.host_id) + " attester " + ToHex(pending.record.attester),
        deps_.now_ms()}));
    if (!recorded.ok()) return respond(Unavailable("audit_unavailable", recorded.error().detail));
    return Refuse(respond, *refusal);
  }
  const auto& result = std::get<EnrollResult>(*outcome);
  // From here on an older AIK of this host is retired, whatever a cache still holds.
  deps_.fence.SetGeneration(result.host_id, result.generation);
  deps_.aiks.ForgetHost(result.host_id);
  if (pending.record.action == enrollment::EnrollmentRecord::Action::kRenew) counts_.renewed.Add();
  else counts_.completed.Add();
  respond(Cbor(200, EncodeEnrollResult(result)));
}

}  // namespace assay::server
