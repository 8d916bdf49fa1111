// SPDX-License-Identifier: Apache-2.0
// Counts what operator new of this whole test program gives out, also to libassay.so, on this thread.
#pragma once

#include <cstddef>

namespace assay::test {
std::size_t Allocations() noexcept;  // so far, by this thread
}
