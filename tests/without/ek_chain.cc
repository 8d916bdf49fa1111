// SPDX-License-Identifier: Apache-2.0
// Test build only: any issuer of an EK certificate is as good as a manufacturer. That the certificate is of the EK
// presented is still checked: the chain alone is what is left out.
#include "verifier/enrollment/ek_chain.h"

namespace assay::enrollment {

EkChainVerdict CheckEkChain(const EkChainInput& input) {
  EkChainVerdict verdict;
  const auto certificate = ParseEkCertificate(input.certificate);
  if (!certificate.ok()) {
    verdict.outcome = EkChainOutcome::kMalformed;
    return verdict;
  }
  const auto key = CertificateKey(certificate->get());
  const bool same = key.ok() && key->Spki() == input.ek->Spki();
  verdict.outcome = same ? EkChainOutcome::kTrusted : EkChainOutcome::kKeyMismatch;
  verdict.anchor = "not checked";
  verdict.certificate = Sha256(input.certificate);
  return verdict;
}

}  // namespace assay::enrollment
