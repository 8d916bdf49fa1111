// SPDX-License-Identifier: Apache-2.0
// Evidence codec. Every map has fixed keys that all must be there, except where a comment says otherwise:
// one encoding per value, so decode then encode gives the same bytes.
#include "sdk/core/evidence.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "sdk/core/cbor.h"
#include "sdk/core/crypto.h"

namespace assay {
namespace {

constexpr std::size_t kMaxExtraDataInput = 192;
constexpr std::size_t kMaxNonce = 64;

// A cursor over a stack buffer for ExtraData: the message is short and its shape fixed.
class StackCbor {
 public:
  void Byte(std::uint8_t value) noexcept { out_[size_++] = value; }
  void Head(std::uint8_t major, std::size_t value) noexcept {
    if (value < 24) {
      Byte(static_cast<std::uint8_t>((major << 5) | value));
    } else {
      Byte(static_cast<std::uint8_t>((major << 5) | 24));
      Byte(static_cast<std::uint8_t>(value));
    }
  }
  void String(std::uint8_t major, Bytes bytes) noexcept {
    Head(major, bytes.size());
    CopyBytes(bytes, MutableBytes(out_).subspan(size_, bytes.size()));
    size_ += bytes.size();
  }
  Bytes view() const noexcept { return Bytes(out_).first(size_); }

 private:
  std::array<std::uint8_t, kMaxExtraDataInput> out_;
  std::size_t size_ = 0;
};

void PutTri(CborWriter& out, PlatformEvidence::Tri value) { out.Uint(static_cast<std::uint8_t>(value)); }
PlatformEvidence::Tri GetTri(CborReader& in) { return static_cast<PlatformEvidence::Tri>(in.Uint(2)); }

void EncodeBoot(CborWriter& out, const BootEvidence& boot) {
  out.Map(6);
  out.Uint(1);
  out.ByteString(boot.firmware_log);
  out.Uint(2);
  out.ByteString(boot.firmware_known);
  out.Uint(3);
  out.Uint(boot.firmware_offset);
  out.Uint(4);
  out.ByteString(boot.ima_log);
  out.Uint(5);
  out.Uint(boot.ima_offset);
  out.Uint(6);
  out.ByteString(boot.ima_aggregate);
}

void DecodeBoot(CborReader& in, BootEvidence& boot) {
  in.ExpectMap(6);
  in.ExpectKey(1);
  boot.firmware_log = in.ByteString(limits::kFirmwareLog);
  in.ExpectKey(2);
  boot.firmware_known = in.Digest32();
  in.ExpectKey(3);
  boot.firmware_offset = in.Uint(limits::kFirmwareLog);
  in.ExpectKey(4);
  boot.ima_log = in.ByteString(limits::kImaLog);
  in.ExpectKey(5);
  boot.ima_offset = in.Uint();
  in.ExpectKey(6);
  boot.ima_aggregate = in.Digest32();
}

void EncodeRuntime(CborWriter& out, const RuntimeEvidence& runtime) {
  out.Map(13);
  out.Uint(1);
  out.ByteString(runtime.agent);
  out.Uint(2);
  out.ByteString(runtime.bpf_object);
  out.Uint(3);
  out.Uint(static_cast<std::uint8_t>(runtime.gate));
  out.Uint(4);
  out.Uint(static_cast<std::uint8_t>(runtime.anchor));
  out.Uint(5);
  out.Array(runtime.hooks.size());
  for (const auto& hook : runtime.hooks) out.TextString(hook);
  out.Uint(6);
  out.ByteString(runtime.policy);
  out.Uint(7);
  out.Uint(runtime.policy_version);
  out.Uint(8);
  out.TextString(runtime.scope);
  out.Uint(9);
  out.Array(runtime.counters.size());
  for (const auto& counter : runtime.counters) {
    out.Array(2);
    out.TextString(counter.name);
    out.Uint(counter.value);
  }
  out.Uint(10);
  out.Uint(runtime.drops);
  out.Uint(11);
  out.ByteString(runtime.log_base);
  out.Uint(12);
  out.Uint(runtime.log_from);
  out.Uint(13);
  out.Array(runtime.log.size());
  for (const auto& entry : runtime.log) out.ByteString(entry);
}

// The number of items that follow, with room for as many as the rest of the input can hold.
template <typename T>
std::size_t BeginItems(CborReader& in, std::size_t limit, std::size_t input_size, std::vector<T>& items) {
  const std::size_t count = in.Array(limit);
  if (in.ok()) items.reserve(std::min(count, input_size - in.position()));
  return count;
}

void DecodeRuntime(CborReader& in, std::size_t input_size, RuntimeEvidence& runtime) {
  in.ExpectMap(13);
  in.ExpectKey(1);
  runtime.agent = in.Digest32();
  in.ExpectKey(2);
  runtime.bpf_object = in.Digest32();
  in.ExpectKey(3);
  runtime.gate = static_cast<GateState>(in.Uint(4));
  in.ExpectKey(4);
  runtime.anchor = static_cast<RuntimeAnchor>(in.Uint(1));
  in.ExpectKey(5);
  for (std::size_t left = BeginItems(in, limits::kHooks, input_size, runtime.hooks); left > 0 && in.ok(); --left) {
    runtime.hooks.push_back(in.TextString(limits::kShortText));
  }
  in.ExpectKey(6);
  runtime.policy = in.Digest32();
  in.ExpectKey(7);
  runtime.policy_version = in.Uint();
  in.ExpectKey(8);
  runtime.scope = in.TextString(limits::kShortText);
  in.ExpectKey(9);
  for (std::size_t left = BeginItems(in, limits::kCounters, input_size, runtime.counters); left > 0 && in.ok();
       --left) {
    if (in.Array(2) != 2) in.Fail();
    Counter counter;
    counter.name = in.TextString(limits::kShortText);
    counter.value = in.Uint();
    runtime.counters.push_back(counter);
  }
  in.ExpectKey(10);
  runtime.drops = in.Uint();
  in.ExpectKey(11);
  runtime.log_base = in.Digest32();
  in.ExpectKey(12);
  runtime.log_from = in.Uint();
  in.ExpectKey(13);
  for (std::size_t left = BeginItems(in, limits::kRuntimeEntries, input_size, runtime.log); left > 0 && in.ok();
       --left) {
    runtime.log.push_back(in.ByteString(limits::kRuntimeEntry));
  }
}

void EncodePlatform(CborWriter& out, const PlatformEvidence& platform) {
  out.Map(8);
  out.Uint(1);
  PutTri(out, platform.secure_boot);
  out.Uint(2);
  out.TextString(platform.lockdown);
  out.Uint(3);
  PutTri(out, platform.module_signatures);
  out.Uint(4);
  PutTri(out, platform.iommu);
  out.Uint(5);
  out.TextString(platform.kernel_release);
  out.Uint(6);
  out.Uint(platform.taint);
  out.Uint(7);
  PutTri(out, platform.kexec_loaded);
  out.Uint(8);
  PutTri(out, platform.unprivileged_bpf);
}

void DecodePlatform(CborReader& in, PlatformEvidence& platform) {
  in.ExpectMap(8);
  in.ExpectKey(1);
  platform.secure_boot = GetTri(in);
  in.ExpectKey(2);
  platform.lockdown = in.TextString(limits::kShortText);
  in.ExpectKey(3);
  platform.module_signatures = GetTri(in);
  in.ExpectKey(4);
  platform.iommu = GetTri(in);
  in.ExpectKey(5);
  platform.kernel_release = in.TextString(limits::kShortText);
  in.ExpectKey(6);
  platform.taint = in.Uint();
  in.ExpectKey(7);
  platform.kexec_loaded = GetTri(in);
  in.ExpectKey(8);
  platform.unprivileged_bpf = GetTri(in);
}

void EncodeTokenRequest(CborWriter& out, const TokenRequest& request) {
  out.Map(6);
  out.Uint(1);
  out.TextString(request.audience);
  out.Uint(2);
  out.TextString(request.match);
  out.Uint(3);
  out.ByteString(request.server_nonce);
  out.Uint(4);
  out.ByteString(request.session_key_hash);
  out.Uint(5);
  out.Bool(request.caller.measured);
  out.Uint(6);
  out.ByteString(request.caller.executable);
}

TokenRequest DecodeTokenRequest(CborReader& in) {
  TokenRequest request;
  in.ExpectMap(6);
  in.ExpectKey(1);
  request.audience = in.TextString(limits::kAudience);
  in.ExpectKey(2);
  request.match = in.TextString(limits::kMatch);
  in.ExpectKey(3);
  request.server_nonce = in.Digest32();
  in.ExpectKey(4);
  request.session_key_hash = in.Digest32();
  in.ExpectKey(5);
  request.caller.measured = in.Bool();
  in.ExpectKey(6);
  request.caller.executable = in.Digest32();
  if (!request.caller.measured && request.caller.executable != Digest{}) in.Fail();  // one encoding of "unmeasured"
  return request;
}

}  // namespace

std::string_view QuoteTagText(QuoteTag tag) noexcept {
  switch (tag) {
    case QuoteTag::kEvidence: return "assay/evidence/1";
    case QuoteTag::kHostToken: return "assay/host-token/1";
    case QuoteTag::kHeartbeat: return "assay/heartbeat/1";
  }
  std::abort();
}

Digest ExtraData(QuoteTag tag, Bytes nonce, const Digest& body_digest, Bytes channel_binding) noexcept {
  if (nonce.size() > kMaxNonce || (!channel_binding.empty() && channel_binding.size() != kSha256Size)) std::abort();
  StackCbor cbor;
  cbor.Head(4, 4);
  cbor.String(3, AsBytes(QuoteTagText(tag)));
  cbor.String(2, nonce);
  cbor.String(2, body_digest);
  if (channel_binding.empty()) cbor.Byte(0xF6);
  else cbor.String(2, channel_binding);
  return Sha256(cbor.view());
}

std::uint32_t PcrValues::Mask() const noexcept {
  std::uint32_t mask = 0;
  for (std::size_t i = 0; i < count; ++i) mask |= 1U << items[i].pcr;
  return mask;
}

const PcrValue* PcrValues::Find(std::uint8_t pcr) const noexcept {
  for (std::size_t i = 0; i < count; ++i)
    if (items[i].pcr == pcr) return &items[i];
  return nullptr;
}

std::string_view GateStateName(GateState state) noexcept {
  switch (state) {
    case GateState::kAbsent: return "absent";
    case GateState::kMonitor: return "monitor";
    case GateState::kEnforce: return "enforce";
    case GateState::kMaintenance: return "maintenance";
    case GateState::kBroken: return "broken";
  }
  return "unknown";
}

Result<GateState> GateStateFromName(std::string_view name) {
  for (const GateState state :
       {GateState::kAbsent, GateState::kMonitor, GateState::kEnforce, GateState::kMaintenance, GateState::kBroken}) {
    if (GateStateName(state) == name) return state;
  }
  return MakeError(Code::kMalformed, "a gate state is absent, monitor, enforce, maintenance or broken");
}

std::string_view RuntimeAnchorName(RuntimeAnchor anchor) noexcept {
  return anchor == RuntimeAnchor::kMeasured ? "measured" : "self_reported";
}

Buffer EncodeEvidenceBody(const EvidenceBody& body) {
  CborWriter out(1024 + body.boot.firmware_log.size() + body.boot.ima_log.size());
  out.Map(body.request ? 6 : 5);
  out.Uint(1);
  out.Uint(kEvidenceVersion);
  out.Uint(2);
  out.ByteString(body.attester);
  out.Uint(3);
  EncodeBoot(out, body.boot);
  out.Uint(4);
  EncodeRuntime(out, body.runtime);
  out.Uint(5);
  EncodePlatform(out, body.platform);
  if (body.request) {
    out.Uint(6);
    EncodeTokenRequest(out, *body.request);
  }
  return std::move(out).Take();
}

Result<EvidenceBody> DecodeEvidenceBody(Bytes encoded) {
  CborReader in(encoded);
  Result<EvidenceBody> decoded{EvidenceBody{}};  // filled where the caller finds it: a body is large to move
  EvidenceBody& body = *decoded;
  const std::size_t pairs = in.Map(6);
  if (pairs < 5) in.Fail();
  in.ExpectKey(1);
  const bool other_version = in.Uint() != kEvidenceVersion && in.ok();
  if (other_version) in.Fail();
  in.ExpectKey(2);
  body.attester = in.Digest32();
  in.ExpectKey(3);
  DecodeBoot(in, body.boot);
  in.ExpectKey(4);
  DecodeRuntime(in, encoded.size(), body.runtime);
  in.ExpectKey(5);
  DecodePlatform(in, body.platform);
  if (pairs == 6) {
    in.ExpectKey(6);
    body.request = DecodeTokenRequest(in);
  }
  if (other_version) decoded = MakeError(Code::kUnsupported, "evidence of another version than 1");
  else if (!in.ok() || !in.AtEnd()) decoded = in.Finish("the evidence body").error();
  return decoded;
}

Buffer EncodeEvidence(const Evidence& evidence) {
  CborWriter out(evidence.body.size() + 2048);
  out.Map(6);
  out.Uint(1);
  out.ByteString(evidence.body);
  out.Uint(2);
  out.ByteString(evidence.quote);
  out.Uint(3);
  out.ByteString(evidence.signature);
  out.Uint(4);
  out.ByteString(evidence.nonce);
  out.Uint(5);
  out.Uint(static_cast<std::uint16_t>(evidence.pcrs.hash));
  out.Uint(6);
  out.Array(evidence.pcrs.count);
  for (std::size_t i = 0; i < evidence.pcrs.count; ++i) {
    out.Array(2);
    out.Uint(evidence.pcrs.items[i].pcr);
    out.ByteString(evidence.pcrs.items[i].value);
  }
  return std::move(out).Take();
}

Result<Evidence> DecodeEvidence(Bytes encoded) {
  CborReader in(encoded);
  Result<Evidence> decoded{Evidence{}};
  Evidence& evidence = *decoded;
  in.ExpectMap(6);
  in.ExpectKey(1);
  evidence.body = in.ByteString(limits::kEvidenceBody);
  in.ExpectKey(2);
  evidence.quote = in.ByteString(limits::kAttest);
  in.ExpectKey(3);
  evidence.signature = in.ByteString(limits::kSignature);
  in.ExpectKey(4);
  evidence.nonce = in.ByteString(limits::kChallenge);
  if (evidence.nonce.size() != limits::kChallenge) in.Fail();
  in.ExpectKey(5);
  evidence.pcrs.hash = static_cast<tpm::Alg>(in.Uint(0xFFFF));
  const std::size_t size = tpm::DigestSize(evidence.pcrs.hash);
  if (size == 0) in.Fail();
  in.ExpectKey(6);
  const std::size_t count = in.Array(limits::kPcrs);
  int previous = -1;
  for (std::size_t i = 0; i < count && in.ok(); ++i) {
    if (in.Array(2) != 2) in.Fail();
    PcrValue& item = evidence.pcrs.items[i];
    item.pcr = static_cast<std::uint8_t>(in.Uint(limits::kPcrs - 1));
    if (static_cast<int>(item.pcr) <= previous) in.Fail();
    previous = item.pcr;
    item.value = in.ByteString(limits::kPcrDigest);
    if (item.value.size() != size) in.Fail();
  }
  evidence.pcrs.count = in.ok() ? count : 0;
  if (!in.ok() || !in.AtEnd()) decoded = in.Finish("evidence").error();
  return decoded;
}

}  // namespace assay
