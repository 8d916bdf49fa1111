// SPDX-License-Identifier: Apache-2.0
// TPM2_MakeCredential in software (TPM 2.0 Library, Part 1, section 24; annexes B.10 and C.6): a secret that only the
// TPM holding this EK hands out, and only for the object with this Name. No TPM is asked.
#pragma once

#include "sdk/core/bytes.h"
#include "sdk/core/crypto.h"
#include "sdk/core/result.h"
#include "sdk/core/tpm.h"

namespace assay::enrollment {

struct MadeCredential {
  Buffer credential_blob;   // TPM2B_ID_OBJECT
  Buffer encrypted_secret;  // TPM2B_ENCRYPTED_SECRET
};

// `secret`: at most as long as the digest of the EK's name algorithm. kUnsupported when the key does not fit the kind.
Result<MadeCredential> MakeCredential(tpm::EkKind kind, const PublicKey& ek, Bytes name, Bytes secret);

}  // namespace assay::enrollment
