// SPDX-License-Identifier: Apache-2.0
// Every key of a policy: good values are kept, bad ones refused with their line.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "sdk/config/policy.h"
#include "tests/support/temp_dir.h"

namespace assay::config {
namespace {

const std::string kA = "\"sha256:" + std::string(64, 'a') + "\"";

// Lines 1 to 10; top-level keys go before, keys of the last title after.
const std::string kBase =
    "name = \"p\"\n[pcr]\n0 = [" + kA +
    "]\n[runtime]\nasks = \"gate\"\n[enrollment]\nek_roots = [\"r\"]\n[[title]]\naudience = \"game\"\nexecutables = [" +
    kA + "]\n";

std::string ProblemOf(const std::string& text, const std::string& directory = "/none") {
  const auto policy = ParsePolicy(text, "p.toml", directory);
  return policy.ok() ? "" : policy.error().detail;
}

std::string After(const std::string& anchor, const std::string& line) {
  std::string text = kBase;
  return text.insert(text.find(anchor) + anchor.size(), line + "\n");
}

void CheckRefused(const std::string& text, const std::string& place, const std::string& line) {
  const std::string problem = ProblemOf(text);
  const std::string key = line.substr(0, line.find(' '));
  CHECK_MESSAGE(problem.find(place) == 0, line << " gave " << problem);
  CHECK_MESSAGE(problem.find(key) != std::string::npos, line << " gave " << problem);
}

TEST_CASE("a policy that asks for the gate reads with strict defaults") {
  const Policy policy = ParsePolicy(kBase, "p.toml", "/none").value();
  CHECK(policy.gate == GateRequirement::kEnforce);
  CHECK_FALSE(policy.runtime_not_asked);
  CHECK_FALSE(policy.self_reported_may_affirm);
  CHECK_FALSE(policy.enrollment_open);
  CHECK_FALSE(policy.allow_ek_key);
  CHECK_FALSE(policy.weak_device_id_affirms);
  CHECK_FALSE(policy.ek_allow_sha1);
  CHECK_FALSE(policy.freshness_asked);
  CHECK(policy.aik_schemes.size() == 3);
  CHECK(policy.titles.at(0).key.empty());
}

TEST_CASE("each key's good value is kept") {
  const auto read = [](const std::string& text) { return ParsePolicy(text, "p.toml", "/none").value(); };
  CHECK(read("freshness = \"asked\"\n" + kBase).freshness_asked);
  CHECK_FALSE(read("clock_unsafe = \"warn\"\n" + kBase).clock_unsafe_affirms);
  CHECK(read("weak_device_id = \"report\"\n" + kBase).weak_device_id_affirms);
  CHECK(read("aik_algorithms = [\"ecdsa-p256\"]\n" + kBase).aik_schemes ==
        std::vector{SignatureScheme::kEcdsaP256Sha256});
  CHECK(read("pcr14_base = [" + kA + "]\n" + kBase).pcr14_base.size() == 1);
  const std::string runtime = "asks = \"gate\"\n", enrollment = "ek_roots = [\"r\"]\n";
  CHECK(read(After(runtime, "gate = \"monitor\"")).gate == GateRequirement::kMonitor);
  CHECK(read(After(runtime, "agents = [" + kA + "]")).agents.size() == 1);
  CHECK(read(After(runtime, "gate_policies = [" + kA + "]")).gate_policies.size() == 1);
  CHECK(read(After(runtime, "anchor = \"measured\"")).runtime_anchor_measured);
  CHECK(read(After(runtime, "self_reported_may_affirm = true")).self_reported_may_affirm);
  CHECK(read(After(enrollment, "mode = \"open\"")).enrollment_open);
  CHECK(read(After(enrollment, "ek = \"ek-key\"")).allow_ek_key);
  CHECK(read(After(enrollment, "other_eks = [\"rsa2048-high\", \"p256\", \"p256-high\", \"p384-high\"]"))
            .ek_kinds.size() == 4);
  CHECK(read(After(enrollment, "require_canonical_proof = true")).require_canonical_proof);
  CHECK_FALSE(read(After(enrollment, "allow_expired_ek_certificates = false")).ek_allow_expired);
  CHECK(read(After(enrollment, "allow_sha1_signatures = true")).ek_allow_sha1);
  CHECK(read(After(enrollment, "ek_intermediates = [\"/i\"]")).ek_intermediates == std::vector<std::string>{"/i"});
  CHECK(read(kBase + "tenant = \"t\"\n").titles[0].tenant == "t");
  CHECK(read(kBase + "result_lifetime = \"60s\"\n").titles[0].lifetime_s == 60);
  CHECK(
      read(kBase + "host_tokens = true\nhost_token_entries = [\"batch\", \"policy\"]\n").titles[0].host_token_entries !=
      0);
}

TEST_CASE("each top-level key's bad value is refused with its line") {
  for (const std::string line :
       {"freshness = \"always\"", "freshness = true", "clock_unsafe = \"ignore\"", "weak_device_id = \"affirm\"",
        "aik_algorithms = [\"rsa1024\"]", "aik_algorithms = \"rsassa\"", "pcr14_base = [\"00\"]",
        "quoted_pcrs = [\"24\"]", "quoted_pcrs = [\"-1\"]", "quoted_pcrs = [1]", "unknown = 1", "agents = []"}) {
    CheckRefused(line + "\n" + kBase, "p.toml:1: ", line);
  }
  for (const std::string name : {"\"\"", "5"}) {
    std::string text = kBase;
    CheckRefused(text.replace(text.find("\"p\""), 3, name), "p.toml:1", "name = ");
  }
}

TEST_CASE("each bad value within a table is refused with its line") {
  for (const std::string& line :
       std::vector<std::string>{"1 = []", "24 = [" + kA + "]", "x = [" + kA + "]",
                                "1 = [\"sha1:" + std::string(40, 'a') + "\"]", "01x = 5", "1 = " + kA}) {
    CheckRefused(After("[pcr]\n", line), "p.toml:3: [pcr]", line);
  }
  for (const std::string line : {"gate = \"none\"", "gate = \"on\"", "agents = [\"x\"]", "gate_policies = [1]",
                                 "anchor = \"self_reported\"", "self_reported_may_affirm = \"yes\"", "unknown = 1"}) {
    CheckRefused(After("[runtime]\n", line), "p.toml:5: [runtime]", line);
  }
  for (const std::string line : {"mode = \"closed\"", "ek = \"any\"", "other_eks = [\"rsa1024\"]", "other_eks = true",
                                 "require_canonical_proof = 1", "allow_expired_ek_certificates = \"no\"",
                                 "allow_sha1_signatures = 0", "ek_intermediates = \"x\"", "unknown = 1"}) {
    CheckRefused(After("[enrollment]\n", line), "p.toml:7: [enrollment]", line);
  }
  for (const std::string line :
       {"tenant = 1", "result_lifetime = \"1s\"", "result_lifetime = \"25h\"", "result_lifetime = 300",
        "host_tokens = \"on\"", "host_token_entries = [\"stop\"]", "key_file = \"absent.key\"", "unknown = 1"}) {
    CheckRefused(After("[[title]]\n", line), "p.toml:9: [[title]]", line);
  }
  CheckRefused(kBase + "[[title]]\naudience = \"" + std::string(257, 'x') + "\"\nexecutables = [" + kA + "]\n",
               "p.toml:12: [[title]]", "audience = ");
}

TEST_CASE("a title's key file holds 32 bytes in hexadecimal and is private") {
  namespace fs = std::filesystem;
  const test::TempDir dir;
  const auto write = [&](const std::string& text, fs::perms mode) {
    fs::remove(dir / "t.key");
    std::ofstream(dir / "t.key") << text;
    fs::permissions(dir / "t.key", mode);
  };
  const std::string text = kBase + "key_file = \"t.key\"\n";
  const auto owner = fs::perms::owner_read | fs::perms::owner_write;
  write(std::string(64, 'b') + "\n", owner);
  CHECK(ParsePolicy(text, "p.toml", dir.path()).value().titles[0].key.view().size() == 32);
  write(std::string(62, 'b') + "\n", owner);
  CHECK(ProblemOf(text, dir.path()).find("64 hexadecimal digits") != std::string::npos);
  write(std::string(63, 'b') + "g\n", owner);
  CHECK(ProblemOf(text, dir.path()).find("64 hexadecimal digits") != std::string::npos);
  write(std::string(64, 'b') + "\n", owner | fs::perms::others_read);
  CHECK(ProblemOf(text, dir.path()).find("t.key") != std::string::npos);
}

TEST_CASE("any cut of a policy is refused or still a whole policy, never a crash") {
  std::size_t whole = 0;
  for (std::size_t size = 0; size < kBase.size(); ++size) {
    const auto policy = ParsePolicy(std::string_view(kBase).substr(0, size), "p.toml", "/none");
    if (policy.ok()) ++whole;
    else CHECK(policy.error().code == Code::kConfig);
  }
  CHECK(whole < 20);  // within the optional last lines only
}

}  // namespace
}  // namespace assay::config
