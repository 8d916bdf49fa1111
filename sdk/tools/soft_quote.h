// SPDX-License-Identifier: Apache-2.0
// A quote made in software, for the test mode and for tests. What it signs says it came from a TPM and it did not: only
// keys of a test mode may sign it, and results that name such a key are marked as tests.
#pragma once

#include "sdk/core/bytes.h"
#include "sdk/core/crypto.h"
#include "sdk/core/tpm.h"

namespace assay::tools {

struct SoftQuote {
  std::uint32_t magic = tpm::kGenerated;
  std::uint16_t type = static_cast<std::uint16_t>(tpm::AttestType::kQuote);
  Buffer extra_data;
  tpm::ClockInfo clock;
  std::vector<tpm::PcrSelection> selections;
  Buffer pcr_digest;
};

Buffer EncodeSoftQuote(const SoftQuote& quote);                                             // TPMS_ATTEST
Result<Buffer> SignSoftQuote(const PrivateKey& aik, SignatureScheme scheme, Bytes attest);  // TPMT_SIGNATURE

}  // namespace assay::tools
