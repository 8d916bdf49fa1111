// SPDX-License-Identifier: Apache-2.0
// Plays a scenario's steps against an empty authority.
#include <map>

#include "tests/vectors/groups.h"
#include "verifier/authz/authority.h"

namespace assay::vectors {
namespace {

class MemorySink final : public authz::DecisionSink {
 public:
  Status Record(const authz::Query&, std::string_view, const authz::Decision& decision, std::int64_t) override {
    results.push_back(decision.allowed() ? "allowed" : "denied");
    return Ok();
  }
  std::vector<std::string> results;
};

class Scenario {
 public:
  explicit Scenario(std::int64_t now) : now_(now) {}
  Json Step(const Json& step);

 private:
  using Handler = Json (Scenario::*)(const Json&);
  static std::string Text(const Json& step, const char* name) { return step.at(name).get<std::string>(); }
  static Json Done(authz::Reason reason) {
    if (reason == authz::Reason::kNone) return {{"ok", true}};
    return {{"ok", false}, {"code", authz::ReasonName(reason)}};
  }
  static Json Told(const authz::Decision& decision) {
    if (decision.allowed()) return {{"allowed", true}, {"rule", decision.rule_id}};
    return {{"allowed", false}, {"code", authz::ReasonName(decision.reason)}};
  }
  Json Kept(const std::string& principal, const authz::Authority::Created& created) {
    if (const auto* reason = std::get_if<authz::Reason>(&created)) return Done(*reason);
    tokens_[principal] = *std::get_if<std::string>(&created);
    return Done(authz::Reason::kNone);
  }
  authz::Query QueryOf(const Json& step) const;
  static Json Decided(const authz::Approvals::Outcome& outcome) {
    if (const auto* reason = std::get_if<authz::Reason>(&outcome)) return Done(*reason);
    return {{"ok", true}, {"status", authz::ApprovalStatusName(*std::get_if<authz::ApprovalStatus>(&outcome))}};
  }

  Json AddPrincipal(const Json& step);
  Json Permit(const Json& step) { return Done(authority_.Permit(Text(step, "principal"), step.at("rules").dump())); }
  Json Unpermit(const Json& step) {
    return {{"ok", true}, {"removed", authority_.Unpermit(Text(step, "principal"), Text(step, "resource"))}};
  }
  Json Authorize(const Json& step) { return Told(authority_.Authorize(QueryOf(step), now_)); }
  Json Simulate(const Json& step) { return Told(authority_.Simulate(QueryOf(step), now_)); }
  Json Suspend(const Json& step) {
    return Done(authority_.SetStatus(Text(step, "id"), authz::PrincipalStatus::kSuspended));
  }
  Json Resume(const Json& step) {
    return Done(authority_.SetStatus(Text(step, "id"), authz::PrincipalStatus::kActive));
  }
  Json Revoke(const Json& step) {
    return Done(authority_.SetStatus(Text(step, "id"), authz::PrincipalStatus::kRevoked));
  }
  Json Delegate(const Json& step);
  Json RevokeDelegation(const Json& step);
  Json RememberToken(const Json& step) {
    remembered_[Text(step, "as")] = tokens_.at(Text(step, "principal"));
    return Done(authz::Reason::kNone);
  }
  Json Rotate(const Json& step) {
    const std::string id = Text(step, "principal");
    return Kept(id, authority_.Rotate(id, now_, step.value("overlap_s", 0)));
  }
  Json RequestApproval(const Json& step);
  Json Approve(const Json& step) { return Decided(authority_.Approve(Text(step, "id"), Text(step, "by"), now_)); }
  Json Deny(const Json& step) { return Decided(authority_.Deny(Text(step, "id"), Text(step, "by"), now_)); }
  Json Advance(const Json& step) {
    now_ += step.at("seconds").get<std::int64_t>();
    return Done(authz::Reason::kNone);
  }
  Json MarkAudit(const Json&) {
    mark_ = sink_.results.size();
    return Done(authz::Reason::kNone);
  }
  Json AuditSinceMark(const Json&) {
    const std::vector<std::string> results(sink_.results.begin() + static_cast<std::ptrdiff_t>(mark_),
                                           sink_.results.end());
    return {{"records", results.size()}, {"results", results}};
  }

  std::int64_t now_;
  MemorySink sink_;
  authz::Authority authority_{Zones(), sink_};
  std::map<std::string, std::string> tokens_, remembered_;
  std::size_t mark_ = 0;
};

authz::Query Scenario::QueryOf(const Json& step) const {
  authz::Query query;
  query.action = Text(step, "action");
  query.resource = Text(step, "resource");
  if (step.contains("arguments")) query.arguments = step.at("arguments").dump();
  query.ip = step.value("ip", "");
  query.approval_id = step.value("approval", "");
  const std::string by = step.value("by", "id");
  if (by == "token") query.token = tokens_.at(Text(step, "principal"));
  else if (by.starts_with("token:")) query.token = remembered_.at(by.substr(6));
  else if (by == "id") query.principal = Text(step, "principal");
  else throw std::runtime_error("unknown caller: " + by);
  return query;
}

Json Scenario::AddPrincipal(const Json& step) {
  authz::Principal principal;
  principal.id = Text(step, "id");
  const auto kind = authz::PrincipalKindFromName(step.value("kind", "service"));
  if (!kind) throw std::runtime_error("unknown kind");
  principal.kind = *kind;
  principal.owner = step.value("owner", "");
  principal.tenant = step.value("tenant", "");
  if (step.contains("expires_in_s")) principal.expires_at = now_ + step.at("expires_in_s").get<std::int64_t>();
  const std::string id = principal.id;
  return Kept(id, authority_.Create(std::move(principal), now_));
}

Json Scenario::Delegate(const Json& step) {
  const authz::Authority::Delegation wanted{Text(step, "id"), Text(step, "from"), Text(step, "to"),
                                            now_ + step.at("expires_in_s").get<std::int64_t>(),
                                            step.value("max_depth", authz::kDefaultDepth)};
  const auto checked = authority_.Delegate(wanted, step.at("rules").dump(), now_);
  if (const auto* reason = std::get_if<authz::Reason>(&checked)) return Done(*reason);
  const auto& link = *std::get_if<authz::Link>(&checked);
  return {{"ok", true}, {"depth", link.depth}, {"expires_in_s", link.expires_at - now_}};
}

Json Scenario::RevokeDelegation(const Json& step) {
  const auto fallen = authority_.RevokeDelegation(Text(step, "id"), now_);
  if (const auto* reason = std::get_if<authz::Reason>(&fallen)) return Done(*reason);
  return {{"ok", true}, {"revoked", *std::get_if<std::vector<std::string>>(&fallen)}};
}

Json Scenario::RequestApproval(const Json& step) {
  authz::ApprovalRequest request;
  request.id = Text(step, "id");
  request.principal = Text(step, "principal");
  request.action = Text(step, "action");
  request.resource = Text(step, "resource");
  request.requester = Text(step, "requester");
  if (step.contains("arguments")) {
    auto arguments = authz::Arguments::Parse(step.at("arguments").dump());
    if (!arguments) throw std::runtime_error("the arguments are refused");
    request.arguments = std::move(*arguments);
  }
  request.need = step.at("need").get<std::uint32_t>();
  request.approvers = step.at("approvers").get<std::vector<std::string>>();
  request.expires_at = now_ + step.at("ttl_s").get<std::int64_t>();
  return Done(authority_.RequestApproval(std::move(request), now_));
}

Json Scenario::Step(const Json& step) {
  static const std::map<std::string, Handler> handlers = {{"principal", &Scenario::AddPrincipal},
                                                          {"permit", &Scenario::Permit},
                                                          {"unpermit", &Scenario::Unpermit},
                                                          {"authorize", &Scenario::Authorize},
                                                          {"simulate", &Scenario::Simulate},
                                                          {"suspend_principal", &Scenario::Suspend},
                                                          {"resume_principal", &Scenario::Resume},
                                                          {"revoke_principal", &Scenario::Revoke},
                                                          {"delegate", &Scenario::Delegate},
                                                          {"revoke_delegation", &Scenario::RevokeDelegation},
                                                          {"remember_token", &Scenario::RememberToken},
                                                          {"rotate", &Scenario::Rotate},
                                                          {"request_approval", &Scenario::RequestApproval},
                                                          {"approve", &Scenario::Approve},
                                                          {"deny", &Scenario::Deny},
                                                          {"advance", &Scenario::Advance},
                                                          {"mark_audit", &Scenario::MarkAudit},
                                                          {"audit_since_mark", &Scenario::AuditSinceMark}};
  const auto handler = handlers.find(Text(step, "op"));
  if (handler == handlers.end()) throw std::runtime_error("unknown op: " + Text(step, "op"));
  return (this->*handler->second)(step);
}

}  // namespace

std::vector<Json> RunScenario(const Json& input) {
  Scenario scenario(input.at("now").get<std::int64_t>());
  std::vector<Json> answers;
  for (const Json& step : input.at("steps")) answers.push_back(scenario.Step(step));
  return answers;
}

}  // namespace assay::vectors
