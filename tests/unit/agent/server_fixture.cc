// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/agent/server_fixture.h"

#include <sys/socket.h>
#include <sys/un.h>

namespace assay::agent::test {
namespace {

Server::Options ToOptions(const ServerOptions& options) {
  Server::Options out;
  out.max_connections = options.max_connections;
  out.max_connections_per_user = options.max_connections_per_user;
  out.io_timeout_ms = options.io_timeout_ms;
  out.is_relay = [relay = options.we_are_relay](uid_t) { return relay; };
  return out;
}

config::AgentConfig ToConfig(const ServerOptions& options) {
  config::AgentConfig config;
  config.relay = options.relay;
  config.user = options.client;
  config.connection = options.client;
  config.firmware_log.clear();
  return config;
}

}  // namespace

ServerFixture::ServerFixture(const ServerOptions& options)
    : server_(ListenAt(path()).value(), ToOptions(options), quoter.gate, inbox_),
      service_({&server_, &inbox_, &queue_, quoter.quoter.get(), &quoter.device, ToConfig(options)}) {
  server_.SetHandler(service_);
  thread_ = std::thread([this] {
    if (!server_.Run(-1, [](int) {}).ok()) std::abort();
  });
}

ServerFixture::~ServerFixture() {
  inbox_.Post([this] { server_.Stop(); });
  thread_.join();
  queue_.Stop();
}

Fd ServerFixture::RawConnect() const {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path().copy(address.sun_path, sizeof address.sun_path - 1);
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) std::abort();
  return fd;
}

local::EvidenceRequest EvidenceFor(std::uint64_t work) {
  local::EvidenceRequest request;
  request.challenge = SampleChallenge();
  request.channel_binding = Buffer(32, 0x42);
  request.work = work;
  return request;
}

AttestReply Verdict(Tier tier, std::string token) {
  AttestReply reply;
  reply.tier = tier;
  reply.result_token = std::move(token);
  reply.next = SampleChallenge();
  reply.next_in_ms = 60'000;
  return reply;
}

local::DeliverRequest Delivery(std::uint64_t work, const AttestReply& reply) {
  return {work, "connected", EncodeAttestReply(reply), {}};
}

std::string TextOf(const local::Reply& reply) { return std::string(AsText(reply.payload)); }

}  // namespace assay::agent::test
