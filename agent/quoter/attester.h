// SPDX-License-Identifier: Apache-2.0
// Who this agent attests as: the enrollment record, believed only after the key in the TPM matched it.
#pragma once

#include <string>

#include "sdk/config/enrollment.h"
#include "sdk/tpm/device.h"

namespace assay::agent {

// The record whose AIK the TPM holds at the handle; kNotFound when not enrolled, kConflict when the key there is
// another one. TPM thread.
Result<config::EnrollmentRecord> LoadAttester(const std::string& state_dir, tpm::Device& device);

// Changes whenever the enrollment file was replaced: cheap to ask before each evidence. 0: no file.
struct FileStamp {
  std::uint64_t inode = 0;
  std::int64_t seconds = 0;
  std::int64_t nanoseconds = 0;
  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};
FileStamp StampOf(const std::string& path) noexcept;

}  // namespace assay::agent
