// SPDX-License-Identifier: Apache-2.0
// A whole agent's server over a fake TPM, on a real socket, served by a thread of its own.
#pragma once

#include <thread>

#include "agent/local/client.h"
#include "agent/server/server.h"
#include "agent/server/service.h"
#include "tests/unit/agent/agent_fixture.h"

namespace assay::agent::test {

struct ServerOptions {
  bool we_are_relay = true;
  std::size_t max_connections = 64;
  std::size_t max_connections_per_user = 32;
  std::uint64_t io_timeout_ms = 10'000;
  config::QuoteBudget relay{6000, 100};
  config::QuoteBudget client{6000, 100};
};

class ServerFixture {
 public:
  explicit ServerFixture(const ServerOptions& options = {});
  ~ServerFixture();

  local::Client Connect() { return local::Client::Connect(path()).value(); }
  Fd RawConnect() const;  // for bytes that no client of ours sends
  std::string path() const { return quoter.dir / "agent.sock"; }

  QuoterFixture quoter;

 private:
  Inbox inbox_;
  Server server_;
  TpmQueue queue_;
  Service service_;
  std::thread thread_;
};

local::EvidenceRequest EvidenceFor(std::uint64_t work);
local::DeliverRequest Delivery(std::uint64_t work, const AttestReply& reply);
AttestReply Verdict(Tier tier, std::string token = "");
std::string TextOf(const local::Reply& reply);

}  // namespace assay::agent::test
