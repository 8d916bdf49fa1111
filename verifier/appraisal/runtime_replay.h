// SPDX-License-Identifier: Apache-2.0
// Replays the agent's runtime log to the quoted PCR 14, from what the verifier already knows of this boot. Pure.
#pragma once

#include "sdk/core/evidence.h"
#include "verifier/appraisal/appraise.h"
#include "verifier/attest/fence.h"

namespace assay::appraisal {

struct RuntimeReplay {
  // The evidence continues from an entry this verifier does not know: the whole log is wanted, nothing is judged.
  bool resend_from_start = false;
  RuntimeLog state = RuntimeLog::kMismatch;
  attest::RuntimeKnown known;  // after these entries; stored by the fence when the attempt passes
};

RuntimeReplay ReplayRuntimeLog(const RuntimeEvidence& runtime, const Digest& pcr14, const tpm::ClockInfo& clock,
                               const attest::RuntimeKnown& before);

}  // namespace assay::appraisal
