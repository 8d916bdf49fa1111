// SPDX-License-Identifier: Apache-2.0
// What the group `core` works on: realistic messages, made once with software keys. The TPM's part is pretended; every
// message passes the real checks before it is measured.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sdk/core/evidence.h"
#include "sdk/core/host_token.h"
#include "sdk/core/protocol.h"
#include "sdk/core/tpm.h"
#include "tests/support/forge.h"
#include "tests/support/temp_dir.h"
#include "verifier/store/sqlite_store.h"

namespace assay::perf {

inline constexpr std::uint32_t kPcrMask = 0x40FF;  // PCRs 0 to 7 and 14

// A message, its hash and its signature for the bare primitives.
struct SignedDigest {
  PrivateKey key;
  Digest digest{};
  Buffer signature;  // as OpenSSL takes it: RSA raw, ECDSA DER
};
SignedDigest SignRsa();
SignedDigest SignP256();

// Evidence of 8 KB: 5 KiB of IMA log, 1.5 KiB of firmware log, 6 hooks, 6 counters, 4 entries of the runtime log.
struct EvidenceScene {
  EvidenceScene();
  PrivateKey aik;
  Buffer boot, ima;
  std::vector<Buffer> entries;
  test::ForgedEvidence parts;
  Digest extra_data{};
  Buffer encoded;
};

Buffer RsaAikArea(const PublicKey& key);  // TPMT_PUBLIC as a TPM returns it

// EnrollBegin with an EK certificate and an intermediate of 1.1 KB each.
EnrollBegin MakeEnrollBegin(const PublicKey& ek, const PublicKey& aik);

// A store on disk with this many hosts, each with its AIK; attesters are Sha256 of "aik N".
class StoreScene {
 public:
  StoreScene(std::size_t hosts, const Buffer& aik_area);
  store::SqliteStore& store() { return *store_; }
  static Digest Attester(std::size_t n);

 private:
  test::TempDir dir_;
  std::unique_ptr<store::SqliteStore> store_;
};

}  // namespace assay::perf
