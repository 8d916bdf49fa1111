// SPDX-License-Identifier: Apache-2.0
// NV indices: certificates of endorsement keys.
#include <algorithm>

#include "sdk/tpm/esys_device.h"
#include "sdk/tpm/marshal.h"

namespace assay::tpm {
namespace {

constexpr std::uint16_t kChunk = 1024;         // TPM_PT_NV_BUFFER_MAX of most TPMs
constexpr std::uint16_t kSmallestChunk = 128;  // a TPM that takes less reads no certificate

TSS2L_SYS_AUTH_COMMAND EmptyPassword() {
  TSS2L_SYS_AUTH_COMMAND command{};
  command.count = 1;
  command.auths[0].sessionHandle = TPM2_RH_PW;
  return command;
}

bool TooLarge(const Error& error) noexcept {
  const std::uint32_t base = BaseCode(error.os);
  return base == TPM2_RC_VALUE || base == TPM2_RC_SIZE;
}

}  // namespace

Result<Buffer> EsysDevice::ReadNv(std::uint32_t index) {
  ASSAY_TRY(const NvShape shape, ReadNvShape(index));
  if (shape.size > limits::kCertificate)
    return MakeError(Code::kLimit,
                     "the NV index holds " + std::to_string(shape.size) + " bytes, more than a certificate may have");
  if ((shape.attributes & TPMA_NV_WRITTEN) == 0)
    return MakeError(Code::kNotFound, "the NV index was defined but never written");
  const bool by_index = (shape.attributes & TPMA_NV_AUTHREAD) != 0;
  const std::uint32_t authorized_by = by_index ? index : TPM2_RH_OWNER;
  Buffer content;
  std::uint16_t chunk = kChunk;
  while (content.size() < shape.size) {
    const auto left = static_cast<std::uint16_t>(shape.size - content.size());
    const Result<Buffer> part =
        ReadNvChunk({index, authorized_by, static_cast<std::uint16_t>(content.size()), std::min(left, chunk)});
    if (!part.ok() && TooLarge(part.error()) && chunk > kSmallestChunk) {
      chunk /= 2;
      continue;
    }
    if (!part.ok()) return part.error();
    if (part->empty()) return MakeError(Code::kTpm, "the TPM answered an NV read with nothing");
    content.insert(content.end(), part->begin(), part->end());
  }
  return content;
}

Result<EsysDevice::NvShape> EsysDevice::ReadNvShape(std::uint32_t index) {
  TPM2B_NV_PUBLIC nv{};
  TPM2B_NAME name{};
  const TSS2_RC rc = Tss2_Sys_NV_ReadPublic(sys_, index, nullptr, &nv, &name, nullptr);
  if (rc != TSS2_RC_SUCCESS) return Failed(rc, "looking up an NV index");
  return NvShape{nv.nvPublic.dataSize, nv.nvPublic.attributes};
}

Result<Buffer> EsysDevice::ReadNvChunk(const NvRange& range) {
  const TSS2L_SYS_AUTH_COMMAND auth = EmptyPassword();
  TSS2L_SYS_AUTH_RESPONSE auth_response{};
  TPM2B_MAX_NV_BUFFER data{};
  const TSS2_RC rc =
      Tss2_Sys_NV_Read(sys_, range.authorized_by, range.index, &auth, range.size, range.offset, &data, &auth_response);
  if (rc != TSS2_RC_SUCCESS) return Failed(rc, "reading an NV index");
  return ToBuffer(Bytes(data.buffer, data.size));
}

}  // namespace assay::tpm
