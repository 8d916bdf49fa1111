// SPDX-License-Identifier: Apache-2.0
// From an endorsement key certificate to a configured manufacturer root. Everything that the endpoint sends is hostile:
// its intermediates are path material and never anchors. CheckEkChain alone judges, in check_ek_chain.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sdk/core/bytes.h"
#include "sdk/core/crypto.h"
#include "sdk/core/result.h"
#include "sdk/core/tpm.h"
#include "verifier/enrollment/x509.h"

namespace assay::enrollment {

// The certificate inside what an NV index holds: skips the 7-byte header of PC client storage (TCG PC Client
// Implementation Specification for TPM 1.2, section 7.3.2: 0x1001, 0x00, length, 0x1002) and padding after the DER that
// repeats one byte. A view into `raw`; kMalformed when there is no outer SEQUENCE or the tail is no padding.
Result<Bytes> TrimEkCertificate(Bytes raw);
Result<X509Handle> ParseEkCertificate(Bytes raw);
// The subject's key, also where the algorithm is written as RSAES-OAEP (older EK certificates; OpenSSL reads none of
// those). kUnsupported for what no EK is.
Result<PublicKey> CertificateKey(const X509* certificate);

// Manufacturer roots and the operator's own intermediates. Immutable once made; any number of threads.
class TrustBundle {
 public:
  // PEM text, comments between blocks allowed. Every certificate of `roots` is an anchor, whether self-signed or not;
  // those of `intermediates` are path material. kConfig when a block does not parse or there is no root.
  static Result<TrustBundle> FromPem(std::string_view roots, std::string_view intermediates);

  std::size_t roots() const noexcept { return roots_; }
  std::size_t intermediates() const noexcept { return static_cast<std::size_t>(sk_X509_num(path_.get())); }
  X509_STORE* store() const noexcept { return store_.get(); }
  const STACK_OF(X509) * path() const noexcept { return path_.get(); }

 private:
  TrustBundle(X509StoreHandle store, X509StackHandle path, std::size_t roots)
      : store_(std::move(store)), path_(std::move(path)), roots_(roots) {}
  X509StoreHandle store_;
  X509StackHandle path_;
  std::size_t roots_;
};

// From PEM files, or directories of *.pem and *.crt. Owners of the result: the policy in force and the requests that
// began under it.
Result<std::shared_ptr<const TrustBundle>> LoadTrustBundle(const std::vector<std::string>& roots,
                                                           const std::vector<std::string>& intermediates);

struct EkChainRules {
  bool allow_expired_leaf = true;  // manufacturers end EK certificates while the TPM lives on
  bool allow_sha1 = false;         // signatures by SHA-1, as some intermediates before 2016 have
};

struct EkChainInput {
  Bytes certificate;                      // as read from NV
  std::span<const Buffer> intermediates;  // from the endpoint, DER each
  tpm::EkKind kind = tpm::EkKind::kRsa2048Low;
  const PublicKey* ek = nullptr;  // of the EK public area that the endpoint sent
  const TrustBundle* bundle = nullptr;
  EkChainRules rules{};
  std::int64_t now = 0;  // seconds since the epoch
};

enum class EkChainOutcome : std::uint8_t {
  kTrusted,
  kMalformed,
  kUnsupportedKey,
  kWrongKeyType,
  kKeyMismatch,
  kNotForEk,
  kLeafIsCa,
  kExpired,
  kNoPath,
  kBadPath,
  kWeakSignature,
};
std::string_view EkChainCode(
    EkChainOutcome outcome) noexcept;  // stable: "ek_certificate_malformed", "ek_chain_untrusted", ...

struct EkChainVerdict {
  EkChainOutcome outcome = EkChainOutcome::kNoPath;
  std::string detail;    // a sentence with the values
  std::string anchor;    // the root's subject when trusted
  Digest certificate{};  // SHA-256 of the certificate's DER when it parsed
};

// The whole judgement; no other function of the tree says that an EK certificate is good.
EkChainVerdict CheckEkChain(const EkChainInput& input);

}  // namespace assay::enrollment
