// SPDX-License-Identifier: Apache-2.0
#include "sdk/tools/soft_quote.h"

namespace assay::tools {
namespace {

constexpr std::size_t kSelectBytes = 3;  // sizeofSelect of 24 PCRs
constexpr std::size_t kField = 32;       // P-256

tpm::Alg AlgOf(SignatureScheme scheme) noexcept {
  if (scheme == SignatureScheme::kRsaSsaSha256) return tpm::Alg::kRsaSsa;
  return scheme == SignatureScheme::kRsaPssSha256 ? tpm::Alg::kRsaPss : tpm::Alg::kEcdsa;
}

}  // namespace

Buffer EncodeSoftQuote(const SoftQuote& quote) {
  Writer out(256);
  out.U32Be(quote.magic);
  out.U16Be(quote.type);
  out.PutU16Sized(Buffer(34, 0x0B));  // qualifiedSigner: a Name with no TPM behind it
  out.PutU16Sized(quote.extra_data);
  out.U64Be(quote.clock.clock);
  out.U32Be(quote.clock.reset_count);
  out.U32Be(quote.clock.restart_count);
  out.U8(quote.clock.safe ? 1 : 0);
  out.U64Be(0);  // firmwareVersion
  if (quote.type == static_cast<std::uint16_t>(tpm::AttestType::kCertify)) {
    out.PutU16Sized(Buffer(34, 0x0B));  // Name
    out.PutU16Sized(Buffer(34, 0x0B));  // qualified Name
    return std::move(out).Take();
  }
  out.U32Be(static_cast<std::uint32_t>(quote.selections.size()));
  for (const auto& selection : quote.selections) {
    out.U16Be(static_cast<std::uint16_t>(selection.hash));
    out.U8(kSelectBytes);
    for (std::size_t i = 0; i < kSelectBytes; ++i) out.U8(static_cast<std::uint8_t>(selection.mask >> (8 * i)));
  }
  out.PutU16Sized(quote.pcr_digest);
  return std::move(out).Take();
}

Result<Buffer> SignSoftQuote(const PrivateKey& aik, SignatureScheme scheme, Bytes attest) {
  ASSAY_TRY(const Buffer raw, aik.SignDigest(scheme, Sha256(attest)));
  Writer out(raw.size() + 8);
  out.U16Be(static_cast<std::uint16_t>(AlgOf(scheme)));
  out.U16Be(static_cast<std::uint16_t>(tpm::Alg::kSha256));
  if (scheme == SignatureScheme::kEcdsaP256Sha256) {
    out.PutU16Sized(Bytes(raw).first(kField));
    out.PutU16Sized(Bytes(raw).subspan(kField));
  } else {
    out.PutU16Sized(raw);
  }
  return std::move(out).Take();
}

}  // namespace assay::tools
