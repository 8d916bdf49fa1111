// SPDX-License-Identifier: Apache-2.0
// The operator's routes: JSON over HTTP on the verifier's local socket, spoken by assayctl. Nothing of it is on the
// network. Every change needs a reason and is in the audit trail before the reply; every read of host data has its
// access record written before the data is read and its release record before the reply.
//
// GET  /v1/operator/status                           -> {"hosts_known", "audit", ...}: no host data
// GET  /v1/operator/hosts?after=HEX&limit=N          -> {"hosts": [HOST...], "next": HEX or null}, by host id
// GET  /v1/operator/hosts/{id}                       -> HOST with "last_verdict": VERDICT or null
// GET  /v1/operator/hosts/{id}/explain?limit=N       -> {"host": HOST, "summary": text, "verdicts": [VERDICT...]}, newest first
// POST /v1/operator/hosts/{id}/forget       {reason} -> {"host_id"}
// POST /v1/operator/hosts/{id}/accept-reset {reason} -> {"host_id"}: the next quote may have lower counters, once
// POST /v1/operator/hosts/{old}/replace {new, reason}-> {"old", "new"}
// POST /v1/operator/policy/reload           {reason} -> {"old_digest", "new_digest", "changed"}
// POST /v1/operator/enrollment-tokens {ttl_s, reason}-> {"token", "expires_at"}: shown once, kept as a hash
//
// POST /v1/operator/revocations {kind, value, ttl_s, reason} -> {"kind", "value", "until"}: kind "token" (jti) or "device"
//      (a title's device id); game servers see it in the next signed list
// {id}: 64 hexadecimal digits, or at least 8 that begin exactly one host id.
// HOST: {"host_id", "label", "ek_class": "chain"|"ek-key", "device_id_strength": "strong"|"weak", "ek_spki_sha256",
//        "enrolled_at", "generation", "reset_accepted", "state", "replaced_by": HEX or null}
// VERDICT: {"at_ms", "audit_sequence", "outcome", "tier", "reasons": [{"code", "tier", "detail", "fix"}...]}
// Errors (400 and above): {"code", "detail", "fix"}.
#pragma once

#include <cstddef>

namespace assay::operator_api {

inline constexpr char kDefaultSocket[] = "/run/assay-verifier/operator.sock";
inline constexpr char kPrefix[] = "/v1/operator/";
inline constexpr char kStatus[] = "/v1/operator/status";
inline constexpr char kHosts[] = "/v1/operator/hosts";
inline constexpr char kPolicyReload[] = "/v1/operator/policy/reload";
inline constexpr char kEnrollmentTokens[] = "/v1/operator/enrollment-tokens";

inline constexpr char kRevocations[] = "/v1/operator/revocations";

inline constexpr std::size_t kBodyLimit = 16U << 10;
inline constexpr std::size_t kReasonLimit = 512;                 // bytes of UTF-8 without control characters
inline constexpr std::size_t kShortestPrefix = 8;                // hexadecimal digits of a host id
inline constexpr std::size_t kPageLimit = 1000;                  // hosts of one page
inline constexpr std::size_t kVerdictLimit = 100;                // verdicts of one explanation
inline constexpr std::size_t kRevokedLimit = 128;                // bytes of a token id or device id
inline constexpr long long kRevocationTtlMost = 3650LL * 86400;  // seconds
inline constexpr long long kTokenTtlLeast = 60;                  // seconds
inline constexpr long long kTokenTtlMost = 30LL * 86400;

}  // namespace assay::operator_api
