// SPDX-License-Identifier: Apache-2.0
// PROXY protocol version 2 (HAProxy's proxy-protocol.txt, section 2.2): the header a configured balancer sends before
// everything else. Read strictly; who may send one is decided by BalancerList.
#pragma once

#include <cstddef>
#include <string>

#include "sdk/core/bytes.h"
#include "sdk/core/result.h"

namespace assay::server {

inline constexpr std::size_t kProxyFixed = 16;     // signature, version and command, family, length
inline constexpr std::size_t kProxyMaxBody = 536;  // addresses and TLVs

// The length of what follows the fixed part, from its 16 bytes. kMalformed when they are no version 2 header, kLimit.
Result<std::size_t> ProxyBodySize(Bytes fixed);
// The client's address as text; empty for the LOCAL command (the balancer speaks for itself). kUnsupported for another
// transport than TCP over IPv4 or IPv6.
Result<std::string> ProxySource(Bytes fixed, Bytes body);

}  // namespace assay::server
