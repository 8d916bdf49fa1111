// SPDX-License-Identifier: Apache-2.0
// The verifier as assay-enroll sees it, behind a thin class so that tests can put a service there.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "enroll/failure.h"
#include "sdk/config/enroll_config.h"
#include "sdk/core/bytes.h"
#include "sdk/core/result.h"

namespace assay::enroll {

struct VerifierReply {
  unsigned status = 0;
  Buffer body;
};

class VerifierClient {
 public:
  virtual ~VerifierClient() = default;
  virtual Result<VerifierReply> Post(const std::string& route, Bytes body) = 0;
  // RFC 9266 tls-exporter of the connection, made when there is none; for evidence that PostBound then carries.
  virtual Result<Digest> ChannelBinding() = 0;
  // Only on the connection whose binding was read last: kConflict when it was renewed, and nothing was sent.
  virtual Result<VerifierReply> PostBound(const std::string& route, Bytes body) = 0;
};

// Over TLS 1.3, trusting the configured CA only.
Result<std::unique_ptr<VerifierClient>> ConnectVerifier(const config::EnrollConfig& config);

// "https://host[:port]", an IPv6 address in brackets; 8443 without a port. kConfig.
struct VerifierAddress {
  std::string host;
  std::uint16_t port = 8443;
};
Result<VerifierAddress> ParseVerifierUrl(std::string_view url);

// The body of a 200, or the failure that the verifier or the network told of.
Outcome<Buffer> Judge(Result<VerifierReply> reply, const std::string& url);

}  // namespace assay::enroll
