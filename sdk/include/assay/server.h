/* SPDX-License-Identifier: Apache-2.0 */
/* For a game server: verifies what a game sent, offline. Nothing here opens a file or socket, starts a thread or reads
   a clock: the caller passes the time. After a thread's first call, the two verify functions allocate nothing.
   Handles are immutable after they were made and may be used by any number of threads at once; free them when no call
   uses them any more. Times are milliseconds since 1970-01-01 UTC where a name ends in _ms, seconds where in _s. */
#ifndef ASSAY_SERVER_H
#define ASSAY_SERVER_H

#include <assay/errors.h>
#include <assay/version.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ASSAY_NONCE_SIZE 32
#define ASSAY_DIGEST_SIZE 32   /* SHA-256 */
#define ASSAY_MAX_TOKEN 8192   /* bytes of a result token or a host token */
#define ASSAY_MAX_AUDIENCE 256 /* bytes without the terminating zero */
#define ASSAY_MAX_MATCH 128
#define ASSAY_MAX_TEXT 128 /* with the terminating zero */
#define ASSAY_MAX_REASONS 64
#define ASSAY_REASON_SIZE 64 /* with the terminating zero */
#define ASSAY_MAX_AIK 640    /* bytes of a DER SubjectPublicKeyInfo */

/* ---- keys of the verifier ---------------------------------------------------------------------------------------- */

typedef struct assay_keyset assay_keyset;

/* Parses a JWKS document (what the verifier serves at /.well-known/jwks.json) once; `size` bytes, at most 64 KiB. To
   rotate, parse the new document into a new handle, swap your pointer, free the old one when its last call is over.
   ASSAY_E_MALFORMED when any key of it is faulty or none signs tokens. */
ASSAY_API assay_code assay_keyset_parse(const char* jwks, size_t size, assay_keyset** out) ASSAY_NOEXCEPT;
ASSAY_API size_t assay_keyset_count(const assay_keyset* keys) ASSAY_NOEXCEPT;
ASSAY_API void assay_keyset_free(assay_keyset* keys) ASSAY_NOEXCEPT; /* null is fine */

typedef struct assay_revocations assay_revocations;

/* Verifies and parses the verifier's signed revocation list (served at /v1/revocations), at most 1.5 MiB. A list with
   a lower number than one you hold is older: keep the higher. */
ASSAY_API assay_code assay_revocations_parse(const assay_keyset* keys, const char* jws, size_t size,
                                             assay_revocations** out) ASSAY_NOEXCEPT;
ASSAY_API uint64_t assay_revocations_number(const assay_revocations* list) ASSAY_NOEXCEPT;
ASSAY_API int64_t assay_revocations_expires_s(const assay_revocations* list) ASSAY_NOEXCEPT;
ASSAY_API void assay_revocations_free(assay_revocations* list) ASSAY_NOEXCEPT;

/* ---- what the server gives to the game --------------------------------------------------------------------------- */

/* SHA-256 of the DER SubjectPublicKeyInfo of the key that authenticates the live channel (of a raw public key or of the
   client's certificate). Compute it from the connection itself, never from what the game says. */
ASSAY_API assay_code assay_session_key_hash(const uint8_t* spki, size_t size,
                                            uint8_t out[ASSAY_DIGEST_SIZE]) ASSAY_NOEXCEPT;

/* A fresh nonce that proves to the verifier that this title's own server asked. title_key: the secret (16 to 64 bytes)
   that the studio shares with the verifier. Note the time of the call: verifying needs it. Issue one nonce a check and
   accept it once. `match` may be "". */
ASSAY_API assay_code assay_make_server_nonce(const uint8_t* title_key, size_t title_key_size, const char* audience,
                                             const char* match, const uint8_t session_key_hash[ASSAY_DIGEST_SIZE],
                                             uint8_t out[ASSAY_NONCE_SIZE]) ASSAY_NOEXCEPT;

/* ---- result tokens ----------------------------------------------------------------------------------------------- */

enum { /* tiers of AR4SI */
       ASSAY_TIER_NONE = 0,
       ASSAY_TIER_AFFIRMING = 2,
       ASSAY_TIER_WARNING = 32,
       ASSAY_TIER_CONTRAINDICATED = 96
};
enum { ASSAY_ANCHOR_SELF_REPORTED = 0, ASSAY_ANCHOR_MEASURED = 1 };
enum {
  ASSAY_GATE_ABSENT = 0,
  ASSAY_GATE_MONITOR = 1,
  ASSAY_GATE_ENFORCE = 2,
  ASSAY_GATE_MAINTENANCE = 3,
  ASSAY_GATE_BROKEN = 4
};
enum { ASSAY_SCHEME_RSASSA = 0, ASSAY_SCHEME_RSAPSS = 1, ASSAY_SCHEME_ECDSA_P256 = 2 };
enum { /* places in trust_vector */
       ASSAY_TV_INSTANCE_IDENTITY = 0,
       ASSAY_TV_CONFIGURATION = 1,
       ASSAY_TV_EXECUTABLES = 2,
       ASSAY_TV_FILE_SYSTEM = 3,
       ASSAY_TV_HARDWARE = 4,
       ASSAY_TV_RUNTIME_OPAQUE = 5,
       ASSAY_TV_STORAGE_OPAQUE = 6,
       ASSAY_TV_SOURCED_DATA = 7
};

typedef struct assay_result_options {
  size_t struct_size;                   /* sizeof(assay_result_options) */
  const char* issuer;                   /* required: the verifier's name, as it stands in iss */
  const char* audience;                 /* required: this title */
  const char* match;                    /* required, may be "": what the nonce was made for */
  const uint8_t* server_nonce;          /* required, 32 bytes */
  const uint8_t* session_key_hash;      /* required, 32 bytes: of the live channel, see assay_session_key_hash */
  int64_t nonce_issued_at_ms;           /* required: when this server issued server_nonce */
  int64_t now_ms;                       /* required */
  uint32_t max_nonce_age_ms;            /* 0: 120000 */
  uint32_t leeway_ms;                   /* how far the verifier's clock may differ; at most 300000 */
  int32_t worst_tier;                   /* 0: affirming only; ASSAY_TIER_WARNING or _CONTRAINDICATED accept more */
  int32_t allow_test;                   /* 0: tokens made without a TPM are refused */
  const assay_revocations* revocations; /* may be null */
} assay_result_options;

/* For titles with host tokens: what a host token is compared with. */
typedef struct assay_host_block {
  uint8_t attester[ASSAY_DIGEST_SIZE]; /* SHA-256 of the AIK */
  uint8_t aik[ASSAY_MAX_AIK];          /* DER SubjectPublicKeyInfo */
  uint32_t aik_size;
  int32_t aik_scheme;
  uint32_t reset_count;
  uint32_t restart_count;
  uint64_t clock_ms; /* the TPM's own clock */
  uint8_t boot_pcr_digest[ASSAY_DIGEST_SIZE];
  uint32_t boot_pcr_mask;
  uint32_t allowed_entries; /* bit n: an entry of kind n may follow */
  uint8_t pcr14[ASSAY_DIGEST_SIZE];
} assay_host_block;

typedef struct assay_result {
  assay_code code; /* what the verify function returned */
  int32_t tier;
  int8_t trust_vector[8]; /* 0: no claim */
  int64_t issued_at_s;
  int64_t expires_at_s;
  int64_t next_attestation_s; /* ask again by then */
  char token_id[ASSAY_MAX_TEXT];
  char device_id[ASSAY_MAX_TEXT];          /* of this machine for this title */
  char previous_device_id[ASSAY_MAX_TEXT]; /* "" unless the title's key is being rotated */
  uint64_t device_key_version;
  char appraisal_policy[ASSAY_MAX_TEXT];
  uint8_t weak_device_id; /* 1: the id rests on no proof of the canonical EK */
  uint8_t test;
  uint8_t caller_measured; /* 0: caller_digest is zero, the caller is "unmeasured" */
  uint8_t has_host_block;
  int32_t runtime_anchor;
  int32_t gate;
  uint8_t caller_digest[ASSAY_DIGEST_SIZE]; /* SHA-256 of the executable that asked */
  uint8_t gate_policy[ASSAY_DIGEST_SIZE];
  uint64_t gate_policy_version;
  uint8_t session_key_hash[ASSAY_DIGEST_SIZE];
  uint32_t reason_count;
  char reasons[ASSAY_MAX_REASONS][ASSAY_REASON_SIZE]; /* codes */
  assay_host_block host;                              /* zero unless has_host_block */
} assay_result;

/* ASSAY_OK when the token is the verifier's, fresh, for this audience, match, nonce and channel, and its tier is good
   enough. With ASSAY_E_TIER `out` is filled too, so that reasons can be shown; with every other code it holds the code
   and zeros. */
ASSAY_API assay_code assay_verify_result_token(const assay_keyset* keys, const char* token, size_t size,
                                               const assay_result_options* options, assay_result* out) ASSAY_NOEXCEPT;

/* ---- host tokens and heartbeats ---------------------------------------------------------------------------------- */

typedef struct assay_attester assay_attester;

/* Parses the AIK of a result that was accepted with ASSAY_OK, so that verifying a host token does not. Valid as long as
   the result: host tokens are refused with ASSAY_E_EXPIRED afterwards. */
ASSAY_API assay_code assay_result_prepare_host_tokens(const assay_result* result, assay_attester** out) ASSAY_NOEXCEPT;
ASSAY_API void assay_attester_free(assay_attester* attester) ASSAY_NOEXCEPT;

typedef struct assay_host_token_options {
  size_t struct_size;              /* sizeof(assay_host_token_options) */
  const uint8_t* server_nonce;     /* required, 32 bytes: issued for this check */
  const uint8_t* session_key_hash; /* required, 32 bytes: of the live channel */
  int64_t nonce_issued_at_ms;      /* required */
  int64_t now_ms;                  /* required */
  uint32_t max_age_ms;             /* since the nonce was issued; 0: 10000 */
} assay_host_token_options;

typedef struct assay_host_result {
  uint64_t clock_ms; /* the TPM's clock at the quote */
  uint32_t restart_count;
  uint32_t entry_count; /* runtime-log entries since the result */
  uint32_t entry_kinds; /* bit n: an entry of kind n among them */
  uint64_t sequence;    /* heartbeats only */
  uint8_t pcr14[ASSAY_DIGEST_SIZE];
} assay_host_result;

/* ASSAY_OK when the token is a fresh quote by the result's own machine for this nonce and channel, still booted as the
   result says and unchanged since, but for entries that the result allows. `out` may be null; it is zero unless
   ASSAY_OK. */
ASSAY_API assay_code assay_verify_host_token(const assay_attester* attester, const uint8_t* token, size_t size,
                                             const assay_host_token_options* options,
                                             assay_host_result* out) ASSAY_NOEXCEPT;

/* State of one player's heartbeats, owned by the caller; one thread at a time. Its members are the library's. */
typedef struct assay_heartbeat {
  uint64_t sequence; /* of the open or the last challenge; 0: none yet */
  uint64_t clock_ms;
  uint32_t restart_count;
  uint32_t open; /* 1: a challenge waits for its answer */
  int64_t issued_at_ms;
  uint8_t nonce[ASSAY_NONCE_SIZE];
} assay_heartbeat;

/* Starts from a host token that was accepted, or from the result (accepted: null). */
ASSAY_API assay_code assay_heartbeat_start(assay_heartbeat* state, const assay_attester* attester,
                                           const assay_host_result* accepted) ASSAY_NOEXCEPT;
/* Opens the next challenge; an unanswered one is void. Send state->nonce and state->sequence to the game. */
ASSAY_API assay_code assay_heartbeat_challenge(assay_heartbeat* state, int64_t now_ms) ASSAY_NOEXCEPT;
/* Checks the answer as assay_verify_host_token does, and that sequence and clock go forward. An accepted answer closes
   its challenge, so it counts once; a refused one leaves it open until max_age_ms (0: 10000) is over. */
ASSAY_API assay_code assay_heartbeat_verify(assay_heartbeat* state, const assay_attester* attester,
                                            const uint8_t* token, size_t size,
                                            const uint8_t session_key_hash[ASSAY_DIGEST_SIZE], int64_t now_ms,
                                            uint32_t max_age_ms, assay_host_result* out) ASSAY_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif
