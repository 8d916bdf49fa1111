// SPDX-License-Identifier: Apache-2.0
// Issues result tokens (EAR) for relying parties: who may have one, the per-title device id, the signature.
// Immutable after construction but for the policy handed in per call; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sdk/config/policy.h"
#include "sdk/core/crypto.h"
#include "sdk/core/evidence.h"
#include "sdk/core/protocol.h"
#include "sdk/core/token.h"
#include "verifier/appraisal/appraise.h"

namespace assay::token {

struct IssuerKeys {
  PrivateKey signing;                     // ES256
  std::vector<PublicKey> also_published;  // older keys still in the JWKS
  Secret device_master;                   // of per-title device ids
  std::uint64_t device_key_version = 1;
};

// Everything a token says that the verdict does not.
struct ResultSubject {
  Digest ek_spki_digest{};  // of the canonical EK
  bool weak_device_id = false;
  Digest attester{};
  Bytes aik_spki;
  SignatureScheme aik_scheme = SignatureScheme::kRsaSsaSha256;  // of the AIK's record: a key does not say it
  Digest policy{};                                              // digest of the policy that judged
  tpm::ClockInfo clock;
  std::int64_t now = 0;  // seconds since the epoch
  std::int64_t next_attestation = 0;
};

struct Issued {
  std::string token;
  std::string token_id;
  std::int64_t expires_at = 0;
};

class ResultIssuer {
 public:
  static Result<ResultIssuer> Create(IssuerKeys keys, std::string issuer);

  // The title that the request names, when the caller is entitled to its token; else why not
  // (unknown_audience, audience_not_authorised).
  static std::variant<const config::Title*, ErrorReply> Authorise(const TokenRequest& request,
                                                                  const config::Policy& policy);

  Result<Issued> Issue(const config::Title& title, const TokenRequest& request, const appraisal::Verdict& verdict,
                       const appraisal::Facts& facts, const ResultSubject& subject) const;

  const std::string& jwks() const noexcept { return jwks_; }
  Result<std::string> SignRevocations(const RevocationList& list) const;
  // base64url of HMAC(HKDF(master, tenant | title), ek): a ban survives a reinstall, two titles cannot correlate.
  std::string DeviceId(const config::Title& title, const Digest& ek_spki_digest) const;

 private:
  ResultIssuer(IssuerKeys keys, std::string issuer, std::string kid, std::string jwks);
  IssuerKeys keys_;
  std::string issuer_;
  std::string kid_;
  std::string jwks_;
};

}  // namespace assay::token
