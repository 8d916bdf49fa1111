// SPDX-License-Identifier: Apache-2.0
#include "sdk/tools/soft_attester.h"

#include "sdk/tools/soft_quote.h"

namespace assay::tools {
namespace {

constexpr std::uint32_t kBootMask = 0xFF;  // PCRs 0 to 7, all zero in the pretended TPM
constexpr std::uint32_t kMask = kBootMask | 1U << 14;
constexpr std::size_t kBootPcrs = 8;
constexpr std::uint32_t kResetCount = 1;
constexpr std::int64_t kMsPerSecond = 1000;

Buffer Values() { return Buffer((kBootPcrs + 1) * kSha256Size, 0); }

}  // namespace

SoftAttester::SoftAttester(SoftKeys keys, PublicKey signer, Buffer aik_spki, std::string kid)
    : keys_(std::move(keys)),
      signer_(std::move(signer)),
      aik_spki_(std::move(aik_spki)),
      kid_(std::move(kid)),
      scheme_(keys_.aik.type() == KeyType::kP256 ? SignatureScheme::kEcdsaP256Sha256 : SignatureScheme::kRsaSsaSha256) {
}

Result<SoftAttester> SoftAttester::Make(SoftKeys keys) {
  ASSAY_TRY(PublicKey signer, keys.signer.Public());
  ASSAY_TRY(const PublicKey aik, keys.aik.Public());
  if (aik.type() != KeyType::kP256 && aik.type() != KeyType::kRsa2048)
    return MakeError(Code::kUnsupported, "an AIK is RSA-2048 or P-256");
  ASSAY_TRY(std::string kid, JwkThumbprint(signer));
  return SoftAttester(std::move(keys), std::move(signer), aik.Spki(), std::move(kid));
}

Result<std::string> SoftAttester::Jwks() const { return JwksJson({&signer_}); }

ResultClaims SoftAttester::Claims(const SoftRequest& request) const {
  ResultClaims claims;
  claims.issuer = request.issuer;
  claims.audience = request.audience;
  claims.issued_at = request.now_ms / kMsPerSecond;
  claims.expires_at = claims.issued_at + request.lifetime_s;
  claims.token_id = ToBase64Url(RandomArray<16>());
  claims.verifier_build = "fake-attester";
  claims.appraisal_policy = "policy:test-mode/1";
  claims.test = true;
  claims.server_nonce = request.server_nonce;
  claims.match = request.match;
  claims.session_key_hash = request.session_key_hash;
  claims.tier = request.tier;
  claims.reasons = {"test_mode"};
  claims.device_id = ToBase64Url(Sha256({AsBytes("assay/test-device"), aik_spki_}));
  claims.weak_device_id = true;
  claims.next_attestation = claims.issued_at + request.lifetime_s / 2;
  if (!request.host_tokens) return claims;
  claims.attester = Sha256(aik_spki_);
  HostTokenClaims host;
  host.aik_spki = aik_spki_;
  host.aik_scheme = scheme_;
  host.reset_count = kResetCount;
  host.clock_ms = static_cast<std::uint64_t>(request.now_ms) - 1;  // the quote behind the result came before it
  host.boot_pcr_mask = kBootMask;
  host.boot_pcr_digest = Sha256(Bytes(Values()).first(kBootPcrs * kSha256Size));
  claims.host_token = host;
  return claims;
}

Result<std::string> SoftAttester::Sign(const ResultClaims& claims) const {
  return SignJws(keys_.signer, kid_, kResultTokenType, EncodeResultClaims(claims));
}

Result<std::string> SoftAttester::SignRevocations(const RevocationList& list) const {
  return SignJws(keys_.signer, kid_, kRevocationsType, EncodeRevocationList(list));
}

Result<Buffer> SoftAttester::MakeHostToken(const SoftHostRequest& request) const {
  const Buffer values = Values();
  HostToken token;
  token.tag = request.heartbeat ? QuoteTag::kHeartbeat : QuoteTag::kHostToken;
  token.sequence = request.sequence;
  token.attester = Sha256(aik_spki_);
  token.server_nonce = request.server_nonce;
  token.session_key_hash = request.session_key_hash;
  token.pcr_mask = kMask;
  token.pcr_values = values;
  SoftQuote quote;
  const Digest extra = ExtraData(token.tag, token.server_nonce, HostTokenBodyDigest(token), {});
  quote.extra_data = ToBuffer(extra);
  quote.clock = {static_cast<std::uint64_t>(request.now_ms), kResetCount, 0, true};
  quote.selections = {{tpm::Alg::kSha256, kMask}};
  quote.pcr_digest = ToBuffer(Sha256(values));
  const Buffer attest = EncodeSoftQuote(quote);
  ASSAY_TRY(const Buffer signature, SignSoftQuote(keys_.aik, scheme_, attest));
  token.attest = attest;
  token.signature = signature;
  Buffer out(limits::kHostToken);
  ASSAY_TRY(const std::size_t size, SerializeHostToken(token, out));
  out.resize(size);
  return out;
}

}  // namespace assay::tools
