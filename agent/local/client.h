// SPDX-License-Identifier: Apache-2.0
// The other end of the agent's socket for our own programs: one connection, one request at a time, each with a
// deadline. Blocking; one thread.
#pragma once

#include <cstdint>
#include <string>

#include "agent/local/frame.h"
#include "sdk/core/agent_protocol.h"
#include "sdk/core/handle.h"
#include "sdk/core/result.h"

namespace assay::local {

class Client {
 public:
  // kUnavailable when no agent listens there.
  static Result<Client> Connect(const std::string& socket_path);
  // kTimeout, kUnavailable when the agent went away, kMalformed when it broke the protocol: then the connection is
  // of no more use.
  Result<Reply> Call(const Request& request, std::uint64_t timeout_ms);

 private:
  explicit Client(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

}  // namespace assay::local
