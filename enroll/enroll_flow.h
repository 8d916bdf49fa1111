// SPDX-License-Identifier: Apache-2.0
// `enroll` and `rotate`: keys in the TPM, the credential, the proof of the EK, and what is kept afterwards.
// Nothing is replaced before the verifier has accepted the new AIK.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "enroll/failure.h"
#include "enroll/verifier_client.h"
#include "sdk/config/enroll_config.h"
#include "sdk/config/enrollment.h"
#include "sdk/core/protocol.h"
#include "sdk/tpm/device.h"

namespace assay::enroll {

// All outlive the flow.
struct Deps {
  tpm::Device& device;
  VerifierClient& verifier;
  std::function<void(std::string_view)> progress;  // one line at a time, for people
};

enum class Mode : std::uint8_t { kEnroll, kRotate };

// One owner, one run.
class EnrollFlow {
 public:
  EnrollFlow(Deps deps, const config::EnrollConfig& config, std::string token);
  ~EnrollFlow();  // flushes what is left in the TPM
  EnrollFlow(const EnrollFlow&) = delete;
  EnrollFlow& operator=(const EnrollFlow&) = delete;

  Outcome<config::EnrollmentRecord> Run(Mode mode);

 private:
  Check CheckBefore(Mode mode);
  Check ReadCertificates();
  Check CreateKeys();
  Check Begin();
  Check ProveKeys();
  Check Complete();
  Check Keep();
  void Flush() noexcept;

  Deps deps_;
  const config::EnrollConfig& config_;
  std::string token_;
  std::uint32_t handle_;  // where the AIK is kept: a rotation stays at the record's
  Buffer ek_certificate_;
  std::vector<Buffer> intermediates_;
  tpm::CreatedKey ek_, aik_;
  Digest attester_{};
  EnrollChallenge challenge_;
  EnrollComplete complete_;
  EnrollResult result_;
  config::EnrollmentRecord record_;
};

// Writes the AIK certificate beside the record, then the record.
Check SaveResult(const EnrollResult& result, const std::string& state_dir, config::EnrollmentRecord& record);

}  // namespace assay::enroll
