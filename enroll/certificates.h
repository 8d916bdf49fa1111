// SPDX-License-Identifier: Apache-2.0
// Certificates as the endpoint handles them: bytes to pass on. It judges none of them; the verifier does.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sdk/core/bytes.h"
#include "sdk/core/result.h"

namespace assay::enroll {

// NV indices from 0x01C00100 on hold the manufacturer's chain, certificate after certificate, padded at the end (TCG EK
// Credential Profile 2.5, section 2.2.1.5.2). Returns each whole DER SEQUENCE, at most limits::kIntermediates; stops at
// the first byte that begins none.
std::vector<Buffer> SplitCertificates(Bytes concatenated);

// A file with PEM blocks, or one DER certificate. kMalformed when it is neither.
Result<std::vector<Buffer>> ReadCertificateFile(const std::string& path);
std::string CertificatePem(Bytes der);

}  // namespace assay::enroll
