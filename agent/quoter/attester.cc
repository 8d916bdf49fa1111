// SPDX-License-Identifier: Apache-2.0
#include "agent/quoter/attester.h"

#include <sys/stat.h>

namespace assay::agent {

Result<config::EnrollmentRecord> LoadAttester(const std::string& state_dir, tpm::Device& device) {
  ASSAY_TRY(const config::EnrollmentRecord record, config::LoadEnrollment(config::EnrollmentPath(state_dir)));
  auto area = device.ReadPublic(record.aik_handle);
  if (!area.ok()) {
    if (area.error().code != Code::kNotFound) return std::move(area).error();
    return MakeError(Code::kConflict,
                     "the enrollment names an AIK that this TPM does not hold: it was cleared or is another one; run "
                     "assay-enroll enroll");
  }
  ASSAY_TRY(const tpm::PublicArea decoded, tpm::DecodePublicArea(*area));
  ASSAY_TRY(const PublicKey key, tpm::KeyOf(decoded));
  if (key.SpkiDigest() != record.attester) {
    return MakeError(
        Code::kConflict,
        "the key in the TPM is not the AIK that was enrolled: run assay-enroll rotate or assay-enroll enroll");
  }
  return record;
}

FileStamp StampOf(const std::string& path) noexcept {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return {};
  return {info.st_ino, info.st_mtim.tv_sec, info.st_mtim.tv_nsec};
}

}  // namespace assay::agent
