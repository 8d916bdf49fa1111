// SPDX-License-Identifier: Apache-2.0
// Codec of runtime log entries: [index, kind, content], the content an array whose shape the kind fixes.
#include "sdk/core/runtime_log.h"

#include "sdk/core/cbor.h"
#include "sdk/core/crypto.h"
#include "sdk/core/limits.h"

namespace assay {
namespace {

constexpr std::size_t kIdentityItems = 4;
constexpr std::size_t kPolicyItems = 2;

void PutContent(CborWriter& out, const RuntimeEntry& entry) {
  switch (entry.kind) {
    case EntryKind::kIdentity:
      out.Array(kIdentityItems);
      out.ByteString(entry.agent);
      out.ByteString(entry.bpf_object);
      out.ByteString(entry.config);
      out.Uint(entry.predecessor);
      return;
    case EntryKind::kPolicy:
      out.Array(kPolicyItems);
      out.ByteString(entry.policy);
      out.Uint(entry.policy_version);
      return;
    case EntryKind::kBatch:
      out.Array(entry.digests.size());
      for (const Digest& digest : entry.digests) out.ByteString(digest);
      return;
    case EntryKind::kRelease:
    case EntryKind::kStop: out.Array(0); return;
  }
}

void GetContent(CborReader& in, RuntimeEntry& entry) {
  const std::size_t items = in.Array(limits::kRuntimeBatch);
  switch (entry.kind) {
    case EntryKind::kIdentity:
      if (items != kIdentityItems) in.Fail();
      entry.agent = in.Digest32();
      entry.bpf_object = in.Digest32();
      entry.config = in.Digest32();
      entry.predecessor = in.Uint();
      return;
    case EntryKind::kPolicy:
      if (items != kPolicyItems) in.Fail();
      entry.policy = in.Digest32();
      entry.policy_version = in.Uint();
      return;
    case EntryKind::kBatch:
      if (items == 0) in.Fail();
      for (std::size_t left = items; left > 0 && in.ok(); --left) entry.digests.push_back(in.Digest32());
      return;
    case EntryKind::kRelease:
    case EntryKind::kStop:
      if (items != 0) in.Fail();
      return;
  }
}

}  // namespace

Buffer EncodeRuntimeEntry(const RuntimeEntry& entry) {
  CborWriter out(128 + entry.digests.size() * (kSha256Size + 2));
  out.Array(3);
  out.Uint(entry.index);
  out.Uint(static_cast<std::uint8_t>(entry.kind));
  PutContent(out, entry);
  return std::move(out).Take();
}

Result<RuntimeEntry> DecodeRuntimeEntry(Bytes encoded) {
  if (encoded.size() > limits::kRuntimeEntry)
    return MakeError(Code::kLimit, "a runtime log entry is larger than the limit");
  CborReader in(encoded);
  RuntimeEntry entry;
  if (in.Array(3) != 3) in.Fail();
  entry.index = in.Uint();
  const std::uint64_t kind = in.Uint(static_cast<std::uint8_t>(EntryKind::kStop));
  if (kind == 0) in.Fail();
  if (in.ok()) {
    entry.kind = static_cast<EntryKind>(kind);
    GetContent(in, entry);
  }
  ASSAY_CHECK_OK(in.Finish("a runtime log entry"));
  return entry;
}

Digest ExtendWithEntry(const Digest& value, Bytes encoded_entry) noexcept {
  return Sha256({Bytes(value), Bytes(Sha256(encoded_entry))});
}

}  // namespace assay
