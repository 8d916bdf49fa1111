// SPDX-License-Identifier: Apache-2.0
// The judgement of an EK certificate: is it one, does it name this key, and does a path lead to a configured root?
// Alone in its object: a test build links another in its place to show that the demo notices.
#include <openssl/err.h>
#include <openssl/objects.h>

#include <ctime>
#include <utility>
#include <variant>

#include "sdk/core/limits.h"
#include "verifier/enrollment/ek_chain.h"

namespace assay::enrollment {
namespace {

constexpr int kMaxDepth = 5;       // intermediates between the EK certificate and the root
constexpr int kMaxRsaBits = 4096;  // of path material that an endpoint sends

EkChainVerdict Refuse(EkChainOutcome outcome, std::string detail) { return {outcome, std::move(detail), {}, {}}; }

bool TypeFits(tpm::EkKind kind, KeyType type) {
  switch (kind) {
    case tpm::EkKind::kRsa2048Low:
    case tpm::EkKind::kRsa2048High: return type == KeyType::kRsa2048;
    case tpm::EkKind::kEccP256Low:
    case tpm::EkKind::kEccP256High: return type == KeyType::kP256;
    case tpm::EkKind::kEccP384High: return type == KeyType::kP384;
  }
  return false;
}

// What the certificate says of itself, before any path is looked for.
EkChainVerdict CheckLeaf(X509* leaf, const EkChainInput& input) {
  const Result<PublicKey> key = CertificateKey(leaf);
  if (!key.ok()) return Refuse(EkChainOutcome::kUnsupportedKey, key.error().detail);
  if (!TypeFits(input.kind, key->type()))
    return Refuse(EkChainOutcome::kWrongKeyType, "the certificate's key is not of the kind of EK that was named");
  if (input.ek == nullptr || !Equal(key->Spki(), input.ek->Spki())) {
    return Refuse(EkChainOutcome::kKeyMismatch, "the certificate is about another key than the EK public area");
  }
  // X509_check_ca alone forgives CA:TRUE where the key usage is another.
  if (X509_check_ca(leaf) != 0 || (X509_get_extension_flags(leaf) & EXFLAG_CA) != 0)
    return Refuse(EkChainOutcome::kLeafIsCa, "the EK certificate is a CA certificate");
  if (PurposeOf(leaf, kOidEkCertificate) == KeyPurpose::kForbidden) {
    return Refuse(EkChainOutcome::kNotForEk, "the certificate's extended key usage is not tcg-kp-EKCertificate");
  }
  // TCG EK Credential Profile 2.5, section 3.2.11: keyEncipherment for RSA, keyAgreement for ECC, where it is stated.
  const bool stated = (X509_get_extension_flags(leaf) & EXFLAG_KUSAGE) != 0;
  if (stated && (X509_get_key_usage(leaf) & (KU_KEY_ENCIPHERMENT | KU_KEY_AGREEMENT)) == 0) {
    return Refuse(EkChainOutcome::kNotForEk,
                  "the certificate's key usage allows neither keyEncipherment nor keyAgreement");
  }
  return {EkChainOutcome::kTrusted, {}, {}, {}};
}

// X509_verify_cert asks here about every fault; only a late leaf may be let through, and only by policy.
struct VerifyContext {
  bool allow_expired_leaf;
};
int ContextIndex() {
  static const int index = X509_STORE_CTX_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return index;
}
int OnVerify(int ok, X509_STORE_CTX* ctx) {
  if (ok == 1) return 1;
  const auto* rules = static_cast<const VerifyContext*>(X509_STORE_CTX_get_ex_data(ctx, ContextIndex()));
  const bool late_leaf =
      X509_STORE_CTX_get_error(ctx) == X509_V_ERR_CERT_HAS_EXPIRED && X509_STORE_CTX_get_error_depth(ctx) == 0;
  return late_leaf && rules != nullptr && rules->allow_expired_leaf ? 1 : 0;
}

EkChainOutcome OutcomeOf(int error, int depth) {
  switch (error) {
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_CERT_UNTRUSTED: return EkChainOutcome::kNoPath;
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID: return depth == 0 ? EkChainOutcome::kExpired : EkChainOutcome::kBadPath;
    default: return EkChainOutcome::kBadPath;
  }
}

// Device-supplied and configured intermediates as one stack; references are added, nothing is trusted by being here.
Result<X509StackHandle> PathMaterial(const EkChainInput& input) {
  X509StackHandle path{sk_X509_new_null()};
  if (!path) return MakeError(Code::kCrypto, OpenSslErrorText());
  const auto push = [&](X509* certificate) {
    if (sk_X509_push(path.get(), certificate) > 0) return;
    X509_free(certificate);
  };
  if (input.intermediates.size() > limits::kIntermediates)
    return MakeError(Code::kLimit, "more than " + std::to_string(limits::kIntermediates) + " intermediates");
  for (const Buffer& der : input.intermediates) {
    ASSAY_TRY(X509Handle certificate, ParseEkCertificate(der));
    const EVP_PKEY* key = X509_get0_pubkey(certificate.get());
    if (key == nullptr || EVP_PKEY_get_bits(key) > kMaxRsaBits)
      return MakeError(Code::kUnsupported, "an intermediate has a key that is unknown or over 4096 bits");
    push(certificate.release());
  }
  for (int i = 0; i < sk_X509_num(input.bundle->path()); ++i) {
    X509* certificate = sk_X509_value(input.bundle->path(), i);
    if (X509_up_ref(certificate) == 1) push(certificate);
  }
  return path;
}

// The chain that was found: signatures by SHA-256 or better, and every intermediate a CA that says so itself. Anchors
// are the operator's word, so a version-1 root passes; OpenSSL alone would also take keyUsage for a CA flag.
EkChainVerdict CheckFoundChain(const STACK_OF(X509) * chain, const EkChainRules& rules) {
  const int last = sk_X509_num(chain) - 1;
  for (int i = 0; i < last; ++i) {
    X509* certificate = sk_X509_value(chain, i);
    int hash = NID_undef;
    if (X509_get_signature_info(certificate, &hash, nullptr, nullptr, nullptr) != 1) hash = NID_undef;
    const bool strong = hash == NID_sha256 || hash == NID_sha384 || hash == NID_sha512;
    if (!strong && !(hash == NID_sha1 && rules.allow_sha1)) {
      return Refuse(EkChainOutcome::kWeakSignature, NameText(X509_get_subject_name(certificate)) + " is signed with " +
                                                        (hash == NID_undef ? "an unknown hash" : OBJ_nid2sn(hash)));
    }
    if (i > 0 && X509_check_ca(certificate) != 1) {
      return Refuse(EkChainOutcome::kBadPath,
                    NameText(X509_get_subject_name(certificate)) + " signs without being a CA");
    }
  }
  return {EkChainOutcome::kTrusted, {}, NameText(X509_get_subject_name(sk_X509_value(chain, last))), {}};
}

// From `target` to an anchor by RFC 5280, or the refusal. The chain starts with `target`.
std::variant<X509StackHandle, EkChainVerdict> VerifyPath(X509* target, STACK_OF(X509) * path, const EkChainInput& input,
                                                         bool may_be_late) {
  const X509StoreCtxHandle ctx{X509_STORE_CTX_new()};
  VerifyContext rules{may_be_late};
  if (!ctx || X509_STORE_CTX_init(ctx.get(), input.bundle->store(), target, path) != 1 ||
      X509_STORE_CTX_set_ex_data(ctx.get(), ContextIndex(), &rules) != 1) {
    return Refuse(EkChainOutcome::kNoPath, "no verification context (" + OpenSslErrorText() + ")");
  }
  X509_STORE_CTX_set_verify_cb(ctx.get(), OnVerify);
  X509_VERIFY_PARAM* param = X509_STORE_CTX_get0_param(ctx.get());
  X509_VERIFY_PARAM_set_time(param, input.now);
  X509_VERIFY_PARAM_set_depth(param, kMaxDepth);
  // A configured certificate is an anchor even when something else signed it.
  X509_VERIFY_PARAM_set_flags(param, X509_V_FLAG_PARTIAL_CHAIN | X509_V_FLAG_TRUSTED_FIRST);
  if (X509_verify_cert(ctx.get()) != 1) {
    const int error = X509_STORE_CTX_get_error(ctx.get());
    const int depth = X509_STORE_CTX_get_error_depth(ctx.get());
    ERR_clear_error();
    return Refuse(OutcomeOf(error, depth), std::string(X509_verify_cert_error_string(error)) + " (certificate " +
                                               std::to_string(depth) + " of the path from " +
                                               NameText(X509_get_subject_name(target)) + ", issued by " +
                                               NameText(X509_get_issuer_name(target)) + ")");
  }
  return X509StackHandle{X509_STORE_CTX_get1_chain(ctx.get())};
}

// X509_verify_cert reads every key of a path, which it cannot do for a leaf with an RSAES-OAEP key. For such a leaf the
// path is verified from its issuer on, and what remains of RFC 5280 section 6.1 is done here: the leaf's signature,
// time and critical extensions, and the path lengths with the leaf below.
EkChainVerdict CheckUnreadableLeaf(X509* leaf, const STACK_OF(X509) * chain, const EkChainInput& input) {
  std::time_t now = input.now;
  if (X509_cmp_time(X509_get0_notBefore(leaf), &now) >= 0)
    return Refuse(EkChainOutcome::kExpired, "the EK certificate is not valid yet");
  if (!input.rules.allow_expired_leaf && X509_cmp_time(X509_get0_notAfter(leaf), &now) <= 0)
    return Refuse(EkChainOutcome::kExpired, "the EK certificate has expired");
  for (int i = 0; i < X509_get_ext_count(leaf); ++i) {
    X509_EXTENSION* extension = X509_get_ext(leaf, i);
    if (X509_EXTENSION_get_critical(extension) == 1 && X509_supported_extension(extension) != 1) {
      return Refuse(EkChainOutcome::kBadPath, "the EK certificate has an unknown critical extension");
    }
  }
  long below = 0;  // intermediates that are not self-issued
  for (int i = 0; i < sk_X509_num(chain); ++i) {
    X509* certificate = sk_X509_value(chain, i);
    const long limit = X509_get_pathlen(certificate);
    if (limit >= 0 && below > limit)
      return Refuse(EkChainOutcome::kBadPath,
                    NameText(X509_get_subject_name(certificate)) + " allows no path this long");
    if ((X509_get_extension_flags(certificate) & EXFLAG_SI) == 0) ++below;
  }
  return {EkChainOutcome::kTrusted, {}, {}, {}};
}

// Puts the path from the leaf's issuer under the leaf. Candidates with a fitting name are tried until one verifies.
std::variant<X509StackHandle, EkChainVerdict> PathOfUnreadable(X509* leaf, STACK_OF(X509) * path,
                                                               const EkChainInput& input) {
  const X509StackHandle anchors{X509_STORE_get1_all_certs(input.bundle->store())};
  EkChainVerdict verdict =
      Refuse(EkChainOutcome::kNoPath, "no certificate of its issuer, " + NameText(X509_get_issuer_name(leaf)));
  for (const STACK_OF(X509) * candidates :
       {static_cast<const STACK_OF(X509)*>(anchors.get()), static_cast<const STACK_OF(X509)*>(path)}) {
    for (int i = 0; i < sk_X509_num(candidates); ++i) {
      X509* issuer = sk_X509_value(candidates, i);
      EVP_PKEY* key = X509_get0_pubkey(issuer);
      if (key == nullptr || X509_check_issued(issuer, leaf) != X509_V_OK || X509_verify(leaf, key) != 1) continue;
      auto found = VerifyPath(issuer, path, input, false);
      if (auto* refusal = std::get_if<EkChainVerdict>(&found)) {
        verdict = std::move(*refusal);
        if (verdict.outcome == EkChainOutcome::kExpired)
          verdict.outcome = EkChainOutcome::kBadPath;  // depth 0 is the issuer here
        continue;
      }
      auto& chain = std::get<X509StackHandle>(found);
      verdict = CheckUnreadableLeaf(leaf, chain.get(), input);
      if (verdict.outcome != EkChainOutcome::kTrusted) continue;
      if (X509_up_ref(leaf) != 1 || sk_X509_unshift(chain.get(), leaf) <= 0)
        return Refuse(EkChainOutcome::kNoPath, OpenSslErrorText());
      return std::move(chain);
    }
  }
  ERR_clear_error();
  return verdict;
}

EkChainVerdict FindPath(X509* leaf, STACK_OF(X509) * path, const EkChainInput& input) {
  const bool readable = X509_get0_pubkey(leaf) != nullptr;
  ERR_clear_error();
  auto found =
      readable ? VerifyPath(leaf, path, input, input.rules.allow_expired_leaf) : PathOfUnreadable(leaf, path, input);
  if (auto* refusal = std::get_if<EkChainVerdict>(&found)) return std::move(*refusal);
  return CheckFoundChain(std::get<X509StackHandle>(found).get(), input.rules);
}

}  // namespace

EkChainVerdict CheckEkChain(const EkChainInput& input) {
  if (input.bundle == nullptr) return Refuse(EkChainOutcome::kNoPath, "no EK roots are configured");
  const Result<Bytes> der = TrimEkCertificate(input.certificate);
  if (!der.ok()) return Refuse(EkChainOutcome::kMalformed, der.error().detail);
  const Result<X509Handle> leaf = ParseCertificate(*der);
  if (!leaf.ok()) return Refuse(EkChainOutcome::kMalformed, leaf.error().detail);
  EkChainVerdict verdict = CheckLeaf(leaf->get(), input);
  if (verdict.outcome == EkChainOutcome::kTrusted) {
    const Result<X509StackHandle> path = PathMaterial(input);
    verdict =
        path.ok() ? FindPath(leaf->get(), path->get(), input) : Refuse(EkChainOutcome::kBadPath, path.error().detail);
  }
  verdict.certificate = Sha256(*der);
  return verdict;
}

}  // namespace assay::enrollment
