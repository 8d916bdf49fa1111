// SPDX-License-Identifier: Apache-2.0
// A game server's view of one player, with a test-mode attester behind it: options that accept, and the handles.
#pragma once

#include <memory>
#include <string>

#include "sdk/include/assay/server.h"
#include "sdk/tools/soft_attester.h"

namespace assay::test {

using Keys = Handle<assay_keyset, assay_keyset_free>;
using Attester = Handle<assay_attester, assay_attester_free>;
using Revocations = Handle<assay_revocations, assay_revocations_free>;

inline constexpr std::int64_t kNow = 1800000000000;

struct Scene {
  explicit Scene(KeyType signer = KeyType::kP256, KeyType aik = KeyType::kP256)
      : attester(tools::SoftAttester::Make({PrivateKey::Generate(signer).value(), PrivateKey::Generate(aik).value()})
                     .value()) {
    const std::string jwks = attester.Jwks().value();
    assay_keyset* handle = nullptr;
    if (assay_keyset_parse(jwks.data(), jwks.size(), &handle) != ASSAY_OK) std::abort();
    keys.reset(handle);
    request.issuer = "https://verifier.example";
    request.audience = "title.example";
    request.match = "match-1";
    request.server_nonce = Sha256(AsBytes("nonce"));
    request.session_key_hash = Sha256(AsBytes("channel"));
    request.now_ms = kNow;
    options.struct_size = sizeof(options);
    options.issuer = "https://verifier.example";
    options.audience = "title.example";
    options.match = "match-1";
    options.server_nonce = request.server_nonce.data();
    options.session_key_hash = request.session_key_hash.data();
    options.nonce_issued_at_ms = kNow - 500;
    options.now_ms = kNow + 500;
    options.allow_test = 1;
    host_request = {.server_nonce = Sha256(AsBytes("host nonce")),
                    .session_key_hash = request.session_key_hash,
                    .now_ms = kNow + 2000};
    host_options = {.struct_size = sizeof(host_options),
                    .server_nonce = host_request.server_nonce.data(),
                    .session_key_hash = host_request.session_key_hash.data(),
                    .nonce_issued_at_ms = kNow + 1900,
                    .now_ms = kNow + 2100,
                    .max_age_ms = 0};
  }
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  assay_code Verify(const std::string& token) {
    return assay_verify_result_token(keys.get(), token.data(), token.size(), &options, &result);
  }
  assay_code Verify(const ResultClaims& claims) { return Verify(attester.Sign(claims).value()); }
  Attester Prepare() {
    assay_attester* handle = nullptr;
    if (Verify(attester.Claims(request)) != ASSAY_OK || assay_result_prepare_host_tokens(&result, &handle) != ASSAY_OK)
      std::abort();
    return Attester(handle);
  }

  tools::SoftAttester attester;
  Keys keys;
  tools::SoftRequest request;
  assay_result_options options{};
  assay_result result{};
  tools::SoftHostRequest host_request;
  assay_host_token_options host_options{};
};

}  // namespace assay::test
