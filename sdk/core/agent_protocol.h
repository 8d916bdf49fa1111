// SPDX-License-Identifier: Apache-2.0
// Messages on the agent's local socket (AF_UNIX stream): a frame is a 32-bit little-endian size and that many
// bytes of deterministic CBOR, one reply a request, in order. Who may send what is the agent's request table.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "sdk/core/bytes.h"
#include "sdk/core/limits.h"
#include "sdk/core/protocol.h"
#include "sdk/core/result.h"

namespace assay::local {

enum class Kind : std::uint8_t {
  kStatus = 1,        // anyone: state as JSON text
  kWaitWork = 2,      // relay: blocks until a client asked for a token, or until the wait is over
  kEvidence = 3,      // relay: evidence for a challenge (and, with a work id, for a client's request)
  kDeliver = 4,       // relay: the verifier's answer to that evidence, or why there is none
  kResultToken = 5,   // client: a result token for a game server; answered when the relay delivers
  kHostToken = 6,     // client: a fresh host token for a server's nonce
  kShowEvidence = 7,  // root: evidence over a nonce of zeros, for people to look at
  kAttester = 8,      // relay: whose evidence this is, for the first challenge
  kDoctor = 9,        // root: the agent's checks of its own footing as JSON text
};

struct StatusRequest {};
struct WaitWorkRequest {
  std::uint64_t wait_ms = 0;
};
struct EvidenceRequest {
  Challenge challenge;
  Buffer channel_binding;  // 32 bytes: RFC 9266 tls-exporter of the relay's connection to the verifier
  std::uint64_t work = 0;  // 0: routine evidence
};
struct DeliverRequest {
  std::uint64_t work = 0;
  std::string relay_state;  // "connected", "backing_off", "refused", ...: shown in status
  Buffer reply;             // AttestReply, or empty
  Buffer error;             // ErrorReply, or empty
};
struct ResultTokenRequest {
  std::string audience;
  std::string match;
  Digest server_nonce{};
  Digest session_key_hash{};
  std::uint64_t deadline_ms = 0;
};
struct HostTokenRequest {
  std::string audience;
  bool heartbeat = false;      // tag assay/heartbeat/1, else assay/host-token/1
  std::uint64_t sequence = 0;  // heartbeat counter of the server's library
  Digest server_nonce{};
  Digest session_key_hash{};
};
struct ShowEvidenceRequest {};
struct AttesterRequest {};
struct DoctorRequest {};

using Request = std::variant<StatusRequest, WaitWorkRequest, EvidenceRequest, DeliverRequest, ResultTokenRequest,
                             HostTokenRequest, ShowEvidenceRequest, AttesterRequest, DoctorRequest>;
Kind KindOf(const Request& request) noexcept;
Buffer EncodeRequest(const Request& request);
Result<Request> DecodeRequest(Bytes encoded);

// Replies: {0: 0, 1: payload} or {0: 1, 1: code, 2: detail, 3: fix}.
struct Reply {
  bool ok = false;
  Buffer payload;  // kStatus, kShowEvidence, kDoctor: JSON text; kWaitWork: CBOR uint work id (0: none);
                   // kEvidence: Evidence; kDeliver: empty; kResultToken: JWS text; kHostToken: HostToken bytes;
                   // kAttester: AttesterReply
  ErrorReply error;
};
Buffer EncodeReply(const Reply& reply);
Result<Reply> DecodeReply(Bytes encoded);

struct AttesterReply {
  Digest attester{};
  std::uint64_t not_after = 0;    // of the AIK certificate, seconds since the epoch
  std::uint64_t renew_after = 0;  // seconds since the epoch: assay-enroll renew is due
};
Buffer EncodeAttesterReply(const AttesterReply& reply);
Result<AttesterReply> DecodeAttesterReply(Bytes encoded);
Buffer EncodeWorkReply(std::uint64_t work);
Result<std::uint64_t> DecodeWorkReply(Bytes encoded);

}  // namespace assay::local
