/* SPDX-License-Identifier: Apache-2.0 */
/* For a game: asks the agent on this machine for tokens. Each call opens one connection to the agent's local socket,
   sends one request, waits for its reply at most `deadline_ms`, and closes it. No thread is started, no signal raised,
   nothing kept between calls, so a handle may be used by any number of threads at once. The tokens are opaque to the
   game: it hands them to the game server. */
#ifndef ASSAY_CLIENT_H
#define ASSAY_CLIENT_H

#include <assay/errors.h>
#include <assay/version.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ASSAY_DEFAULT_SOCKET "/run/assay/agent.sock"

typedef struct assay_client assay_client;

/* Why the agent refused (ASSAY_E_REFUSED), in its own words; empty texts with every other code. */
typedef struct assay_error {
  char code[128];    /* stable, e.g. "audience_not_authorised" */
  char detail[1025]; /* what happened */
  char fix[1025];    /* what to do about it, may be empty */
} assay_error;

/* Remembers the path (null: ASSAY_DEFAULT_SOCKET); at most 107 bytes. Connects to nothing yet. */
ASSAY_API assay_code assay_client_open(const char* socket_path, assay_client** out) ASSAY_NOEXCEPT;
ASSAY_API void assay_client_close(assay_client* client) ASSAY_NOEXCEPT; /* null is fine */

typedef struct assay_result_request {
  size_t struct_size;              /* sizeof(assay_result_request) */
  const char* audience;            /* required: as the game server said; at most 256 bytes */
  const char* match;               /* required, may be "": at most 128 bytes */
  const uint8_t* server_nonce;     /* required, 32 bytes: the game server's */
  const uint8_t* session_key_hash; /* required, 32 bytes: SHA-256 of this game's own channel key (DER SPKI) */
} assay_result_request;

/* A result token (JWS text, zero-terminated) into `token`. *size: in, the buffer's size; out, the text's length without
   its zero, or with ASSAY_E_BUFFER the size that is needed (ASSAY_MAX_TOKEN + 1 of server.h always is enough). The
   agent asks the verifier, so allow some seconds: a discrete TPM alone takes up to one. `error` may be null. */
ASSAY_API assay_code assay_client_result_token(const assay_client* client, const assay_result_request* request,
                                               char* token, size_t* size, uint32_t deadline_ms,
                                               assay_error* error) ASSAY_NOEXCEPT;

typedef struct assay_host_request {
  size_t struct_size;              /* sizeof(assay_host_request) */
  const char* audience;            /* required */
  const uint8_t* server_nonce;     /* required, 32 bytes */
  const uint8_t* session_key_hash; /* required, 32 bytes */
  int32_t heartbeat;               /* 1: the answer to a heartbeat challenge */
  uint64_t sequence;               /* of that challenge; 0 otherwise */
} assay_host_request;

/* A host token (bytes) into `token`; *size as above, without a zero. The verifier takes no part in it. */
ASSAY_API assay_code assay_client_host_token(const assay_client* client, const assay_host_request* request,
                                             uint8_t* token, size_t* size, uint32_t deadline_ms,
                                             assay_error* error) ASSAY_NOEXCEPT;

/* The agent's state as JSON text, zero-terminated; *size as with result tokens. */
ASSAY_API assay_code assay_client_status(const assay_client* client, char* json, size_t* size, uint32_t deadline_ms,
                                         assay_error* error) ASSAY_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif
