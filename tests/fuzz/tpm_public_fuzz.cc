// SPDX-License-Identifier: Apache-2.0
// TPMT_PUBLIC: what follows from an area that decodes (key, Name, whether it may be an AIK) fails in words or holds.
#include <cstdlib>

#include "sdk/core/tpm.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const assay::Bytes input(data, size);
  if (const auto content = assay::tpm::UnwrapTpm2b(input, assay::limits::kPublicArea, "an area");
      content.ok() && content->size() + 2 != size)
    std::abort();
  const auto area = assay::tpm::DecodePublicArea(input);
  if (!area.ok()) return 0;
  const auto name = assay::tpm::ObjectName(input);
  if (!name.ok() || name->size() != 2 + assay::tpm::DigestSize(area->name_alg)) std::abort();
  const auto key = assay::tpm::KeyOf(*area);
  const auto aik = assay::tpm::CheckAikArea(*area);
  if (!aik.ok() && aik.error().code != assay::Code::kDenied) std::abort();
  if (aik.ok() && (area->attributes & assay::tpm::attr::kRestricted) == 0) std::abort();
  if (key.ok() && aik.ok() && key->type() != assay::KeyType::kRsa2048 && key->type() != assay::KeyType::kP256)
    std::abort();
  return 0;
}
