/* SPDX-License-Identifier: Apache-2.0 */
/* What both examples share: a TLS 1.3 connection on which the game authenticates itself by a key of its own, frames on
   it, and small helpers. A real game has its own transport; what matters is that the server learns the hash of the key
   that authenticates the connection from the connection itself. */
#ifndef ASSAY_EXAMPLES_CHANNEL_H
#define ASSAY_EXAMPLES_CHANNEL_H

#include <openssl/ssl.h>
#include <stddef.h>
#include <stdint.h>

#define HASH_SIZE 32
#define MAX_FRAME 16384

/* A key from a PEM file, made there (mode 0600) when there is none; null: a key for this run only. */
EVP_PKEY* load_or_make_key(const char* path);
/* SHA-256 of a key's DER SubjectPublicKeyInfo, by the SDK. */
int key_hash(EVP_PKEY* key, uint8_t out[HASH_SIZE]);
/* SHA-256 of the key that the peer proved to hold in the handshake. */
int peer_key_hash(SSL* ssl, uint8_t out[HASH_SIZE]);

/* TLS 1.3 only, with a self-signed certificate for `key`. Any certificate of the peer is taken: trust comes from the
   hash of its key, never from a name in it. */
SSL_CTX* make_tls(EVP_PKEY* key, int server);

/* Frames: 32-bit little-endian size, then the bytes. 0 when it worked. */
int send_frame(SSL* ssl, const void* data, size_t size);
int receive_frame(SSL* ssl, uint8_t* data, size_t room, size_t* size);

int64_t now_ms(void);
int set_deadline(int fd, unsigned milliseconds); /* for each read and write on a socket */
char* read_file(const char* path, size_t* size); /* malloc'd and zero-terminated, at most 2 MiB; null with a message */
int write_file(const char* path, const void* data, size_t size);
int from_hex(const char* text, uint8_t* out, size_t size);
void to_hex(const uint8_t* data, size_t size, char* out); /* 2 * size + 1 characters */
void print_json_text(const char* text);                   /* quoted and escaped */
int complain(const char* what, const char* why);          /* to standard error; returns -1 */

#endif
