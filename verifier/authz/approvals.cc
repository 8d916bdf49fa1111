// SPDX-License-Identifier: Apache-2.0
#include "verifier/authz/approvals.h"

#include <algorithm>
#include <charconv>

#include "sdk/core/crypto.h"
#include "sdk/core/json.h"
#include "verifier/authz/model.h"
#include "verifier/token/canonical_json.h"

namespace assay::authz {
namespace {

constexpr std::size_t kFrame = 8 * 1024;  // names and nonce around the arguments, escaped

std::string CallJson(const CallName& call, std::string_view requester, std::string_view nonce) {
  JsonWriter out;
  out.BeginObject().Name("version").Int(1).Name("principal").String(call.principal).Name("action").String(call.action);
  out.Name("resource")
      .String(call.resource)
      .Name("requester")
      .String(requester)
      .Name("nonce")
      .String(nonce)
      .Name("arguments");
  if (call.arguments.present()) out.Raw(call.arguments.canonical());
  else out.Null();
  return std::move(out.EndObject()).Take();
}

// The key under which an approval is found; the hash it is checked with has requester and nonce besides.
std::string CallKey(const CallName& call) { return ToHex(ApprovalHash(call, "", "")); }

CallName NameOf(const ApprovalRequest& request) {
  return {request.principal, request.action, request.resource, request.arguments};
}

Reason CheckRequest(const ApprovalRequest& request, std::int64_t now) {
  if (!IsName(request.id, kIdSize) || !IsName(request.principal, kIdSize) || !IsName(request.requester, kIdSize))
    return Reason::kInvalidApproval;
  if (!IsName(request.action, kActionSize) || !IsName(request.resource, kPatternSize)) return Reason::kInvalidApproval;
  if (request.expires_at <= now) return Reason::kExpiryInPast;
  std::vector<std::string> distinct = request.approvers;
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  std::erase(distinct, request.requester);
  if (request.approvers.size() > kApprovers || request.need == 0 || request.need > distinct.size())
    return Reason::kInvalidApproval;
  return Reason::kNone;
}

}  // namespace

std::string_view ApprovalStatusName(ApprovalStatus status) noexcept {
  switch (status) {
    case ApprovalStatus::kPending: return "pending";
    case ApprovalStatus::kApproved: return "approved";
    case ApprovalStatus::kDenied: return "denied";
    case ApprovalStatus::kUsed: return "used";
  }
  return "unknown";
}

Digest ApprovalHash(const CallName& call, std::string_view requester, std::string_view nonce) {
  const auto canonical = token::CanonicalJson(CallJson(call, requester, nonce), kArgumentsSize + kFrame);
  // What no canonical form exists for gets a hash that nothing can have been approved under.
  return canonical.ok() ? Sha256(AsBytes(*canonical)) : RandomArray<kSha256Size>();
}

Reason Approvals::Request(ApprovalRequest request, std::int64_t now) {
  if (const Reason fault = CheckRequest(request, now); fault != Reason::kNone) return fault;
  const std::lock_guard lock(mutex_);
  if (approvals_.size() >= kApprovals) Prune(now);
  if (approvals_.size() >= kApprovals) return Reason::kLimitExceeded;
  if (approvals_.contains(request.id)) return Reason::kAlreadyExists;
  Approval approval;
  approval.nonce = ToBase64Url(RandomArray<16>());
  approval.hash = ApprovalHash(NameOf(request), request.requester, approval.nonce);
  by_call_.emplace(CallKey(NameOf(request)), request.id);
  order_.emplace(++last_, request.id);
  const std::string id = request.id;
  approval.request = std::move(request);
  approvals_.emplace(id, std::move(approval));
  return Reason::kNone;
}

void Approvals::Prune(std::int64_t now) {
  std::erase_if(approvals_, [&](const auto& entry) { return entry.second.request.expires_at <= now; });
  std::erase_if(by_call_, [&](const auto& entry) { return !approvals_.contains(entry.second); });
  std::erase_if(order_, [&](const auto& entry) { return !approvals_.contains(entry.second); });
}

Reason Approvals::Judge(std::string_view id, std::string_view by, std::int64_t now) const {
  const auto found = approvals_.find(id);
  if (found == approvals_.end()) return Reason::kApprovalNotFound;
  const Approval& approval = found->second;
  if (by == approval.request.requester) return Reason::kApprovalSelf;
  const auto& named = approval.request.approvers;
  if (std::find(named.begin(), named.end(), by) == named.end()) return Reason::kNotAnApprover;
  if (approval.status != ApprovalStatus::kPending) return Reason::kApprovalNotPending;
  if (approval.request.expires_at <= now) return Reason::kApprovalExpired;
  const bool again = std::find(approval.agreed.begin(), approval.agreed.end(), by) != approval.agreed.end();
  return again ? Reason::kAlreadyDecided : Reason::kNone;
}

Approvals::Outcome Approvals::Approve(std::string_view id, std::string_view by, std::int64_t now) {
  const std::lock_guard lock(mutex_);
  if (const Reason fault = Judge(id, by, now); fault != Reason::kNone) return fault;
  Approval& approval = approvals_.find(id)->second;
  approval.agreed.emplace_back(by);
  if (approval.agreed.size() >= approval.request.need) approval.status = ApprovalStatus::kApproved;
  return approval.status;
}

Approvals::Outcome Approvals::Deny(std::string_view id, std::string_view by, std::int64_t now) {
  const std::lock_guard lock(mutex_);
  if (const Reason fault = Judge(id, by, now); fault != Reason::kNone) return fault;
  return approvals_.find(id)->second.status = ApprovalStatus::kDenied;
}

const Approval* Approvals::Usable(const CallName& call, std::string_view id, std::int64_t now, Reason& reason) const {
  reason = Reason::kApprovalRequired;
  const auto good = [&](const Approval& approval) {
    return approval.status == ApprovalStatus::kApproved && approval.request.expires_at > now;
  };
  const auto names = [&](const Approval& approval) {
    return EqualConstantTime(approval.hash, ApprovalHash(call, approval.request.requester, approval.nonce));
  };
  if (!id.empty()) {
    const auto found = approvals_.find(id);
    if (found == approvals_.end()) return nullptr;
    if (!names(found->second)) reason = Reason::kApprovalHashMismatch;
    else if (good(found->second)) return &found->second;
    return nullptr;
  }
  const auto [begin, end] = by_call_.equal_range(CallKey(call));
  for (auto at = begin; at != end; ++at) {
    const auto found = approvals_.find(at->second);
    if (found != approvals_.end() && good(found->second) && names(found->second)) return &found->second;
  }
  return nullptr;
}

Reason Approvals::Peek(const CallName& call, std::string_view id, std::int64_t now) const {
  const std::lock_guard lock(mutex_);
  Reason reason = Reason::kNone;
  return Usable(call, id, now, reason) != nullptr ? Reason::kNone : reason;
}

Reason Approvals::Use(const CallName& call, std::string_view id, std::int64_t now, std::string& used) {
  const std::lock_guard lock(mutex_);
  Reason reason = Reason::kNone;
  const Approval* approval = Usable(call, id, now, reason);
  if (approval == nullptr) return reason;
  used = approval->request.id;
  approvals_.find(used)->second.status = ApprovalStatus::kUsed;
  return Reason::kNone;
}

void Approvals::Restore(std::string_view used) {
  const std::lock_guard lock(mutex_);
  const auto found = approvals_.find(used);
  if (found != approvals_.end() && found->second.status == ApprovalStatus::kUsed)
    found->second.status = ApprovalStatus::kApproved;
}

std::optional<Approvals::Page> Approvals::Pending(std::string_view cursor, std::size_t limit, std::int64_t now) const {
  std::uint64_t after = 0;
  if (!cursor.empty()) {
    const auto decoded = FromBase64Url(cursor);
    if (!decoded.ok()) return std::nullopt;
    const std::string_view text = AsText(*decoded);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), after);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  }
  limit = std::min(limit == 0 ? kPageDefault : limit, kPageLimit);
  const std::lock_guard lock(mutex_);
  Page page;
  for (auto at = order_.upper_bound(after); at != order_.end(); ++at) {
    const auto found = approvals_.find(at->second);
    if (found == approvals_.end() || found->second.status != ApprovalStatus::kPending ||
        found->second.request.expires_at <= now)
      continue;
    if (page.approvals.size() == limit) {
      page.next = ToBase64Url(AsBytes(std::to_string(after)));
      break;
    }
    page.approvals.push_back(found->second);
    after = at->first;
  }
  return page;
}

std::optional<Approval> Approvals::Find(std::string_view id) const {
  const std::lock_guard lock(mutex_);
  const auto found = approvals_.find(id);
  if (found == approvals_.end()) return std::nullopt;
  return found->second;
}

}  // namespace assay::authz
