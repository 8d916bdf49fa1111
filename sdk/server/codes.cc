// SPDX-License-Identifier: Apache-2.0
// Names and sentences of the public codes, in one table.
#include <iterator>

#include "sdk/include/assay/errors.h"

namespace {

struct Row {
  assay_code code;
  const char* name;
  const char* text;
};
constexpr Row kRows[] = {
    {ASSAY_OK, "ok", "Accepted."},
    {ASSAY_E_ARGUMENT, "argument",
     "A required argument is null, zero or too long, or struct_size is wrong: see the header."},
    {ASSAY_E_MEMORY, "memory", "No memory for the handle."},
    {ASSAY_E_MALFORMED, "malformed", "The bytes are no token, key set or list of the expected form."},
    {ASSAY_E_ALGORITHM, "algorithm", "The token's alg is not that of the key it names."},
    {ASSAY_E_KEY_UNKNOWN, "key_unknown", "The key set has no such kid: fetch the verifier's key set again."},
    {ASSAY_E_TYPE, "type", "The token is of another type (typ)."},
    {ASSAY_E_SIGNATURE, "signature", "The signature does not verify."},
    {ASSAY_E_CRITICAL, "critical", "The token demands extensions (crit) that nobody here knows."},
    {ASSAY_E_EMBEDDED_KEY, "embedded_key",
     "The token brings or points to its own key; keys come from the key set only."},
    {ASSAY_E_CLAIMS, "claims", "A claim is missing, repeated, mistyped or over its limit."},
    {ASSAY_E_NO_CNF, "no_cnf", "The token is bound to no session key (cnf) and could be anybody's."},
    {ASSAY_E_ISSUER, "issuer", "Another verifier issued the token."},
    {ASSAY_E_AUDIENCE, "audience", "The token was made for another title."},
    {ASSAY_E_VERIFIER_AUDIENCE, "verifier_audience",
     "The token was made for the verifier itself and proves nothing to a game server."},
    {ASSAY_E_NONCE, "nonce", "The token answers another nonce."},
    {ASSAY_E_NONCE_AGE, "nonce_age", "The nonce is too old, or issued after now: issue a new one and ask again."},
    {ASSAY_E_MATCH, "match", "The token was made for another match."},
    {ASSAY_E_SESSION_KEY, "session_key", "The token is bound to another channel's key: it is not this player's."},
    {ASSAY_E_EXPIRED, "expired", "The result is past its end: ask for a new one."},
    {ASSAY_E_NOT_YET_VALID, "not_yet_valid",
     "The result was issued in the future: compare the clocks of server and verifier."},
    {ASSAY_E_TEST_TOKEN, "test_token", "The token was made without a TPM, for tests; set allow_test only in tests."},
    {ASSAY_E_REVOKED, "revoked", "The token or the device is on the revocation list."},
    {ASSAY_E_REVOCATIONS_STALE, "revocations_stale", "The revocation list is past its end: fetch it again."},
    {ASSAY_E_TIER, "tier", "The result is genuine, but its tier is worse than the server accepts: see its reasons."},
    {ASSAY_E_NO_HOST_TOKENS, "no_host_tokens", "The result was not accepted, or its title does not use host tokens."},
    {ASSAY_E_AIK, "aik", "The attestation key in the result does not fit its id or scheme."},
    {ASSAY_E_TAG, "tag", "A heartbeat came where a host token was asked for, or the reverse."},
    {ASSAY_E_ATTESTER, "attester", "The token is another machine's."},
    {ASSAY_E_GATE, "gate", "The gate's mode is not the result's: ask for a new result."},
    {ASSAY_E_GATE_POLICY, "gate_policy", "The gate's policy is not the result's: ask for a new result."},
    {ASSAY_E_BINDING, "binding", "The quote was not made for this token's body."},
    {ASSAY_E_MAGIC, "magic", "What was signed did not come from inside a TPM."},
    {ASSAY_E_ATTEST_TYPE, "attest_type", "The TPM signed something that is no quote."},
    {ASSAY_E_SELECTION, "selection", "The quote covers other PCRs than the result speaks of."},
    {ASSAY_E_PCR_DIGEST, "pcr_digest", "The PCR values are not the quoted ones."},
    {ASSAY_E_RESET_COUNT, "reset_count", "The machine rebooted since the result: ask for a new result."},
    {ASSAY_E_RESTART_COUNT, "restart_count", "The TPM's restart count went back."},
    {ASSAY_E_CLOCK, "clock", "The TPM's clock is not later than before."},
    {ASSAY_E_BOOT_PCRS, "boot_pcrs", "The machine is not booted as the result says."},
    {ASSAY_E_PCR14, "pcr14", "The runtime log's entries do not lead from the result's PCR 14 to this one."},
    {ASSAY_E_ENTRY_KIND, "entry_kind",
     "Something happened since the result that it does not allow: ask for a new result."},
    {ASSAY_E_SEQUENCE, "sequence", "The heartbeat answers no open challenge, or another one."},
    {ASSAY_E_UNAVAILABLE, "unavailable",
     "No agent listens at that path: is assay-agent running, and may this user reach its socket?"},
    {ASSAY_E_TIMEOUT, "timeout", "The agent did not answer before the deadline."},
    {ASSAY_E_PROTOCOL, "protocol", "The peer's reply is not of the agent's protocol."},
    {ASSAY_E_REFUSED, "refused", "The agent refused; assay_error says why."},
    {ASSAY_E_BUFFER, "buffer", "The buffer is too small; size says what is needed."},
    {ASSAY_E_IO, "io", "Reading from or writing to the agent failed."},
};

const Row* Find(assay_code code) noexcept {
  for (const Row& row : kRows)
    if (row.code == code) return &row;
  return nullptr;
}

}  // namespace

const char* assay_version() noexcept { return ASSAY_VERSION_STRING; }

const char* assay_code_name(assay_code code) noexcept {
  const Row* row = Find(code);
  return row == nullptr ? "unknown" : row->name;
}

const char* assay_code_text(assay_code code) noexcept {
  const Row* row = Find(code);
  return row == nullptr ? "A code that this version does not know: treat it as a refusal." : row->text;
}
