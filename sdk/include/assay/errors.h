/* SPDX-License-Identifier: Apache-2.0 */
/* Every code that a function of this library returns. Values and names are stable: new ones are added, none changes
   its meaning. Only ASSAY_OK means yes; treat every other value, also an unknown one, as no. */
#ifndef ASSAY_ERRORS_H
#define ASSAY_ERRORS_H

#include <assay/version.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t assay_code;

enum {
  ASSAY_OK = 0,
  ASSAY_E_ARGUMENT = 1, /* a required argument is null, zero, too long or of another struct_size */
  ASSAY_E_MEMORY = 2,

  /* signed tokens */
  ASSAY_E_MALFORMED = 10,
  ASSAY_E_ALGORITHM = 11,   /* alg is none, unknown, or not the named key's */
  ASSAY_E_KEY_UNKNOWN = 12, /* kid names no key of the set: fetch the set again, the verifier may have rotated */
  ASSAY_E_TYPE = 13,        /* typ is another kind of token */
  ASSAY_E_SIGNATURE = 14,
  ASSAY_E_CRITICAL = 15,     /* crit names extensions */
  ASSAY_E_EMBEDDED_KEY = 16, /* the token brings its own key */

  /* result tokens */
  ASSAY_E_CLAIMS = 20, /* a claim is missing, repeated, mistyped or over its limit */
  ASSAY_E_NO_CNF = 21, /* no session key is bound */
  ASSAY_E_ISSUER = 22,
  ASSAY_E_AUDIENCE = 23,
  ASSAY_E_VERIFIER_AUDIENCE = 24, /* made for the verifier itself, not for a game server */
  ASSAY_E_NONCE = 25,
  ASSAY_E_NONCE_AGE = 26, /* too long since the server issued the nonce, or issued after now */
  ASSAY_E_MATCH = 27,
  ASSAY_E_SESSION_KEY = 28, /* bound to another channel's key: another player's token */
  ASSAY_E_EXPIRED = 29,
  ASSAY_E_NOT_YET_VALID = 30,
  ASSAY_E_TEST_TOKEN = 31, /* made without a TPM */
  ASSAY_E_REVOKED = 32,
  ASSAY_E_REVOCATIONS_STALE = 33, /* the revocation list is past its end: fetch it again */
  ASSAY_E_TIER = 34,              /* genuine, but the verdict is worse than the server accepts */

  /* host tokens and heartbeats */
  ASSAY_E_NO_HOST_TOKENS = 40, /* the result carries nothing to compare with: not a title with host tokens */
  ASSAY_E_AIK = 41,            /* the result's attestation key does not fit its id or scheme */
  ASSAY_E_TAG = 42,            /* a heartbeat where a host token was asked for, or the reverse */
  ASSAY_E_ATTESTER = 43,       /* another machine */
  ASSAY_E_GATE = 44,           /* the gate's mode changed since the result */
  ASSAY_E_GATE_POLICY = 45,    /* the gate's policy changed since the result */
  ASSAY_E_BINDING = 46,        /* the quote's extraData is not of this token's body */
  ASSAY_E_MAGIC = 47,          /* not made inside a TPM */
  ASSAY_E_ATTEST_TYPE = 48,    /* signed by the TPM, but no quote */
  ASSAY_E_SELECTION = 49,      /* other PCRs than the result speaks of */
  ASSAY_E_PCR_DIGEST = 50,     /* PCR values that are not the quoted ones */
  ASSAY_E_RESET_COUNT = 51,    /* rebooted since the result */
  ASSAY_E_RESTART_COUNT = 52,
  ASSAY_E_CLOCK = 53, /* the TPM's clock is not later */
  ASSAY_E_BOOT_PCRS = 54,
  ASSAY_E_PCR14 = 55,      /* the carried entries do not lead from the result's PCR 14 to this one */
  ASSAY_E_ENTRY_KIND = 56, /* an entry of a kind that the result does not allow */
  ASSAY_E_SEQUENCE = 57,

  /* the agent's socket */
  ASSAY_E_UNAVAILABLE = 70, /* nobody listens there */
  ASSAY_E_TIMEOUT = 71,
  ASSAY_E_PROTOCOL = 72, /* the peer does not speak the agent's protocol */
  ASSAY_E_REFUSED = 73,  /* the agent says no: assay_error says why */
  ASSAY_E_BUFFER = 74,   /* the caller's buffer is too small: *size says what is needed */
  ASSAY_E_IO = 75
};

/* A stable lower-case word, e.g. "session_key"; "unknown" for other values. Static storage, any thread. */
ASSAY_API const char* assay_code_name(assay_code code) ASSAY_NOEXCEPT;
/* One sentence for people: cause and fix. Static storage, any thread. */
ASSAY_API const char* assay_code_text(assay_code code) ASSAY_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif
