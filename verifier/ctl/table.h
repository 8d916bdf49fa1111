// SPDX-License-Identifier: Apache-2.0
// Text for a terminal. Everything that came from elsewhere is cleaned: a label must not move the cursor.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace assay::ctl {

// Control characters (C0, DEL, C1) and bidirectional overrides become '?'; what is no UTF-8 too.
std::string Clean(std::string_view text);
std::string TimeText(std::int64_t seconds);  // UTC

// Columns as wide as their widest cell; the last one is not padded. Cells are cleaned.
std::string Table(const std::vector<std::string>& head, const std::vector<std::vector<std::string>>& rows);

}  // namespace assay::ctl
