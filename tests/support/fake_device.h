// SPDX-License-Identifier: Apache-2.0
// A TPM in software behind the Device seam: real keys, real TPMS_ATTEST bytes, registers and a clock that a test
// moves by hand. What a test may see and break is public. Not a TPM: it checks no authorization.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sdk/core/crypto.h"
#include "sdk/tpm/device.h"

namespace assay::test {

class FakeDevice : public tpm::Device {
 public:
  FakeDevice() = default;
  // Registers and clock live in this file from now on: read if it is there, written through on each change.
  explicit FakeDevice(std::string state_path);

  std::array<Digest, limits::kPcrs> pcrs{};  // SHA-256 bank
  tpm::ClockInfo clock{.clock = 100'000, .reset_count = 3, .restart_count = 0, .safe = true};
  std::map<std::uint32_t, Buffer> nv;
  std::vector<std::string> commands;  // names of the Device's functions, in the order of their calls
  // Called before and after a command's effect: an Error is returned in its place.
  std::function<Status(std::string_view command)> before;
  std::function<Status(std::string_view command)> after;

  void Reboot();  // TPM2_Startup(CLEAR) after an orderly shutdown: registers zeroed, resetCount up
  void Resume() { ++clock.restart_count; }  // suspend and resume: registers kept
  void Hibernate();                         // Startup(CLEAR) after Shutdown(STATE): registers zeroed, restartCount up
  // An AIK of that kind at a persistent handle; its public key.
  PublicKey MakeAik(tpm::AikKind kind, std::uint32_t handle = tpm::kDefaultAikHandle);

  Result<Buffer> ReadNv(std::uint32_t index) override;
  Result<tpm::CreatedKey> CreateEk(tpm::EkKind kind) override;                  // RSA and P-256 kinds
  Result<tpm::CreatedKey> CreateAik(tpm::AikKind kind, Bytes unique) override;  // the same unique, the same key
  Status Persist(std::uint32_t transient, std::uint32_t persistent) override;
  Status RemovePersistent(std::uint32_t persistent) override;
  Result<Buffer> ReadPublic(std::uint32_t handle) override;
  // RSA EKs: the reverse of MakeCredential (Part 1 section 24).
  Result<Secret> ActivateCredential(std::uint32_t aik, std::uint32_t ek, Bytes credential_blob,
                                    Bytes encrypted_secret) override;
  Result<tpm::AttestedBytes> CertifyCreation(std::uint32_t aik, const tpm::CreatedKey& object,
                                             Bytes qualifying) override;
  Result<tpm::QuoteResult> Quote(std::uint32_t aik, tpm::PcrSelection selection, const Digest& extra_data) override;
  Result<std::vector<Digest>> ReadPcrs(tpm::PcrSelection selection) override;
  Status ExtendPcr(std::uint8_t pcr, const Digest& digest) override;
  Result<tpm::ClockInfo> ReadClock() override;
  Status FlushTransient(std::uint32_t handle) override;
  Result<Buffer> Random(std::size_t size) override;
  Result<std::vector<std::pair<std::string, std::string>>> Describe() override;

 private:
  struct Key {
    PrivateKey key;
    SignatureScheme scheme;
    Buffer area;        // TPMT_PUBLIC
    Digest creation{};  // creation hash
  };
  using KeyPtr = std::shared_ptr<Key>;  // shared by a transient and a persistent handle of one object
  Status Begin(std::string_view command);
  Status End(std::string_view command) { return after ? after(command) : Ok(); }
  void Save() const;
  Result<tpm::CreatedKey> Add(KeyPtr key);
  const Key* Find(std::uint32_t handle) const;

  std::string state_path_;
  std::map<std::uint32_t, KeyPtr> handles_;
  std::map<Buffer, KeyPtr> primaries_;  // by template: a primary key is derived from it
  std::uint32_t next_transient_ = 0x80000000;
};

}  // namespace assay::test
