// SPDX-License-Identifier: Apache-2.0
// What the tests of this room share: a tap that counts and injects, and the certificate of an endorsement key.
#pragma once

#include <doctest/doctest.h>
#include <openssl/x509.h>

#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "sdk/core/handle.h"
#include "sdk/tpm/device.h"
#include "tests/support/swtpm.h"
#include "tests/support/tpm_commands.h"

namespace assay::test {

using X509Handle = Handle<X509, X509_free>;

// Counts commands; `answer` may put a response code in the TPM's place, given the command's number from 1.
struct CountingTap final : tpm::Tap {
  std::vector<std::uint32_t> seen;
  std::function<std::uint32_t(std::size_t number, std::uint32_t code)> answer;
  std::uint32_t OnCommand(std::uint32_t code) override {
    seen.push_back(code);
    return answer ? answer(seen.size(), code) : 0;
  }
};

// Writes the reason of a failure into the test's report; the value otherwise.
template <typename T>
T Must(Result<T> result) {
  if (!result.ok()) FAIL(result.error().ToString());
  return std::move(result).value();
}

struct Bench {
  std::unique_ptr<Swtpm> tpm = Must(Swtpm::Make());
  CountingTap tap;
  std::unique_ptr<tpm::Device> device = Must(tpm::OpenDevice(tpm->tcti(), &tap));
};

inline PublicKey KeyOfArea(Bytes area) { return Must(tpm::KeyOf(Must(tpm::DecodePublicArea(area)))); }

inline PublicKey KeyOfCertificate(const Buffer& der) {
  const unsigned char* at = der.data();
  const X509Handle certificate(d2i_X509(nullptr, &at, static_cast<long>(der.size())));
  REQUIRE(certificate != nullptr);
  EVP_PKEY* key = X509_get0_pubkey(certificate.get());
  REQUIRE(EVP_PKEY_up_ref(key) == 1);
  return Must(PublicKey::FromEvp(EvpPkey(key)));
}

inline void CheckNothingLoaded(const Swtpm& tpm) {
  CHECK(Must(TpmHandles(tpm, kTransientHandles)).empty());
  CHECK(Must(TpmHandles(tpm, kLoadedSessions)).empty());
  CHECK(Must(TpmHandles(tpm, kSavedSessions)).empty());
}

inline constexpr tpm::PcrSelection kSomePcrs{tpm::Alg::kSha256, 0x40FF};  // 0 to 7 and 14

}  // namespace assay::test
