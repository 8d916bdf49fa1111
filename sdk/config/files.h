// SPDX-License-Identifier: Apache-2.0
// Whole files, read bounded and written atomically: configuration, keys, certificates, small state.
#pragma once

#include <sys/types.h>

#include <string>

#include "sdk/core/bytes.h"
#include "sdk/core/result.h"
#include "sdk/core/secret.h"

namespace assay::config {

// Regular files only. kNotFound, kLimit (larger than `limit` bytes) or kIo with errno; errors name the path.
Result<Buffer> ReadFile(const std::string& path, std::size_t limit);
Result<std::string> ReadTextFile(const std::string& path, std::size_t limit);
// For key material: also refuses a file that others than its owner may read or write (kDenied).
Result<Secret> ReadSecretFile(const std::string& path, std::size_t limit);

// Writes a temporary file beside `path`, fsyncs, renames, fsyncs the directory: the old content or the new, never half.
Status WriteFileAtomic(const std::string& path, Bytes content, mode_t mode);
// As above, but refuses to replace an existing file (kConflict).
Status CreateFile(const std::string& path, Bytes content, mode_t mode);
// Makes one directory; an existing one is fine.
Status MakeDirectory(const std::string& path, mode_t mode);

}  // namespace assay::config
