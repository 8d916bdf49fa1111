// SPDX-License-Identifier: Apache-2.0
// TPM_ALG_ID names and digest sizes (TPM 2.0 Part 2, table 9).
#include "sdk/core/tpm.h"

namespace assay::tpm {

std::string AlgName(Alg alg) {
  switch (alg) {
    case Alg::kRsa: return "rsa";
    case Alg::kSha1: return "sha1";
    case Alg::kHmac: return "hmac";
    case Alg::kAes: return "aes";
    case Alg::kKeyedHash: return "keyedhash";
    case Alg::kSha256: return "sha256";
    case Alg::kSha384: return "sha384";
    case Alg::kSha512: return "sha512";
    case Alg::kNull: return "null";
    case Alg::kRsaSsa: return "rsassa";
    case Alg::kRsaEs: return "rsaes";
    case Alg::kRsaPss: return "rsapss";
    case Alg::kOaep: return "oaep";
    case Alg::kEcdsa: return "ecdsa";
    case Alg::kEcc: return "ecc";
    case Alg::kSymCipher: return "symcipher";
    case Alg::kCfb: return "cfb";
  }
  return "alg-0x" + ToHex(std::array{static_cast<std::uint8_t>(static_cast<std::uint16_t>(alg) >> 8),
                                     static_cast<std::uint8_t>(alg)});
}

std::size_t DigestSize(Alg hash) noexcept {
  switch (hash) {
    case Alg::kSha1: return 20;
    case Alg::kSha256: return 32;
    case Alg::kSha384: return 48;
    case Alg::kSha512: return 64;
    default: return 0;
  }
}

}  // namespace assay::tpm
