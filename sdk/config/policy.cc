// SPDX-License-Identifier: Apache-2.0
#include "sdk/config/policy.h"

#include <algorithm>
#include <charconv>

#include "sdk/config/document.h"
#include "sdk/config/files.h"
#include "sdk/core/limits.h"
#include "sdk/core/runtime_log.h"

namespace assay::config {
namespace {

constexpr std::size_t kMaxPolicyFile = 1U << 20;
constexpr std::size_t kTitleKeySize = 32;
constexpr std::uint8_t kRuntimeLogPcr = 14;
constexpr std::uint64_t kMaxTokenLifetimeMs = 24ULL * 3600 * 1000;

std::string Resolve(const std::string& directory, const std::string& path) {
  return path.empty() || path.front() == '/' ? path : directory + "/" + path;
}

bool ParsePcr(std::string_view text, std::uint8_t& pcr) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value >= limits::kPcrs) return false;
  pcr = static_cast<std::uint8_t>(value);
  return true;
}

void ReadPcrs(Table& root, Policy& policy) {
  policy.selection.hash = tpm::Alg::kSha256;
  for (const auto& text : root.Strings("quoted_pcrs")) {
    std::uint8_t pcr = 0;
    if (ParsePcr(text, pcr)) policy.selection.mask |= 1U << pcr;
    else root.Problem("quoted_pcrs", "\"" + text + "\" is no PCR number (\"0\" to \"23\")");
  }
  if (auto pcrs = root.Sub("pcr")) {
    for (const auto& key : pcrs->Keys()) {
      std::uint8_t pcr = 0;
      if (!ParsePcr(key, pcr)) {
        pcrs->Problem(key, "the keys of [pcr] are PCR numbers, 0 to 23");
        continue;
      }
      auto accepted = pcrs->Digests(key);
      if (accepted.empty()) pcrs->Problem(key, "needs at least one accepted value, \"sha256:<64 hexadecimal digits>\"");
      policy.selection.mask |= 1U << pcr;
      policy.pcrs[pcr] = std::move(accepted);
    }
  }
  policy.selection.mask |= 1U << kRuntimeLogPcr;  // the agent's log is always checked
  policy.pcr14_base = root.Digests("pcr14_base");
}

void ReadRuntime(Table& root, Policy& policy) {
  auto runtime = root.Sub("runtime");
  if (!runtime) {
    root.Problem("runtime", "is missing: say [runtime] asks = \"nothing\" or asks = \"gate\"");
    return;
  }
  const std::string asks = runtime->OneOf("asks", "", {"nothing", "gate"});
  policy.runtime_not_asked = asks == "nothing";
  if (asks.empty()) runtime->Problem("asks", "is missing: \"nothing\" or \"gate\"");
  const std::string gate =
      runtime->OneOf("gate", policy.runtime_not_asked ? "none" : "enforce", {"none", "monitor", "enforce"});
  policy.gate = gate == "none"      ? GateRequirement::kNone
                : gate == "monitor" ? GateRequirement::kMonitor
                                    : GateRequirement::kEnforce;
  if (policy.runtime_not_asked != (policy.gate == GateRequirement::kNone)) {
    runtime->Problem("gate",
                     "asks = \"nothing\" goes with gate = \"none\", asks = \"gate\" with \"monitor\" or \"enforce\"");
  }
  policy.agents = runtime->Digests("agents");
  policy.gate_policies = runtime->Digests("gate_policies");
  policy.runtime_anchor_measured = runtime->OneOf("anchor", "any", {"any", "measured"}) == "measured";
  policy.self_reported_may_affirm = runtime->Bool("self_reported_may_affirm", false);
}

void ReadClock(Table& root, Policy& policy) {
  policy.freshness_asked = root.OneOf("freshness", "prefetched", {"prefetched", "asked"}) == "asked";
  policy.clock_unsafe_affirms = root.OneOf("clock_unsafe", "report", {"report", "warn"}) == "report";
  policy.weak_device_id_affirms = root.OneOf("weak_device_id", "warn", {"report", "warn"}) == "report";
}

void ReadAlgorithms(Table& root, Policy& policy) {
  auto names = root.Strings("aik_algorithms");
  if (names.empty()) names = {"rsassa", "rsapss", "ecdsa-p256"};
  for (const auto& name : names) {
    if (name == "rsassa") policy.aik_schemes.push_back(SignatureScheme::kRsaSsaSha256);
    else if (name == "rsapss") policy.aik_schemes.push_back(SignatureScheme::kRsaPssSha256);
    else if (name == "ecdsa-p256") policy.aik_schemes.push_back(SignatureScheme::kEcdsaP256Sha256);
    else root.Problem("aik_algorithms", "\"" + name + "\" is none of rsassa, rsapss, ecdsa-p256");
  }
}

void ReadEnrollment(Table& root, Policy& policy, const std::string& directory) {
  auto table = root.Sub("enrollment");
  if (!table) {
    root.Problem("enrollment", "is missing: name at least ek_roots, the manufacturers' root certificates");
    return;
  }
  policy.enrollment_open = table->OneOf("mode", "token", {"token", "open"}) == "open";
  policy.allow_ek_key = table->OneOf("ek", "chain", {"chain", "ek-key"}) == "ek-key";
  for (const auto& name : table->Strings("other_eks")) {
    if (name == "rsa2048-high") policy.ek_kinds.push_back(tpm::EkKind::kRsa2048High);
    else if (name == "p256") policy.ek_kinds.push_back(tpm::EkKind::kEccP256Low);
    else if (name == "p256-high") policy.ek_kinds.push_back(tpm::EkKind::kEccP256High);
    else if (name == "p384-high") policy.ek_kinds.push_back(tpm::EkKind::kEccP384High);
    else table->Problem("other_eks", "\"" + name + "\" is none of rsa2048-high, p256, p256-high, p384-high");
  }
  policy.require_canonical_proof = table->Bool("require_canonical_proof", false);
  policy.ek_allow_expired = table->Bool("allow_expired_ek_certificates", true);
  policy.ek_allow_sha1 = table->Bool("allow_sha1_signatures", false);
  for (const auto& path : table->Strings("ek_roots")) policy.ek_roots.push_back(Resolve(directory, path));
  for (const auto& path : table->Strings("ek_intermediates"))
    policy.ek_intermediates.push_back(Resolve(directory, path));
  if (policy.ek_roots.empty() && !policy.allow_ek_key)
    table->Problem("ek_roots", "is empty: no EK certificate could be trusted");
}

Secret ReadTitleKey(Table& table, const std::string& path) {
  const auto file = ReadSecretFile(path, 256);
  if (!file.ok()) {
    table.Problem("key_file", file.error().detail);
    return {};
  }
  std::string_view text = AsText(file->view());
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  const auto key = FromHex(text);
  if (!key.ok() || key->size() != kTitleKeySize) {
    table.Problem("key_file", path + ": must hold 64 hexadecimal digits (32 bytes)");
    return {};
  }
  return Secret::CopyOf(*key);
}

void ReadTitles(Table& root, Policy& policy, const std::string& directory) {
  for (auto& table : root.Array("title")) {
    Title title;
    title.audience = table.RequiredString("audience");
    title.tenant = table.String("tenant", title.audience);
    title.executables = table.Digests("executables");
    if (const std::string file = table.String("key_file", ""); !file.empty())
      title.key = ReadTitleKey(table, Resolve(directory, file));
    title.lifetime_s = table.DurationMs("result_lifetime", 300'000, 10'000, kMaxTokenLifetimeMs) / 1000;
    title.host_tokens = table.Bool("host_tokens", false);
    for (const auto& kind : table.Strings("host_token_entries")) {
      if (kind == "batch") title.host_token_entries |= 1U << static_cast<unsigned>(EntryKind::kBatch);
      else if (kind == "policy") title.host_token_entries |= 1U << static_cast<unsigned>(EntryKind::kPolicy);
      else table.Problem("host_token_entries", "\"" + kind + "\" is none of batch, policy");
    }
    if (title.audience.empty() || title.audience.size() > limits::kAudience)
      table.Problem("audience", "must have 1 to 256 bytes");
    if (title.key.empty() && title.executables.empty())
      table.Problem("key_file", "a title needs a key_file or listed executables: nobody could ask for its tokens");
    const bool twice = std::any_of(policy.titles.begin(), policy.titles.end(),
                                   [&](const Title& other) { return other.audience == title.audience; });
    if (twice) table.Problem("audience", "\"" + title.audience + "\" stands twice");
    policy.titles.push_back(std::move(title));
  }
}

}  // namespace

bool Policy::AcceptsPcr14Base(const Digest& base) const noexcept {
  if (pcr14_base.empty()) return base == Digest{};
  return std::find(pcr14_base.begin(), pcr14_base.end(), base) != pcr14_base.end();
}

Result<Policy> ParsePolicy(std::string_view text, const std::string& name, const std::string& directory) {
  ASSAY_TRY(Document document, Document::Parse(text, name));
  Table root = document.root();
  Policy policy;
  policy.digest = Sha256(AsBytes(text));
  policy.name = root.RequiredString("name");
  ReadPcrs(root, policy);
  ReadRuntime(root, policy);
  ReadClock(root, policy);
  ReadAlgorithms(root, policy);
  ReadEnrollment(root, policy, directory);
  ReadTitles(root, policy, directory);
  ASSAY_CHECK_OK(document.Finish());
  return policy;
}

Result<Policy> LoadPolicy(const std::string& path) {
  ASSAY_TRY(const std::string text, ReadTextFile(path, kMaxPolicyFile));
  const std::size_t slash = path.rfind('/');
  return ParsePolicy(text, path, slash == std::string::npos ? "." : path.substr(0, slash));
}

}  // namespace assay::config
