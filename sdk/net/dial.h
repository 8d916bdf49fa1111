// SPDX-License-Identifier: Apache-2.0
// From a name to a connected, non-blocking socket, within a deadline. Internal to sdk/net.
#pragma once

#include <cstdint>
#include <string>

#include "sdk/core/handle.h"
#include "sdk/net/stream.h"

namespace assay::net {

// Tries the addresses in the system's order until one answers. kUnavailable, kTimeout.
Result<Fd> DialTcp(const std::string& host, std::uint16_t port, Deadline deadline);
Result<Fd> DialUnix(const std::string& path, Deadline deadline);

}  // namespace assay::net
