// SPDX-License-Identifier: Apache-2.0
#include "verifier/appraisal/appraise.h"

#include <algorithm>

namespace assay::appraisal {
namespace {

// AR4SI trustworthiness claims (draft-ietf-rats-ar4si, section 2.3): 2 affirming, 32 warning, 96 contraindicated.
constexpr std::int8_t kAffirm = 2;
constexpr std::int8_t kWarn = 32;
constexpr std::int8_t kContra = 96;

std::int8_t ValueOf(Tier tier) noexcept {
  switch (tier) {
    case Tier::kNone: return 0;
    case Tier::kAffirming: return kAffirm;
    case Tier::kWarning: return kWarn;
    case Tier::kContraindicated: return kContra;
  }
  return kContra;
}

class Judgement {
 public:
  explicit Judgement(const config::Policy& policy) : policy_(policy) { verdict_.tier = Tier::kAffirming; }

  // Records a reason, lowers the verdict and the claim that it concerns.
  void Add(std::int8_t TrustVector::*claim, Reason reason) {
    if (reason.tier > verdict_.tier) verdict_.tier = reason.tier;
    verdict_.vector.*claim = std::max(verdict_.vector.*claim, ValueOf(reason.tier));
    if (verdict_.reasons.size() < limits::kReasons) verdict_.reasons.push_back(std::move(reason));
  }
  void Affirm(std::int8_t TrustVector::*claim) { verdict_.vector.*claim = std::max(verdict_.vector.*claim, kAffirm); }
  const config::Policy& policy() const { return policy_; }
  Verdict Finish() && {
    std::stable_sort(verdict_.reasons.begin(), verdict_.reasons.end(),
                     [](const Reason& a, const Reason& b) { return a.tier > b.tier; });
    return std::move(verdict_);
  }

 private:
  const config::Policy& policy_;
  Verdict verdict_;
};

std::string Sha(const Digest& digest) { return "sha256:" + ToHex(digest); }

std::string Accepted(const std::vector<Digest>& values) {
  if (values.empty()) return "none";
  std::string text = Sha(values.front());
  if (values.size() > 1) text += " or " + std::to_string(values.size() - 1) + " more";
  return text;
}

void JudgeIdentity(Judgement& judgement, const Facts& facts) {
  judgement.Affirm(&TrustVector::instance_identity);
  judgement.Affirm(&TrustVector::hardware);
  if (!facts.ek_chain) {
    judgement.Add(
        &TrustVector::hardware,
        {"ek_without_certificate", Tier::kWarning, "the endorsement key has no certificate chain to a manufacturer",
         "enroll with the TPM's EK certificate; a software TPM cannot be told from hardware"});
  }
  if (facts.weak_device_id) {
    judgement.Add(&TrustVector::instance_identity,
                  {"weak_device_id", judgement.policy().weak_device_id_affirms ? Tier::kNone : Tier::kWarning,
                   "the host id does not come from the proven canonical EK: one TPM may carry several such ids",
                   "re-enroll with the RSA-2048 EK at 0x01C00002 (assay-enroll enroll --ek rsa2048)"});
  }
  if (facts.clock_unsafe) {
    judgement.Add(
        &TrustVector::instance_identity,
        {"clock_unsafe", judgement.policy().clock_unsafe_affirms ? Tier::kNone : Tier::kWarning,
         "the TPM's clock went back after an unorderly shutdown", "shut down in order; the next boot clears this"});
  }
}

void JudgePcrs(Judgement& judgement, const Facts& facts) {
  judgement.Affirm(&TrustVector::configuration);
  for (const auto& [pcr, accepted] : judgement.policy().pcrs) {
    const auto& value = facts.pcrs[pcr];
    const std::string name = "PCR " + std::to_string(pcr);
    if (!value) {
      judgement.Add(&TrustVector::configuration,
                    {"pcr_missing", Tier::kContraindicated, name + " is judged by the policy but was not quoted",
                     "add it to the policy's selection"});
    } else if (std::find(accepted.begin(), accepted.end(), *value) == accepted.end()) {
      judgement.Add(
          &TrustVector::configuration,
          {"pcr_value", Tier::kContraindicated, name + " is " + Sha(*value) + ", accepted is " + Accepted(accepted),
           "boot a listed configuration, or list this value after finding out what extended " + name});
    }
  }
}

void JudgeRuntimeLog(Judgement& judgement, const Facts& facts) {
  constexpr auto claim = &TrustVector::runtime_opaque;
  switch (facts.runtime_log) {
    case RuntimeLog::kReplays: judgement.Affirm(claim); break;
    case RuntimeLog::kMismatch:
      judgement.Add(
          claim,
          {"runtime_log_mismatch", Tier::kContraindicated,
           "the agent's log does not give the quoted PCR 14: something else extended it, or entries were lost",
           "find out what extends PCR 14 and reboot; assay-agent doctor shows the first entry that does not fit"});
      break;
    case RuntimeLog::kMalformed:
      judgement.Add(claim, {"runtime_log_malformed", Tier::kContraindicated,
                            "an entry of the agent's log does not decode or an index is missing",
                            "reinstall the agent and reboot"});
      break;
    case RuntimeLog::kBadBase:
      judgement.Add(claim, {"runtime_log_base", Tier::kContraindicated,
                            "PCR 14 had an unlisted value before the agent's first entry",
                            "list the value under pcr14_base when the boot loader explains it (shim's MOK entries)"});
      break;
  }
  if (facts.resumed) {
    judgement.Add(claim, {"hibernated", Tier::kWarning,
                          "the registers were reset under a running agent, as a resume from hibernation does: what was "
                          "measured before is gone",
                          "reboot; disable hibernation on machines that must attest"});
  }
  if (facts.released) {
    judgement.Add(claim, {"gate_released", Tier::kContraindicated, "the gate was lowered since this boot",
                          "reboot with the gate enabled"});
  }
}

void JudgeAgents(Judgement& judgement, const Facts& facts) {
  const auto& listed = judgement.policy().agents;
  if (listed.empty()) return;
  const auto unlisted = [&](const Digest& agent) {
    return std::find(listed.begin(), listed.end(), agent) == listed.end();
  };
  std::vector<Digest> seen = facts.agents;
  if (std::find(seen.begin(), seen.end(), facts.runtime->agent) == seen.end()) seen.push_back(facts.runtime->agent);
  for (const auto& agent : seen) {
    if (!unlisted(agent)) continue;
    judgement.Add(&TrustVector::executables, {"agent_unlisted", Tier::kContraindicated,
                                              "an agent with digest " + Sha(agent) + " ran since this boot",
                                              "install a listed agent and reboot, or list this digest under agents"});
  }
}

void JudgeGate(Judgement& judgement, const Facts& facts) {
  const config::Policy& policy = judgement.policy();
  constexpr auto claim = &TrustVector::executables;
  const RuntimeEvidence& runtime = *facts.runtime;
  if (policy.gate == config::GateRequirement::kNone) return;
  const bool strong = runtime.gate == GateState::kEnforce;
  const bool monitor = runtime.gate == GateState::kMonitor && policy.gate == config::GateRequirement::kMonitor;
  if (!strong && !monitor) {
    judgement.Add(claim, {"gate_state", Tier::kContraindicated,
                          "the gate is " + std::string(GateStateName(runtime.gate)) + ", the policy asks for " +
                              (policy.gate == config::GateRequirement::kEnforce ? "enforce" : "monitor or enforce"),
                          "start the agent with the gate in the required mode"});
    return;
  }
  if (!policy.gate_policies.empty() && std::find(policy.gate_policies.begin(), policy.gate_policies.end(),
                                                 runtime.policy) == policy.gate_policies.end()) {
    judgement.Add(claim, {"gate_policy", Tier::kContraindicated,
                          "the gate's policy " + Sha(runtime.policy) + " is not listed", "load a listed gate policy"});
    return;
  }
  judgement.Affirm(claim);
}

void JudgeAnchor(Judgement& judgement, const Facts& facts) {
  const config::Policy& policy = judgement.policy();
  if (policy.runtime_anchor_measured && facts.anchor != RuntimeAnchor::kMeasured) {
    judgement.Add(&TrustVector::runtime_opaque,
                  {"runtime_anchor", Tier::kContraindicated,
                   "runtime claims are self-reported, the policy asks for a measured anchor",
                   "put agent, BPF object and unit under measurement before the first PCR 14 entry"});
  } else if (policy.gate != config::GateRequirement::kNone && facts.anchor == RuntimeAnchor::kSelfReported &&
             !policy.self_reported_may_affirm) {
    judgement.Add(&TrustVector::executables,
                  {"self_reported", Tier::kWarning,
                   "runtime claims are self-reported: root could have made them before the agent started",
                   "use a measured boot, or let the policy opt in with self_reported_may_affirm = true"});
  }
}

}  // namespace

Verdict Judge(const Facts& facts, const config::Policy& policy) {
  Judgement judgement(policy);
  JudgeIdentity(judgement, facts);
  JudgePcrs(judgement, facts);
  JudgeRuntimeLog(judgement, facts);
  JudgeAgents(judgement, facts);
  JudgeGate(judgement, facts);
  JudgeAnchor(judgement, facts);
  return std::move(judgement).Finish();
}

}  // namespace assay::appraisal
