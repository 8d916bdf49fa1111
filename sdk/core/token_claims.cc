// SPDX-License-Identifier: Apache-2.0
// Claims of a result token as JSON. One table a JSON object names its members, in the order in which we write them.
#include <algorithm>
#include <span>

#include "sdk/core/json.h"
#include "sdk/core/token.h"

namespace assay {
namespace {

constexpr std::size_t kClaimsText = limits::kResultToken;
constexpr std::size_t kDigestText = 43;  // base64url of 32 bytes
constexpr char kCnfMember[] = "assay.spki#S256";
constexpr char kSubmodule[] = "assay";
constexpr char kDeveloper[] = "assay";
constexpr char kUnmeasured[] = "unmeasured";

JsonParser& ClaimsParser() {
  thread_local JsonParser parser(kClaimsText);
  return parser;
}

bool GetText(JsonValue value, std::size_t limit, std::string_view& out) noexcept {
  const auto text = value.String();
  if (!text || text->size() > limit) return false;
  for (const char c : *text)
    if (static_cast<std::uint8_t>(c) < 0x20 || c == 0x7F) return false;
  out = *text;
  return true;
}
bool GetTextNotEmpty(JsonValue value, std::size_t limit, std::string_view& out) noexcept {
  return GetText(value, limit, out) && !out.empty();
}

template <typename T>
bool GetUint(JsonValue value, std::uint64_t limit, T& out) noexcept {
  const auto number = value.Int();
  if (!number || *number < 0 || static_cast<std::uint64_t>(*number) > limit) return false;
  out = static_cast<T>(*number);
  return true;
}
bool GetTime(JsonValue value, std::int64_t& out) noexcept { return GetUint(value, std::uint64_t{1} << 40, out); }

bool GetBool(JsonValue value, bool& out) noexcept {
  const auto flag = value.Bool();
  if (flag) out = *flag;
  return flag.has_value();
}

bool DigestFromText(std::string_view text, Digest& out) noexcept {
  return text.size() == kDigestText && FromBase64UrlInto(text, out).ok();
}
bool GetDigest(JsonValue value, Digest& out) noexcept {
  const auto text = value.String();
  return text && DigestFromText(*text, out);
}

struct Member {
  const char* name;
  bool required;
  bool (*read)(ResultView& view, JsonValue value);
};
enum class Others : std::uint8_t { kIgnore, kRefuse };

// Null, or the name of the first member that is missing or wrong. Members usually come in the table's order, so the
// search starts behind the last one found.
const char* ReadObject(JsonValue object, std::span<const Member> table, Others others, ResultView& view) noexcept {
  std::uint64_t seen = 0;
  std::size_t next = 0;
  const char* fault = nullptr;
  const bool whole = object.EachMember([&](std::string_view name, JsonValue value) {
    for (std::size_t i = 0; i < table.size(); ++i) {
      const std::size_t at = next + i < table.size() ? next + i : next + i - table.size();
      if (name != table[at].name) continue;
      next = at + 1;
      seen |= std::uint64_t{1} << at;
      if (!table[at].read(view, value)) fault = table[at].name;
      return fault == nullptr;
    }
    return others == Others::kIgnore;
  });
  if (fault != nullptr) return fault;
  if (!whole) return "json";
  for (std::size_t i = 0; i < table.size(); ++i)
    if (table[i].required && (seen >> i & 1) == 0) return table[i].name;
  return nullptr;
}

bool GetTier(JsonValue value, Tier& out) noexcept {
  const auto text = value.String();
  for (const Tier tier : {Tier::kNone, Tier::kAffirming, Tier::kWarning, Tier::kContraindicated}) {
    if (text && *text == TierName(tier)) {
      out = tier;
      return true;
    }
  }
  return false;
}

bool GetScheme(JsonValue value, SignatureScheme& out) noexcept {
  const auto text = value.String();
  for (const auto scheme :
       {SignatureScheme::kRsaSsaSha256, SignatureScheme::kRsaPssSha256, SignatureScheme::kEcdsaP256Sha256}) {
    if (text && *text == SchemeName(scheme)) {
      out = scheme;
      return true;
    }
  }
  return false;
}

bool GetGate(JsonValue value, GateState& out) noexcept {
  const auto text = value.String();
  for (const auto gate :
       {GateState::kAbsent, GateState::kMonitor, GateState::kEnforce, GateState::kMaintenance, GateState::kBroken}) {
    if (text && *text == GateStateName(gate)) {
      out = gate;
      return true;
    }
  }
  return false;
}

bool GetAnchor(JsonValue value, RuntimeAnchor& out) noexcept {
  const auto text = value.String();
  for (const auto anchor : {RuntimeAnchor::kSelfReported, RuntimeAnchor::kMeasured}) {
    if (text && *text == RuntimeAnchorName(anchor)) {
      out = anchor;
      return true;
    }
  }
  return false;
}

bool GetCaller(JsonValue value, CallerIdentity& out) noexcept {
  const auto text = value.String();
  if (!text) return false;
  out = {};
  if (*text == kUnmeasured) return true;
  out.measured = true;
  return DigestFromText(*text, out.executable);
}

bool GetReasons(JsonValue value, ResultView& view) noexcept {
  view.reason_count = 0;
  return value.EachElement([&view](JsonValue item) {
    return view.reason_count < view.reasons.size() &&
           GetTextNotEmpty(item, kReasonCode, view.reasons[view.reason_count++]);
  });
}

// AR4SI names, in the order of its numbers.
struct VectorMember {
  const char* name;
  std::int8_t TrustVector::*field;
};
constexpr VectorMember kVector[] = {
    {"instance-identity", &TrustVector::instance_identity},
    {"configuration", &TrustVector::configuration},
    {"executables", &TrustVector::executables},
    {"file-system", &TrustVector::file_system},
    {"hardware", &TrustVector::hardware},
    {"runtime-opaque", &TrustVector::runtime_opaque},
    {"storage-opaque", &TrustVector::storage_opaque},
    {"sourced-data", &TrustVector::sourced_data},
};

bool GetVector(JsonValue value, TrustVector& out) noexcept {
  return value.EachMember([&out](std::string_view name, JsonValue item) {
    const auto number = item.Int();
    if (!number || *number < -128 || *number > 127) return false;
    for (const auto& member : kVector) {
      if (name != member.name) continue;
      out.*member.field = static_cast<std::int8_t>(*number);
      return true;
    }
    return false;
  });
}

bool GetPolicies(JsonValue value, std::string_view& out) noexcept {
  std::size_t count = 0;
  return value.EachElement([&](JsonValue item) { return ++count == 1 && GetTextNotEmpty(item, kClaimText, out); }) &&
         count == 1;
}

constexpr Member kCnf[] = {
    {kCnfMember, true, [](ResultView& v, JsonValue j) { return GetDigest(j, v.session_key_hash); }}};

constexpr Member kVerifierId[] = {
    {"developer", true, [](ResultView&, JsonValue j) { return j.String() == kDeveloper; }},
    {"build", true, [](ResultView& v, JsonValue j) { return GetText(j, kClaimText, v.verifier_build); }},
};

constexpr Member kAppraisal[] = {
    {"ear_status", true, [](ResultView& v, JsonValue j) { return GetTier(j, v.tier); }},
    {"ear_trustworthiness_vector", false, [](ResultView& v, JsonValue j) { return GetVector(j, v.vector); }},
    {"ear_appraisal_policy_ids", false, [](ResultView& v, JsonValue j) { return GetPolicies(j, v.appraisal_policy); }},
};
// A second submodule would carry a status that nobody here reads.
constexpr Member kSubmodules[] = {{kSubmodule, true, [](ResultView& v, JsonValue j) {
                                     return ReadObject(j, kAppraisal, Others::kIgnore, v) == nullptr;
                                   }}};

constexpr Member kDevice[] = {
    {"id", true, [](ResultView& v, JsonValue j) { return GetTextNotEmpty(j, kClaimText, v.device_id); }},
    {"key_version", true, [](ResultView& v, JsonValue j) { return GetUint(j, INT64_MAX, v.device_key_version); }},
    {"previous", false,
     [](ResultView& v, JsonValue j) { return GetTextNotEmpty(j, kClaimText, v.previous_device_id); }},
    {"weak", true, [](ResultView& v, JsonValue j) { return GetBool(j, v.weak_device_id); }},
};

constexpr std::uint64_t kPcrMaskLimit = (1U << limits::kPcrs) - 1;

bool GetSpki(JsonValue value, ResultView::Host& host) noexcept {
  const auto text = value.String();
  if (!text || text->empty()) return false;
  const auto size = FromBase64UrlInto(*text, host.aik_spki);
  if (size.ok()) host.aik_spki_size = *size;
  return size.ok();
}

constexpr Member kHost[] = {
    {"attester", true, [](ResultView& v, JsonValue j) { return GetDigest(j, v.attester); }},
    {"aik", true, [](ResultView& v, JsonValue j) { return GetSpki(j, v.host); }},
    {"aik_alg", true, [](ResultView& v, JsonValue j) { return GetScheme(j, v.host.aik_scheme); }},
    {"reset_count", true, [](ResultView& v, JsonValue j) { return GetUint(j, UINT32_MAX, v.host.reset_count); }},
    {"restart_count", true, [](ResultView& v, JsonValue j) { return GetUint(j, UINT32_MAX, v.host.restart_count); }},
    {"clock_ms", true, [](ResultView& v, JsonValue j) { return GetUint(j, INT64_MAX, v.host.clock_ms); }},
    {"boot_pcr_digest", true, [](ResultView& v, JsonValue j) { return GetDigest(j, v.host.boot_pcr_digest); }},
    {"boot_pcr_mask", true, [](ResultView& v, JsonValue j) { return GetUint(j, kPcrMaskLimit, v.host.boot_pcr_mask); }},
    {"pcr14", true, [](ResultView& v, JsonValue j) { return GetDigest(j, v.host.pcr14); }},
    {"allowed_entries", true,
     [](ResultView& v, JsonValue j) { return GetUint(j, UINT32_MAX, v.host.allowed_entries); }},
};

bool GetHost(ResultView& view, JsonValue value) noexcept {
  view.has_host_token = true;
  return ReadObject(value, kHost, Others::kIgnore, view) == nullptr;
}

constexpr Member kClaims[] = {
    {"eat_profile", true, [](ResultView&, JsonValue j) { return j.String() == kEarProfile; }},
    {"iss", true, [](ResultView& v, JsonValue j) { return GetTextNotEmpty(j, kClaimText, v.issuer); }},
    {"aud", true, [](ResultView& v, JsonValue j) { return GetTextNotEmpty(j, limits::kAudience, v.audience); }},
    {"iat", true, [](ResultView& v, JsonValue j) { return GetTime(j, v.issued_at); }},
    {"exp", true, [](ResultView& v, JsonValue j) { return GetTime(j, v.expires_at); }},
    {"jti", true, [](ResultView& v, JsonValue j) { return GetTextNotEmpty(j, kClaimText, v.token_id); }},
    {"eat_nonce", true, [](ResultView& v, JsonValue j) { return GetDigest(j, v.server_nonce); }},
    {"cnf", true, [](ResultView& v, JsonValue j) { return ReadObject(j, kCnf, Others::kRefuse, v) == nullptr; }},
    {"ear_verifier_id", true,
     [](ResultView& v, JsonValue j) { return ReadObject(j, kVerifierId, Others::kIgnore, v) == nullptr; }},
    {"submods", true,
     [](ResultView& v, JsonValue j) { return ReadObject(j, kSubmodules, Others::kRefuse, v) == nullptr; }},
    {"assay.test", false, [](ResultView& v, JsonValue j) { return GetBool(j, v.test); }},
    {"assay.match", true, [](ResultView& v, JsonValue j) { return GetText(j, limits::kMatch, v.match); }},
    {"assay.reasons", true, [](ResultView& v, JsonValue j) { return GetReasons(j, v); }},
    {"assay.device", true,
     [](ResultView& v, JsonValue j) { return ReadObject(j, kDevice, Others::kIgnore, v) == nullptr; }},
    {"assay.caller", true, [](ResultView& v, JsonValue j) { return GetCaller(j, v.caller); }},
    {"assay.runtime_anchor", true, [](ResultView& v, JsonValue j) { return GetAnchor(j, v.anchor); }},
    {"assay.gate", true, [](ResultView& v, JsonValue j) { return GetGate(j, v.gate); }},
    {"assay.gate_policy", true, [](ResultView& v, JsonValue j) { return GetDigest(j, v.policy); }},
    {"assay.gate_policy_version", true,
     [](ResultView& v, JsonValue j) { return GetUint(j, INT64_MAX, v.policy_version); }},
    {"assay.next_attestation", true, [](ResultView& v, JsonValue j) { return GetTime(j, v.next_attestation); }},
    {"assay.host", false, GetHost},
    {"nbf", false, [](ResultView&, JsonValue) { return false; }},  // we never write it and would have to obey it
};

void WriteAppraisal(JsonWriter& out, const ResultClaims& claims) {
  out.Name("submods").BeginObject().Name(kSubmodule).BeginObject();
  out.Name("ear_status").String(TierName(claims.tier));
  if (std::any_of(std::begin(kVector), std::end(kVector), [&](const auto& m) { return claims.vector.*m.field != 0; })) {
    out.Name("ear_trustworthiness_vector").BeginObject();
    for (const auto& m : kVector)
      if (claims.vector.*m.field != 0) out.Name(m.name).Int(claims.vector.*m.field);
    out.EndObject();
  }
  if (!claims.appraisal_policy.empty())
    out.Name("ear_appraisal_policy_ids").BeginArray().String(claims.appraisal_policy).EndArray();
  out.EndObject().EndObject();
}

void WriteHost(JsonWriter& out, const ResultClaims& claims) {
  const HostTokenClaims& host = *claims.host_token;
  out.Name("assay.host").BeginObject();
  out.Name("attester").String(ToBase64Url(claims.attester)).Name("aik").String(ToBase64Url(host.aik_spki));
  out.Name("aik_alg").String(SchemeName(host.aik_scheme));
  out.Name("reset_count")
      .Uint(host.reset_count)
      .Name("restart_count")
      .Uint(host.restart_count)
      .Name("clock_ms")
      .Uint(host.clock_ms);
  out.Name("boot_pcr_digest").String(ToBase64Url(host.boot_pcr_digest)).Name("boot_pcr_mask").Uint(host.boot_pcr_mask);
  out.Name("pcr14").String(ToBase64Url(host.pcr14)).Name("allowed_entries").Uint(host.allowed_entries).EndObject();
}

void WriteOwn(JsonWriter& out, const ResultClaims& claims) {
  if (claims.test) out.Name("assay.test").Bool(true);
  out.Name("assay.match").String(claims.match).Name("assay.reasons").BeginArray();
  for (const auto& reason : claims.reasons) out.String(reason);
  out.EndArray().Name("assay.device").BeginObject().Name("id").String(claims.device_id);
  out.Name("key_version").Uint(claims.device_key_version);
  if (claims.previous_device_id) out.Name("previous").String(*claims.previous_device_id);
  out.Name("weak").Bool(claims.weak_device_id).EndObject();
  out.Name("assay.caller").String(claims.caller.measured ? ToBase64Url(claims.caller.executable) : kUnmeasured);
  out.Name("assay.runtime_anchor")
      .String(RuntimeAnchorName(claims.anchor))
      .Name("assay.gate")
      .String(GateStateName(claims.gate));
  out.Name("assay.gate_policy")
      .String(ToBase64Url(claims.policy))
      .Name("assay.gate_policy_version")
      .Uint(claims.policy_version);
  out.Name("assay.next_attestation").Int(claims.next_attestation);
  if (claims.host_token) WriteHost(out, claims);
}

HostTokenClaims CopyHost(const ResultView::Host& host) {
  return {.aik_spki = ToBuffer(Bytes(host.aik_spki).first(host.aik_spki_size)),
          .aik_scheme = host.aik_scheme,
          .reset_count = host.reset_count,
          .restart_count = host.restart_count,
          .clock_ms = host.clock_ms,
          .boot_pcr_digest = host.boot_pcr_digest,
          .boot_pcr_mask = host.boot_pcr_mask,
          .pcr14 = host.pcr14,
          .allowed_entries = host.allowed_entries};
}

}  // namespace

std::string EncodeResultClaims(const ResultClaims& claims) {
  JsonWriter out;
  out.BeginObject()
      .Name("eat_profile")
      .String(kEarProfile)
      .Name("iss")
      .String(claims.issuer)
      .Name("aud")
      .String(claims.audience);
  out.Name("iat").Int(claims.issued_at).Name("exp").Int(claims.expires_at).Name("jti").String(claims.token_id);
  out.Name("eat_nonce").String(ToBase64Url(claims.server_nonce));
  out.Name("cnf").BeginObject().Name(kCnfMember).String(ToBase64Url(claims.session_key_hash)).EndObject();
  out.Name("ear_verifier_id")
      .BeginObject()
      .Name("developer")
      .String(kDeveloper)
      .Name("build")
      .String(claims.verifier_build)
      .EndObject();
  WriteAppraisal(out, claims);
  WriteOwn(out, claims);
  out.EndObject();
  return std::move(out).Take();
}

const char* ReadResultClaims(std::string_view payload, ResultView& view) noexcept {
  const auto root = ClaimsParser().TryParse(payload);
  if (!root) return "json";
  if (const char* fault = ReadObject(*root, kClaims, Others::kIgnore, view)) return fault;
  return view.expires_at > view.issued_at ? nullptr : "exp";
}

Result<ResultClaims> DecodeResultClaims(std::string_view payload) {
  ResultView view;
  if (const char* fault = ReadResultClaims(payload, view)) {
    return MakeError(Code::kMalformed, std::string("a result token's claim is missing or wrong: ") + fault);
  }
  ResultClaims claims{.issuer = std::string(view.issuer),
                      .audience = std::string(view.audience),
                      .issued_at = view.issued_at,
                      .expires_at = view.expires_at,
                      .token_id = std::string(view.token_id),
                      .verifier_build = std::string(view.verifier_build),
                      .appraisal_policy = std::string(view.appraisal_policy),
                      .test = view.test,
                      .server_nonce = view.server_nonce,
                      .match = std::string(view.match),
                      .session_key_hash = view.session_key_hash,
                      .tier = view.tier,
                      .vector = view.vector,
                      .reasons = {},
                      .device_id = std::string(view.device_id),
                      .device_key_version = view.device_key_version,
                      .previous_device_id = std::nullopt,
                      .weak_device_id = view.weak_device_id,
                      .caller = view.caller,
                      .anchor = view.anchor,
                      .gate = view.gate,
                      .policy = view.policy,
                      .policy_version = view.policy_version,
                      .next_attestation = view.next_attestation,
                      .attester = view.attester,
                      .host_token = std::nullopt};
  for (std::size_t i = 0; i < view.reason_count; ++i) claims.reasons.emplace_back(view.reasons[i]);
  if (!view.previous_device_id.empty()) claims.previous_device_id = std::string(view.previous_device_id);
  if (view.has_host_token) claims.host_token = CopyHost(view.host);
  return claims;
}

}  // namespace assay
