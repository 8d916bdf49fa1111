// SPDX-License-Identifier: Apache-2.0
#include "agent/platform/platform_claims.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "sdk/core/crypto.h"
#include "tests/support/temp_dir.h"

namespace assay::agent {
namespace {

using Tri = PlatformEvidence::Tri;

struct Tree {
  void Put(const std::string& path, std::string_view content) const {
    std::filesystem::create_directories(std::filesystem::path(dir.path() + path).parent_path());
    std::ofstream(dir.path() + path, std::ios::binary) << content;
  }
  PlatformClaims Read() const { return ReadPlatformClaims(dir.path()); }
  assay::test::TempDir dir;
};

TEST_CASE("what cannot be read is unknown, never off") {
  const PlatformClaims claims = Tree().Read();
  CHECK(claims.secure_boot == Tri::kUnknown);
  CHECK(claims.lockdown == "unknown");
  CHECK(claims.module_signatures == Tri::kUnknown);
  CHECK(claims.iommu == Tri::kUnknown);
  CHECK(claims.kexec_loaded == Tri::kUnknown);
  CHECK(claims.unprivileged_bpf == Tri::kUnknown);
  CHECK(claims.kernel_release == "unknown");
}

TEST_CASE("a hardened machine is read as it is") {
  const Tree tree;
  tree.Put("/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c",
           std::string_view("\x06\0\0\0\x01", 5));
  tree.Put("/sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
  tree.Put("/sys/module/module/parameters/sig_enforce", "Y\n");
  std::filesystem::create_directories(tree.dir.path() + "/sys/kernel/iommu_groups/0");
  tree.Put("/proc/sys/kernel/osrelease", "6.1.0-18-amd64\n");
  tree.Put("/proc/sys/kernel/tainted", "4096\n");
  tree.Put("/sys/kernel/kexec_loaded", "0\n");
  tree.Put("/proc/sys/kernel/unprivileged_bpf_disabled", "2\n");
  const PlatformClaims claims = tree.Read();
  CHECK(claims.secure_boot == Tri::kOn);
  CHECK(claims.lockdown == "integrity");
  CHECK(claims.module_signatures == Tri::kOn);
  CHECK(claims.iommu == Tri::kOn);
  CHECK(claims.kernel_release == "6.1.0-18-amd64");
  CHECK(claims.taint == 4096);
  CHECK(claims.kexec_loaded == Tri::kOff);
  CHECK(claims.unprivileged_bpf == Tri::kOff);
}

TEST_CASE("a machine with its guards down is read as it is, and odd content is unknown") {
  const Tree tree;
  tree.Put("/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c",
           std::string_view("\x06\0\0\0\0", 5));
  tree.Put("/sys/kernel/security/lockdown", "[none] integrity confidentiality\n");
  tree.Put("/sys/module/module/parameters/sig_enforce", "N\n");
  std::filesystem::create_directories(tree.dir.path() + "/sys/kernel/iommu_groups");
  tree.Put("/sys/kernel/kexec_loaded", "1\n");
  tree.Put("/proc/sys/kernel/unprivileged_bpf_disabled", "0\n");
  PlatformClaims claims = tree.Read();
  CHECK(claims.secure_boot == Tri::kOff);
  CHECK(claims.lockdown == "none");
  CHECK(claims.module_signatures == Tri::kOff);
  CHECK(claims.iommu == Tri::kOff);
  CHECK(claims.kexec_loaded == Tri::kOn);
  CHECK(claims.unprivileged_bpf == Tri::kOn);
  tree.Put("/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c", "x");
  tree.Put("/sys/kernel/security/lockdown", "something else");
  tree.Put("/sys/kernel/kexec_loaded", "1x");
  claims = tree.Read();
  CHECK(claims.secure_boot == Tri::kUnknown);
  CHECK(claims.lockdown == "unknown");
  CHECK(claims.kexec_loaded == Tri::kUnknown);
}

TEST_CASE("the boot id and executables are known by their digests") {
  const Tree tree;
  CHECK(ReadBootId(tree.dir.path()) == Digest{});
  tree.Put("/proc/sys/kernel/random/boot_id", "b3c1\n");
  CHECK(ReadBootId(tree.dir.path()) == Sha256(AsBytes("b3c1")));
  tree.Put("/file", "content");
  CHECK(DigestOfFile(tree.dir.path() + "/file").value() == Sha256(AsBytes("content")));
  CHECK_FALSE(DigestOfFile(tree.dir.path() + "/none").ok());
  CHECK(DigestOfThisExecutable().value() == DigestOfFile("/proc/self/exe").value());
}

}  // namespace
}  // namespace assay::agent
