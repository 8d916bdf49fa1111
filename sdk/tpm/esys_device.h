// SPDX-License-Identifier: Apache-2.0
// Device over ESYS. Handles of the TSS stay inside; every transient object and session is flushed on every path.
#pragma once

#include <tss2/tss2_esys.h>
#include <tss2/tss2_tctildr.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sdk/tpm/device.h"
#include "sdk/tpm/tapped_tcti.h"

namespace assay::tpm {

class EsysDevice final : public Device {
 public:
  static Result<std::unique_ptr<Device>> Open(const std::string& tcti, Tap* tap);
  ~EsysDevice() override;

  Result<Buffer> ReadNv(std::uint32_t index) override;
  Result<CreatedKey> CreateEk(EkKind kind) override;
  Result<CreatedKey> CreateAik(AikKind kind, Bytes unique) override;
  Status Persist(std::uint32_t transient, std::uint32_t persistent) override;
  Status RemovePersistent(std::uint32_t persistent) override;
  Result<Buffer> ReadPublic(std::uint32_t handle) override;
  Result<Secret> ActivateCredential(std::uint32_t aik, std::uint32_t ek, Bytes credential_blob, Bytes encrypted_secret) override;
  Result<AttestedBytes> CertifyCreation(std::uint32_t aik, const CreatedKey& object, Bytes qualifying) override;
  Result<QuoteResult> Quote(std::uint32_t aik, PcrSelection selection, const Digest& extra_data) override;
  Result<std::vector<Digest>> ReadPcrs(PcrSelection selection) override;
  Status ExtendPcr(std::uint8_t pcr, const Digest& digest) override;
  Result<ClockInfo> ReadClock() override;
  Status FlushTransient(std::uint32_t handle) override;
  Result<Buffer> Random(std::size_t size) override;
  Result<std::vector<std::pair<std::string, std::string>>> Describe() override;

 private:
  EsysDevice() = default;
  // Runs a command until it succeeds, fails for good, or the retries are used up.
  TSS2_RC Run(const std::function<TSS2_RC()>& command);
  Status RunChecked(const char* what, const std::function<TSS2_RC()>& command);
  Result<CreatedKey> CreatePrimary(const char* what, Bytes area);
  // The ESYS object of a TPM handle: one we made, or a persistent one whose public area is read once.
  Result<ESYS_TR> ObjectOf(std::uint32_t handle);
  void Forget(std::uint32_t handle);

  struct LoaderDeleter { void operator()(TSS2_TCTI_CONTEXT* context) const { Tss2_TctiLdr_Finalize(&context); } };
  struct EsysDeleter { void operator()(ESYS_CONTEXT* context) const { Esys_Finalize(&context); } };
  std::unique_ptr<TSS2_TCTI_CONTEXT, LoaderDeleter> loader_;
  std::unique_ptr<TappedTcti> tcti_;
  std::unique_ptr<ESYS_CONTEXT, EsysDeleter> esys_;
  std::map<std::uint32_t, ESYS_TR> objects_;
};

// Memory that ESYS hands out.
struct EsysFree { void operator()(void* memory) const { Esys_Free(memory); } };
template <typename T>
using EsysOwned = std::unique_ptr<T, EsysFree>;

TPML_PCR_SELECTION ToEsys(PcrSelection selection) noexcept;
Result<Buffer> MarshalPublic(const TPMT_PUBLIC& area);

// One sentence for people: what failed, and for lockout and authorization failures what to do.
Error TpmError(const char* what, TSS2_RC rc);

}  // namespace assay::tpm
