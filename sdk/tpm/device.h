// SPDX-License-Identifier: Apache-2.0
// The TPM as the agent and the enrollment CLI use it, behind a thin class so that tests can put a fake there.
// Implementation: ESYS over a TCTI named by a string ("swtpm:path=SOCK", "device:/dev/tpmrm0").
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sdk/core/bytes.h"
#include "sdk/core/result.h"
#include "sdk/core/tpm.h"

namespace assay::tpm {

struct QuoteResult {
  Buffer attest;             // TPMS_ATTEST
  Buffer signature;          // TPMT_SIGNATURE
  std::vector<Digest> pcrs;  // values of the selection, ascending, read so that they match the quote's digest
};

struct CreatedKey {
  std::uint32_t handle = 0;  // transient; flushed by FlushTransient
  Buffer public_area;        // TPMT_PUBLIC
  Buffer creation_hash;
  Buffer creation_ticket;  // TPMT_TK_CREATION
};

struct AttestedBytes {
  Buffer attest;
  Buffer signature;
};

// One owner, one thread at a time. Commands retry on TPM_RC_RETRY, YIELDED and TESTING within a bound; a
// lockout is reported in words (Error.detail) with Code::kTpm. Transient objects are always flushed.
class Device {
 public:
  virtual ~Device() = default;
  virtual Result<Buffer> ReadNv(std::uint32_t index) = 0;  // kNotFound when not defined
  virtual Result<CreatedKey> CreateEk(EkKind kind) = 0;
  virtual Result<CreatedKey> CreateAik(AikKind kind, Bytes unique) = 0;           // primary, endorsement hierarchy
  virtual Status Persist(std::uint32_t transient, std::uint32_t persistent) = 0;  // replaces what was there
  virtual Status RemovePersistent(std::uint32_t persistent) = 0;
  virtual Result<Buffer> ReadPublic(std::uint32_t handle) = 0;  // TPMT_PUBLIC; kNotFound
  virtual Result<Secret> ActivateCredential(std::uint32_t aik, std::uint32_t ek, Bytes credential_blob,
                                            Bytes encrypted_secret) = 0;
  virtual Result<AttestedBytes> CertifyCreation(std::uint32_t aik, const CreatedKey& object, Bytes qualifying) = 0;
  virtual Result<QuoteResult> Quote(std::uint32_t aik, PcrSelection selection, const Digest& extra_data) = 0;
  virtual Result<std::vector<Digest>> ReadPcrs(PcrSelection selection) = 0;  // SHA-256 bank
  virtual Status ExtendPcr(std::uint8_t pcr, const Digest& digest) = 0;      // SHA-256 bank
  virtual Result<ClockInfo> ReadClock() = 0;
  virtual Status FlushTransient(std::uint32_t handle) = 0;
  virtual Result<Buffer> Random(std::size_t size) = 0;
  // For `doctor`: manufacturer, firmware, lockout counters, as text pairs.
  virtual Result<std::vector<std::pair<std::string, std::string>>> Describe() = 0;
};

// What passes the TCTI, for tests: counts commands, and can answer the n-th with a response code instead.
class Tap {
 public:
  virtual ~Tap() = default;
  // Called before a command is sent; a non-zero TPM_RC is answered in the TPM's place.
  virtual std::uint32_t OnCommand(std::uint32_t command_code) = 0;
};

inline constexpr std::uint32_t kDefaultAikHandle = 0x81010100;

Result<std::unique_ptr<Device>> OpenDevice(const std::string& tcti, Tap* tap = nullptr);  // tap outlives the device

}  // namespace assay::tpm
