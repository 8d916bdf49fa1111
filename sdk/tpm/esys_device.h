// SPDX-License-Identifier: Apache-2.0
// Device over ESYS. Objects go through ESYS; NV indices and the release of handles through the system API context
// inside it, which takes handles as they are and so sends no command of its own.
#pragma once

#include <tss2/tss2_esys.h>
#include <tss2/tss2_sys.h>

#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "sdk/core/handle.h"
#include "sdk/tpm/device.h"
#include "sdk/tpm/link.h"

namespace assay::tpm {

struct EsysFinalize {
  void operator()(ESYS_CONTEXT* context) const noexcept { Esys_Finalize(&context); }
};
using EsysContext = std::unique_ptr<ESYS_CONTEXT, EsysFinalize>;

// One owner, one thread. Every transient object and session that it made and did not hand over is flushed: at the
// failure that orphaned it, else in the destructor.
class EsysDevice final : public Device {
 public:
  EsysDevice(std::unique_ptr<Link> link, EsysContext esys, TSS2_SYS_CONTEXT* sys);
  ~EsysDevice() override;

  Result<Buffer> ReadNv(std::uint32_t index) override;
  Result<CreatedKey> CreateEk(EkKind kind) override;
  Result<CreatedKey> CreateAik(AikKind kind, Bytes unique) override;
  Status Persist(std::uint32_t transient, std::uint32_t persistent) override;
  Status RemovePersistent(std::uint32_t persistent) override;
  Result<Buffer> ReadPublic(std::uint32_t handle) override;
  Result<Secret> ActivateCredential(std::uint32_t aik, std::uint32_t ek, Bytes credential_blob,
                                    Bytes encrypted_secret) override;
  Result<AttestedBytes> CertifyCreation(std::uint32_t aik, const CreatedKey& object, Bytes qualifying) override;
  Result<QuoteResult> Quote(std::uint32_t aik, PcrSelection selection, const Digest& extra_data) override;
  Result<std::vector<Digest>> ReadPcrs(PcrSelection selection) override;
  Status ExtendPcr(std::uint8_t pcr, const Digest& digest) override;
  Result<ClockInfo> ReadClock() override;
  Status FlushTransient(std::uint32_t handle) override;
  Result<Buffer> Random(std::size_t size) override;
  Result<std::vector<std::pair<std::string, std::string>>> Describe() override;

 private:
  struct Object {
    ESYS_TR object = ESYS_TR_NONE;
    std::uint32_t attributes = 0;
  };  // attributes 0: not known
  struct PcrChunk {
    std::vector<Digest> values;
    std::uint32_t mask = 0;
    std::uint32_t update_counter = 0;
  };
  struct NvShape {
    std::uint16_t size = 0;
    std::uint32_t attributes = 0;
  };
  struct NvRange {
    std::uint32_t index;
    std::uint32_t authorized_by;
    std::uint16_t offset;
    std::uint16_t size;
  };

  // The error of a failed command: the link's cause if it has one, words for lockout, else the code's.
  Error Failed(TSS2_RC rc, std::string_view doing);
  std::string LockoutWords();
  Result<std::vector<std::pair<std::uint32_t, std::uint32_t>>> Properties(std::uint32_t first, std::uint32_t count);

  Result<CreatedKey> CreatePrimary(Bytes area, std::string_view doing);
  Result<ESYS_TR> ObjectOf(std::uint32_t handle);
  Result<std::uint32_t> AttributesOf(std::uint32_t handle);
  void Forget(std::uint32_t handle) noexcept;
  TSS2_RC FlushHandle(std::uint32_t handle) noexcept;
  Status Evict(ESYS_TR object, std::uint32_t persistent, std::string_view doing);
  Result<ESYS_TR> StartEndorsementPolicy();
  void EndSession(ESYS_TR session) noexcept;

  Result<AttestedBytes> QuoteOnce(ESYS_TR aik, PcrSelection selection, const Digest& extra_data);
  Result<PcrChunk> ReadPcrChunk(std::uint32_t mask);
  void Remember(PcrSelection selection, const std::vector<Digest>& values);
  std::optional<std::vector<Digest>> Remembered(PcrSelection selection) const;

  Result<NvShape> ReadNvShape(std::uint32_t index);
  Result<Buffer> ReadNvChunk(const NvRange& range);

  std::unique_ptr<Link> link_;  // before esys_: outlives it
  EsysContext esys_;
  TSS2_SYS_CONTEXT* sys_;                    // inside esys_
  std::map<std::uint32_t, Object> objects_;  // by TPM handle
  std::vector<std::uint32_t> transient_;     // objects and sessions, ours to flush
  std::map<std::uint8_t, Digest> pcrs_;      // as last seen: a guess that only a quote's digest confirms
};

}  // namespace assay::tpm
