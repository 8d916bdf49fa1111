// SPDX-License-Identifier: Apache-2.0
// Test mode: a verifier and an attester in one, without a TPM. Every result it issues is marked as a test, which
// relying parties refuse unless they opt in. One owner, one thread.
#pragma once

#include <string>

#include "sdk/core/host_token.h"
#include "sdk/core/token.h"

namespace assay::tools {

struct SoftKeys {
  PrivateKey signer;  // of result tokens: P-256 or Ed25519
  PrivateKey aik;     // of quotes: RSA-2048 or P-256
};

struct SoftRequest {
  std::string issuer, audience, match;
  Digest server_nonce{}, session_key_hash{};
  std::int64_t now_ms = 0;
  std::int64_t lifetime_s = 120;
  Tier tier = Tier::kAffirming;
  bool host_tokens = true;
};

struct SoftHostRequest {
  Digest server_nonce{}, session_key_hash{};
  std::int64_t now_ms = 0;  // the pretended TPM's clock, too
  bool heartbeat = false;
  std::uint64_t sequence = 0;
};

class SoftAttester {
 public:
  static Result<SoftAttester> Make(SoftKeys keys);

  Result<std::string> Jwks() const;
  ResultClaims Claims(const SoftRequest& request) const;  // marked as a test
  Result<std::string> Sign(const ResultClaims& claims) const;
  Result<std::string> SignRevocations(const RevocationList& list) const;
  Result<Buffer> MakeHostToken(const SoftHostRequest& request) const;
  SignatureScheme aik_scheme() const noexcept { return scheme_; }
  const SoftKeys& keys() const noexcept { return keys_; }

 private:
  SoftAttester(SoftKeys keys, PublicKey signer, Buffer aik_spki, std::string kid);
  SoftKeys keys_;
  PublicKey signer_;
  Buffer aik_spki_;
  std::string kid_;
  SignatureScheme scheme_;
};

}  // namespace assay::tools
