// SPDX-License-Identifier: Apache-2.0
// Status as JSON text. Everyone may see how things stand; who this machine is (attester, host id, verifier) is for
// root and the relay only, so that a game cannot use the agent to recognise a machine across titles.
#pragma once

#include <string>
#include <string_view>

#include "agent/quoter/quoter.h"
#include "agent/server/results.h"

namespace assay::agent {

struct StatusInput {
  const QuoterFacts* facts;
  const Results* results;
  std::string tcti;
  std::uint8_t pcr = 14;
  std::uint64_t uptime_ms = 0;
  std::uint64_t now_ms = 0;
  std::uint64_t tpm_silent_ms = 0;  // how long the facts were waited for
  std::uint64_t unix_now = 0;       // seconds since the epoch
  std::size_t connections = 0;
  std::size_t tokens_waiting = 0;
  std::size_t quotes_waiting = 0;
  bool full = false;
};
std::string StatusJson(const StatusInput& input);

// Text from outside as JSON may carry it: what is not UTF-8 is shown in hex.
std::string Printable(std::string_view text);

// The members of a decoded evidence that people look at, with the raw bytes in hex.
Result<std::string> EvidenceJson(Bytes evidence);

}  // namespace assay::agent
