// SPDX-License-Identifier: Apache-2.0
// `status` and `remove`: what needs no verifier. And how results are shown.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "enroll/failure.h"
#include "sdk/config/enrollment.h"
#include "sdk/tpm/device.h"

namespace assay::enroll {

enum class CertificateState : std::uint8_t { kValid, kRenewalDue, kExpired };
std::string_view CertificateStateName(CertificateState state) noexcept;  // "valid", "renewal_due", "expired"
CertificateState StateOf(const config::EnrollmentRecord& record, std::int64_t now) noexcept;

Outcome<config::EnrollmentRecord> LoadRecord(const std::string& state_dir);

// Evicts the AIK, then removes certificate and record; a key that is gone already is no failure.
Check Remove(tpm::Device& device, const std::string& state_dir, const std::function<void(std::string_view)>& progress);

std::string RecordText(const config::EnrollmentRecord& record, std::int64_t now);
std::string RecordJson(const config::EnrollmentRecord& record, std::int64_t now);
std::string FailureText(const Failure& failure);
std::string FailureJson(const Failure& failure);

}  // namespace assay::enroll
