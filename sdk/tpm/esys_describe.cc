// SPDX-License-Identifier: Apache-2.0
// What a TPM says of itself: clock, random numbers, properties.
#include <algorithm>

#include "sdk/tpm/esys_device.h"
#include "sdk/tpm/marshal.h"

namespace assay::tpm {
namespace {

constexpr std::size_t kMaxRandom = 4096;
constexpr std::uint16_t kRandomChunk = 32;  // what every TPM gives at once: a SHA-256 digest

// Four characters packed in a property (Part 2, section 6.13).
std::string Packed(std::uint32_t value) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8) {
    const char c = static_cast<char>((value >> shift) & 0xFF);
    if (c >= 0x20 && c < 0x7F) text += c;
  }
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

std::string Halves(std::uint32_t value) { return std::to_string(value >> 16) + "." + std::to_string(value & 0xFFFF); }

struct Named {
  std::uint32_t property;
  const char* name;
  std::string (*text)(std::uint32_t);
};
constexpr auto kDecimal = [](std::uint32_t value) { return std::to_string(value); };
const Named kNamed[] = {
    {TPM2_PT_MANUFACTURER, "manufacturer", Packed},
    {TPM2_PT_VENDOR_STRING_1, "vendor", Packed},
    {TPM2_PT_VENDOR_STRING_2, "vendor", Packed},
    {TPM2_PT_VENDOR_STRING_3, "vendor", Packed},
    {TPM2_PT_VENDOR_STRING_4, "vendor", Packed},
    {TPM2_PT_FIRMWARE_VERSION_1, "firmware", Halves},
    {TPM2_PT_FIRMWARE_VERSION_2, "firmware_build", Halves},
    {TPM2_PT_REVISION, "specification_revision",
     [](std::uint32_t value) { return std::to_string(value / 100) + "." + std::to_string(value % 100); }},
    {TPM2_PT_PERMANENT, "in_lockout",
     [](std::uint32_t value) { return std::string((value & TPMA_PERMANENT_INLOCKOUT) != 0 ? "yes" : "no"); }},
    {TPM2_PT_LOCKOUT_COUNTER, "lockout_failed_tries", kDecimal},
    {TPM2_PT_MAX_AUTH_FAIL, "lockout_limit", kDecimal},
    {TPM2_PT_LOCKOUT_INTERVAL, "lockout_forgives_one_after_seconds", kDecimal},
    {TPM2_PT_LOCKOUT_RECOVERY, "lockout_recovery_seconds", kDecimal},
    {TPM2_PT_HR_TRANSIENT_AVAIL, "transient_objects_free", kDecimal},
    {TPM2_PT_HR_PERSISTENT_AVAIL, "persistent_objects_free", kDecimal},
};

}  // namespace

Result<ClockInfo> EsysDevice::ReadClock() {
  TPMS_TIME_INFO* time = nullptr;
  const TSS2_RC rc = Esys_ReadClock(esys_.get(), ESYS_TR_NONE, ESYS_TR_NONE, ESYS_TR_NONE, &time);
  if (rc != TSS2_RC_SUCCESS) return Failed(rc, "reading the TPM's clock");
  const EsysPtr<TPMS_TIME_INFO> own(time);
  const TPMS_CLOCK_INFO& clock = time->clockInfo;
  return ClockInfo{.clock = clock.clock,
                   .reset_count = clock.resetCount,
                   .restart_count = clock.restartCount,
                   .safe = clock.safe == TPM2_YES};
}

Result<Buffer> EsysDevice::Random(std::size_t size) {
  if (size > kMaxRandom)
    return MakeError(Code::kLimit, "at most " + std::to_string(kMaxRandom) + " random bytes are read at once");
  Buffer out;
  while (out.size() < size) {
    TPM2B_DIGEST* part = nullptr;
    const auto wanted = static_cast<UINT16>(std::min<std::size_t>(size - out.size(), kRandomChunk));
    const TSS2_RC rc = Esys_GetRandom(esys_.get(), ESYS_TR_NONE, ESYS_TR_NONE, ESYS_TR_NONE, wanted, &part);
    if (rc != TSS2_RC_SUCCESS) return Failed(rc, "reading random numbers");
    const EsysPtr<TPM2B_DIGEST> own(part);
    if (part->size == 0 || part->size > wanted)
      return MakeError(Code::kTpm, "the TPM answered another number of random bytes than asked for");
    out.insert(out.end(), part->buffer, part->buffer + part->size);
  }
  return out;
}

Result<std::vector<std::pair<std::uint32_t, std::uint32_t>>> EsysDevice::Properties(std::uint32_t first,
                                                                                    std::uint32_t count) {
  TPMS_CAPABILITY_DATA* data = nullptr;
  TPMI_YES_NO more = TPM2_NO;
  const TSS2_RC rc = Esys_GetCapability(esys_.get(), ESYS_TR_NONE, ESYS_TR_NONE, ESYS_TR_NONE, TPM2_CAP_TPM_PROPERTIES,
                                        first, count, &more, &data);
  if (rc != TSS2_RC_SUCCESS) return RcError(rc, "reading the TPM's properties");
  const EsysPtr<TPMS_CAPABILITY_DATA> own(data);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> out;
  const TPML_TAGGED_TPM_PROPERTY& list = data->data.tpmProperties;
  for (UINT32 i = 0; i < list.count && i < TPM2_MAX_TPM_PROPERTIES; ++i)
    out.emplace_back(list.tpmProperty[i].property, list.tpmProperty[i].value);
  return out;
}

Result<std::vector<std::pair<std::string, std::string>>> EsysDevice::Describe() {
  std::vector<std::pair<std::string, std::string>> out;
  for (const std::uint32_t first : {TPM2_PT_FIXED, TPM2_PT_VAR}) {
    ASSAY_TRY(const auto properties, Properties(first, TPM2_MAX_TPM_PROPERTIES));
    for (const auto& [property, value] : properties) {
      for (const Named& named : kNamed) {
        if (named.property != property) continue;
        const std::string text = named.text(value);
        if (!out.empty() && out.back().first == named.name) out.back().second += text;  // a vendor string in parts
        else out.emplace_back(named.name, text);
      }
    }
  }
  return out;
}

}  // namespace assay::tpm
