// SPDX-License-Identifier: Apache-2.0
// What the running kernel says of itself in /sys and /proc, for evidence: claims, never proofs. Whatever cannot be
// read is "unknown".
#pragma once

#include <cstdint>
#include <string>

#include "sdk/core/evidence.h"

namespace assay::agent {

struct PlatformClaims {
  using Tri = PlatformEvidence::Tri;
  Tri secure_boot = Tri::kUnknown;
  std::string lockdown = "unknown";
  Tri module_signatures = Tri::kUnknown;
  Tri iommu = Tri::kUnknown;
  std::string kernel_release;
  std::uint64_t taint = 0;
  Tri kexec_loaded = Tri::kUnknown;
  Tri unprivileged_bpf = Tri::kUnknown;

  PlatformEvidence View() const;  // views into this
};

// root: "" on a real machine, another directory in tests.
PlatformClaims ReadPlatformClaims(const std::string& root);

Digest ReadBootId(const std::string& root);  // SHA-256 of the kernel's boot id; zeros when unreadable
Result<Digest> DigestOfFile(const std::string& path);
Result<Digest> DigestOfThisExecutable();  // through /proc/self/exe

}  // namespace assay::agent
