// SPDX-License-Identifier: Apache-2.0
#include "sdk/config/policy.h"

#include <doctest/doctest.h>

namespace assay::config {
namespace {

const std::string kZero = "\"sha256:" + std::string(64, '0') + "\"";
const std::string kGood = "name = \"demo\"\nquoted_pcrs = [\"0\", \"7\"]\n[pcr]\n4 = [" + kZero +
                          "]\n[runtime]\nasks = \"nothing\"\n[enrollment]\nmode = \"open\"\nek_roots = "
                          "[\"roots.pem\"]\n[[title]]\naudience = \"a\"\nexecutables = [" +
                          kZero + "]\n";

std::string ProblemOf(const std::string& text) {
  const auto policy = ParsePolicy(text, "p.toml", "/etc/assay");
  return policy.ok() ? "" : policy.error().detail;
}

std::string Replace(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

TEST_CASE("a policy reads whole, and PCR 14 is always quoted") {
  const Policy policy = ParsePolicy(kGood, "p.toml", "/etc/assay").value();
  CHECK(policy.name == "demo");
  CHECK(policy.selection.mask == ((1U << 0) | (1U << 4) | (1U << 7) | (1U << 14)));
  CHECK(policy.runtime_not_asked);
  CHECK(policy.gate == GateRequirement::kNone);
  CHECK(policy.ek_roots.at(0) == "/etc/assay/roots.pem");
  CHECK(policy.titles.at(0).tenant == "a");
  CHECK_FALSE(policy.titles.at(0).host_tokens);
  CHECK(policy.AcceptsPcr14Base(Digest{}));
  CHECK_FALSE(policy.AcceptsPcr14Base(Sha256({})));
  CHECK(policy.digest == Sha256(AsBytes(kGood)));
}

TEST_CASE("what a policy must say, it must say") {
  CHECK(ProblemOf(Replace(kGood, "name = \"demo\"\n", "")).find("name: is missing") != std::string::npos);
  CHECK(ProblemOf(Replace(kGood, "[runtime]\nasks = \"nothing\"\n", "")).find("runtime") != std::string::npos);
  CHECK(ProblemOf(Replace(kGood, "asks = \"nothing\"\n", "")).find("asks") != std::string::npos);
  CHECK(ProblemOf(Replace(kGood, "ek_roots = [\"roots.pem\"]\n", "")).find("ek_roots") != std::string::npos);
  CHECK(ProblemOf(Replace(kGood, "executables = [" + kZero + "]\n", "")).find("nobody could ask") != std::string::npos);
}

TEST_CASE("mistakes are refused by name") {
  CHECK(ProblemOf(Replace(kGood, "asks", "ask")) != "");
  CHECK(ProblemOf(Replace(kGood, "4 = [", "24 = [")).find("PCR numbers") != std::string::npos);
  CHECK(ProblemOf(Replace(kGood, "4 = [" + kZero + "]", "4 = []")).find("at least one") != std::string::npos);
  CHECK(ProblemOf(Replace(kGood, "\"7\"]", "\"x\"]")).find("no PCR number") != std::string::npos);
  CHECK(ProblemOf(Replace(kGood, "asks = \"nothing\"", "asks = \"nothing\"\ngate = \"enforce\"")).find("goes with") !=
        std::string::npos);
  CHECK(ProblemOf(Replace(kGood, "audience = \"a\"", "audience = \"\"")) != "");
  CHECK(ProblemOf(kGood + "[[title]]\naudience = \"a\"\nexecutables = [" + kZero + "]\n").find("stands twice") !=
        std::string::npos);
  CHECK(ProblemOf(kGood + "key_file = \"none.key\"\n").find("none.key") != std::string::npos);
  CHECK(ProblemOf("freshness = \"maybe\"\n" + kGood).find("\"prefetched\", \"asked\"") != std::string::npos);
  CHECK(ProblemOf("aik_algorithms = [\"rsa\"]\n" + kGood) != "");
}

}  // namespace
}  // namespace assay::config
