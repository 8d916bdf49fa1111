// SPDX-License-Identifier: Apache-2.0
// `renew`: a new certificate for the same AIK, for which a fresh quote is the proof.
#pragma once

#include "enroll/enroll_flow.h"

namespace assay::enroll {

Outcome<config::EnrollmentRecord> Renew(const Deps& deps, const config::EnrollConfig& config);

}  // namespace assay::enroll
