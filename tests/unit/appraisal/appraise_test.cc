// SPDX-License-Identifier: Apache-2.0
#include "verifier/appraisal/appraise.h"

#include <doctest/doctest.h>

namespace assay::appraisal {
namespace {

struct Case {
  config::Policy policy;
  RuntimeEvidence runtime;
  PlatformEvidence platform;
  Facts facts;
  Case() {
    policy.name = "test";
    policy.runtime_not_asked = true;
    policy.pcrs[4] = {Sha256(AsBytes("kernel"))};
    facts.pcrs[4] = Sha256(AsBytes("kernel"));
    facts.ek_chain = true;
    facts.runtime = &runtime;
    facts.platform = &platform;
    runtime.agent = Sha256(AsBytes("agent"));
  }
  Verdict Judged() const { return Judge(facts, policy); }
  void AskGate() {
    policy.runtime_not_asked = false;
    policy.gate = config::GateRequirement::kEnforce;
  }
};

bool Has(const Verdict& verdict, std::string_view code) {
  for (const auto& reason : verdict.reasons)
    if (reason.code == code) return true;
  return false;
}

TEST_CASE("a machine that shows what was asked is affirming, with no claim on what was not asked") {
  const Verdict verdict = Case().Judged();
  CHECK(verdict.tier == Tier::kAffirming);
  CHECK(verdict.reasons.empty());
  CHECK(verdict.vector.instance_identity == 2);
  CHECK(verdict.vector.configuration == 2);
  CHECK(verdict.vector.executables == 0);
}

TEST_CASE("an unlisted PCR value contradicts, and the reason names PCR and values") {
  Case c;
  c.facts.pcrs[4] = Sha256(AsBytes("other"));
  const Verdict verdict = c.Judged();
  CHECK(verdict.tier == Tier::kContraindicated);
  REQUIRE(Has(verdict, "pcr_value"));
  CHECK(verdict.reasons[0].detail.find("PCR 4") != std::string::npos);
  CHECK(verdict.reasons[0].detail.find(ToHex(Sha256(AsBytes("other")))) != std::string::npos);
  CHECK(verdict.reasons[0].detail.find(ToHex(Sha256(AsBytes("kernel")))) != std::string::npos);
  CHECK(verdict.vector.configuration == 96);
  c.facts.pcrs[4].reset();
  CHECK(Has(c.Judged(), "pcr_missing"));
}

TEST_CASE("each fact of the runtime log that does not fit contradicts") {
  for (const auto& [state, code] : {std::pair{RuntimeLog::kMismatch, "runtime_log_mismatch"},
                                    {RuntimeLog::kMalformed, "runtime_log_malformed"},
                                    {RuntimeLog::kBadBase, "runtime_log_base"}}) {
    Case c;
    c.facts.runtime_log = state;
    CHECK(c.Judged().tier == Tier::kContraindicated);
    CHECK(Has(c.Judged(), code));
  }
  Case resumed;
  resumed.facts.resumed = true;
  CHECK(Has(resumed.Judged(), "hibernated"));
  CHECK(resumed.Judged().tier == Tier::kWarning);
  Case released;
  released.facts.released = true;
  CHECK(Has(released.Judged(), "gate_released"));
  CHECK(released.Judged().tier == Tier::kContraindicated);
}

TEST_CASE("listed agents are asked of every agent that ran since boot") {
  Case c;
  c.policy.agents = {Sha256(AsBytes("agent"))};
  CHECK(c.Judged().tier == Tier::kAffirming);
  c.facts.agents = {Sha256(AsBytes("older agent")), Sha256(AsBytes("agent"))};
  CHECK(Has(c.Judged(), "agent_unlisted"));
  CHECK(c.Judged().tier == Tier::kContraindicated);
}

TEST_CASE("a gate that is asked for must be there, and self-reported claims stay at warning") {
  Case c;
  c.AskGate();
  for (const GateState state : {GateState::kAbsent, GateState::kMonitor, GateState::kMaintenance, GateState::kBroken}) {
    c.runtime.gate = state;
    CHECK(Has(c.Judged(), "gate_state"));
    CHECK(c.Judged().tier == Tier::kContraindicated);
  }
  c.runtime.gate = GateState::kEnforce;
  CHECK(c.Judged().tier == Tier::kWarning);
  CHECK(Has(c.Judged(), "self_reported"));
  c.policy.self_reported_may_affirm = true;
  CHECK(c.Judged().tier == Tier::kAffirming);
  c.policy.self_reported_may_affirm = false;
  c.facts.anchor = RuntimeAnchor::kMeasured;
  CHECK(c.Judged().tier == Tier::kAffirming);
  c.policy.gate_policies = {Sha256(AsBytes("allow list"))};
  CHECK(Has(c.Judged(), "gate_policy"));
  c.policy.gate = config::GateRequirement::kMonitor;
  c.runtime.policy = Sha256(AsBytes("allow list"));
  c.runtime.gate = GateState::kMonitor;
  CHECK(c.Judged().tier == Tier::kAffirming);
}

TEST_CASE("a measured anchor that is demanded is not met by a claim") {
  Case c;
  c.policy.runtime_anchor_measured = true;
  c.runtime.anchor = RuntimeAnchor::kMeasured;
  CHECK(Has(c.Judged(), "runtime_anchor"));
}

TEST_CASE("identity: a bare key and a weak id warn, an unsafe clock is reported") {
  Case bare;
  bare.facts.ek_chain = false;
  CHECK(bare.Judged().tier == Tier::kWarning);
  CHECK(Has(bare.Judged(), "ek_without_certificate"));
  Case weak;
  weak.facts.weak_device_id = true;
  CHECK(weak.Judged().tier == Tier::kWarning);
  weak.policy.weak_device_id_affirms = true;
  CHECK(weak.Judged().tier == Tier::kAffirming);
  CHECK(Has(weak.Judged(), "weak_device_id"));
  Case unsafe;
  unsafe.facts.clock_unsafe = true;
  CHECK(unsafe.Judged().tier == Tier::kAffirming);
  CHECK(Has(unsafe.Judged(), "clock_unsafe"));
  unsafe.policy.clock_unsafe_affirms = false;
  CHECK(unsafe.Judged().tier == Tier::kWarning);
}

TEST_CASE("the worst reason comes first and decides") {
  Case c;
  c.facts.ek_chain = false;
  c.facts.released = true;
  const Verdict verdict = c.Judged();
  CHECK(verdict.tier == Tier::kContraindicated);
  CHECK(verdict.reasons.front().code == "gate_released");
  CHECK(verdict.reasons.size() == 2);
}

}  // namespace
}  // namespace assay::appraisal
