// SPDX-License-Identifier: Apache-2.0
#include "verifier/token/result_issuer.h"

#include <algorithm>

namespace assay::token {
namespace {

constexpr std::size_t kDeviceKeySize = 32;
constexpr char kDeviceDomain[] = "assay/device-id/1";
constexpr std::uint8_t kRuntimeLogPcr = 14;

// The boot PCRs a host token is compared with: all of the selection but the runtime log's.
void FillHostTokenClaims(HostTokenClaims& claims, const appraisal::Facts& facts, const ResultSubject& subject) {
  claims.aik_spki = ToBuffer(subject.aik_spki);
  claims.aik_scheme = subject.aik_scheme;
  claims.reset_count = subject.clock.reset_count;
  claims.restart_count = subject.clock.restart_count;
  claims.clock_ms = subject.clock.clock;
  Writer boot;
  for (std::uint8_t pcr = 0; pcr < facts.pcrs.size(); ++pcr) {
    if (!facts.pcrs[pcr] || pcr == kRuntimeLogPcr) continue;
    claims.boot_pcr_mask |= 1U << pcr;
    boot.Put(*facts.pcrs[pcr]);
  }
  claims.boot_pcr_digest = Sha256(boot.buffer());
  if (facts.pcrs[kRuntimeLogPcr]) claims.pcr14 = *facts.pcrs[kRuntimeLogPcr];
}

}  // namespace

ResultIssuer::ResultIssuer(IssuerKeys keys, std::string issuer, std::string kid, std::string jwks)
    : keys_(std::move(keys)), issuer_(std::move(issuer)), kid_(std::move(kid)), jwks_(std::move(jwks)) {}

Result<ResultIssuer> ResultIssuer::Create(IssuerKeys keys, std::string issuer) {
  ASSAY_TRY(PublicKey current, keys.signing.Public());
  if (current.type() != KeyType::kP256)
    return MakeError(Code::kConfig, "the result signing key must be EC P-256 (ES256)");
  ASSAY_TRY(std::string kid, JwkThumbprint(current));
  std::vector<const PublicKey*> published = {&current};
  std::vector<Digest> known = {current.SpkiDigest()};
  for (const auto& key : keys.also_published) {
    // Each key once: verifiers of tokens refuse a set in which two keys share a kid.
    if (std::find(known.begin(), known.end(), key.SpkiDigest()) != known.end()) continue;
    known.push_back(key.SpkiDigest());
    published.push_back(&key);
  }
  ASSAY_TRY(std::string jwks, JwksJson(published));
  return ResultIssuer(std::move(keys), std::move(issuer), std::move(kid), std::move(jwks));
}

std::variant<const config::Title*, ErrorReply> ResultIssuer::Authorise(const TokenRequest& request,
                                                                       const config::Policy& policy) {
  const auto title = std::find_if(policy.titles.begin(), policy.titles.end(),
                                  [&](const config::Title& t) { return t.audience == request.audience; });
  if (title == policy.titles.end()) {
    return ErrorReply{"unknown_audience", "no title of the policy has the audience " + std::string(request.audience),
                      "ask the operator to add a [[title]] with this audience to the policy"};
  }
  const bool listed = request.caller.measured && std::find(title->executables.begin(), title->executables.end(),
                                                           request.caller.executable) != title->executables.end();
  const bool genuine =
      !title->key.empty() && CheckServerNonce(title->key.view(), request.audience, request.match, request.server_nonce,
                                              request.session_key_hash) == NonceCheck::kGenuine;
  if (listed || genuine) return &*title;
  return ErrorReply{
      "audience_not_authorised",
      request.caller.measured ? "the calling executable sha256:" + ToHex(request.caller.executable) +
                                    " is not listed for this title, and the nonce was not made with the title's key"
                              : "the caller is unmeasured and the nonce was not made with the title's key",
      "use a nonce that the title's server made for this match and session key (assay_make_server_nonce)"};
}

std::string ResultIssuer::DeviceId(const config::Title& title, const Digest& ek_spki_digest) const {
  Writer info;
  info.Put(AsBytes(kDeviceDomain));
  info.PutU16Sized(AsBytes(title.tenant));
  info.PutU16Sized(AsBytes(title.audience));
  const Secret key = HkdfSha256(keys_.device_master.view(), {}, info.buffer(), kDeviceKeySize);
  return ToBase64Url(HmacSha256(key.view(), ek_spki_digest));
}

Result<Issued> ResultIssuer::Issue(const config::Title& title, const TokenRequest& request,
                                   const appraisal::Verdict& verdict, const appraisal::Facts& facts,
                                   const ResultSubject& subject) const {
  ResultClaims claims;
  claims.issuer = issuer_;
  claims.audience = title.audience;
  claims.issued_at = subject.now;
  claims.expires_at = subject.now + static_cast<std::int64_t>(title.lifetime_s);
  claims.token_id = ToBase64Url(RandomArray<16>());
  claims.verifier_build = ASSAY_VERSION;
  claims.appraisal_policy = "policy:sha256:" + ToHex(subject.policy);
  claims.server_nonce = request.server_nonce;
  claims.match = request.match;
  claims.session_key_hash = request.session_key_hash;
  claims.tier = verdict.tier;
  claims.vector = verdict.vector;
  for (const auto& reason : verdict.reasons) claims.reasons.push_back(reason.code);
  claims.device_id = DeviceId(title, subject.ek_spki_digest);
  claims.device_key_version = keys_.device_key_version;
  claims.weak_device_id = subject.weak_device_id;
  claims.caller = request.caller;
  claims.anchor = facts.anchor;
  claims.gate = facts.runtime->gate;
  claims.policy = facts.runtime->policy;
  claims.policy_version = facts.runtime->policy_version;
  claims.next_attestation = subject.next_attestation;
  if (title.host_tokens) {
    claims.attester = subject.attester;
    claims.host_token.emplace();
    FillHostTokenClaims(*claims.host_token, facts, subject);
    claims.host_token->allowed_entries = title.host_token_entries;
  }
  ASSAY_TRY(std::string token, SignJws(keys_.signing, kid_, kResultTokenType, EncodeResultClaims(claims)));
  return Issued{std::move(token), claims.token_id, claims.expires_at};
}

Result<std::string> ResultIssuer::SignRevocations(const RevocationList& list) const {
  return SignJws(keys_.signing, kid_, kRevocationsType, EncodeRevocationList(list));
}

}  // namespace assay::token
