// SPDX-License-Identifier: Apache-2.0
// Every limit of the wire protocols by name: evidence, enrollment, tokens, the agent's local socket.
// Sizes in bytes unless the name says otherwise.
#pragma once

#include <cstddef>
#include <cstdint>

namespace assay::limits {

// HTTP bodies
inline constexpr std::size_t kEvidenceBody = 4U << 20;
inline constexpr std::size_t kOtherBody = 64U << 10;

// TPM structures
inline constexpr std::size_t kAttest = 2048;      // TPMS_ATTEST
inline constexpr std::size_t kSignature = 1024;   // TPMT_SIGNATURE
inline constexpr std::size_t kPublicArea = 1024;  // TPMT_PUBLIC
inline constexpr std::size_t kPcrs = 24;
inline constexpr std::size_t kPcrDigest = 64;        // SHA-512
inline constexpr std::size_t kCredentialBlob = 512;  // TPM2B_ID_OBJECT, TPM2B_ENCRYPTED_SECRET

// Evidence body
inline constexpr std::size_t kFirmwareLog = 1U << 20;
inline constexpr std::size_t kImaLog = 3U << 20;
inline constexpr std::size_t kRuntimeEntries = 4096;
inline constexpr std::size_t kRuntimeEntry = 16U << 10;
inline constexpr std::size_t kRuntimeBatch = 480;  // digests in one batch entry: count, fits kRuntimeEntry
inline constexpr std::size_t kHooks = 64;
inline constexpr std::size_t kCounters = 64;
inline constexpr std::size_t kShortText = 128;

// Challenges: time (8, ms since the epoch, big-endian) | random (16) | HMAC-SHA-256 (32)
inline constexpr std::size_t kChallenge = 56;

// Requests of relying parties
inline constexpr std::size_t kAudience = 256;    // text
inline constexpr std::size_t kMatch = 128;       // text
inline constexpr std::size_t kServerNonce = 32;  // exactly: random(16) | HMAC truncated to 16
inline constexpr std::size_t kResultToken = 8U << 10;
inline constexpr std::size_t kHostToken = 8U << 10;

// Enrollment
inline constexpr std::size_t kCertificate = 8U << 10;
inline constexpr std::size_t kIntermediates = 8;  // count
inline constexpr std::size_t kEnrollmentToken = 128;
inline constexpr std::size_t kTicket = 2048;  // the verifier's sealed state between begin and complete

// Replies
inline constexpr std::size_t kReasons = 64;  // count
inline constexpr std::size_t kReasonText = 1024;

// The agent's local socket
inline constexpr std::size_t kLocalRequest = 64U << 10;
inline constexpr std::size_t kLocalDelivery = kLocalRequest - 4096;  // a verifier's answer handed on by the relay
inline constexpr std::size_t kLocalReply = kEvidenceBody + (64U << 10);

}  // namespace assay::limits
