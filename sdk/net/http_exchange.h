// SPDX-License-Identifier: Apache-2.0
// One request and its reply over a connected stream. The only file behind it includes Boost.Beast. Internal to sdk/net.
#pragma once

#include <string>

#include "sdk/net/https_client.h"
#include "sdk/net/stream.h"

namespace assay::net {

struct ExchangeRules {
  std::string host;  // the Host field
  std::size_t reply_limit = 0;
  Deadline deadline;
};

struct ExchangeState {
  bool wrote = false;  // a byte of the request was handed to the stream
  bool reply_began = false;
  bool keep_alive = false;  // the stream may carry another request
};

// kMalformed before anything is written when the request itself cannot be sent (a newline in a header).
Result<HttpReply> Exchange(Stream& stream, const HttpRequest& request, const ExchangeRules& rules,
                           ExchangeState& state);

}  // namespace assay::net
