/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "sdk/examples/channel.h"

#include <assay/server.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define MAX_FILE (2U << 20)
#define CERTIFICATE_SECONDS 86400L

int complain(const char* what, const char* why) {
  fprintf(stderr, "%s: %s\n", what, why);
  return -1;
}

static EVP_PKEY* save_key(EVP_PKEY* key, const char* path) {
  const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  FILE* file = fd < 0 ? NULL : fdopen(fd, "wb");
  int written = 0;
  if (file != NULL) {
    written = PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL) == 1;
    written = fclose(file) == 0 && written;
  }
  if (written) return key;
  complain(path, "cannot write the new key");
  EVP_PKEY_free(key);
  return NULL;
}

EVP_PKEY* load_or_make_key(const char* path) {
  if (path != NULL) {
    FILE* file = fopen(path, "rb");
    if (file != NULL) {
      EVP_PKEY* key = PEM_read_PrivateKey(file, NULL, NULL, NULL);
      fclose(file);
      if (key == NULL) complain(path, "holds no PEM private key");
      return key;
    }
  }
  EVP_PKEY* key = EVP_EC_gen("P-256");
  if (key == NULL) {
    complain("key", "cannot be made");
    return NULL;
  }
  return path == NULL ? key : save_key(key, path);
}

static int hash_spki(unsigned char* der, int size, uint8_t out[HASH_SIZE]) {
  const int done = size > 0 && assay_session_key_hash(der, (size_t)size, out) == ASSAY_OK;
  OPENSSL_free(der);
  return done ? 0 : -1;
}

int key_hash(EVP_PKEY* key, uint8_t out[HASH_SIZE]) {
  unsigned char* der = NULL;
  const int size = i2d_PUBKEY(key, &der);
  return hash_spki(der, size, out);
}

int peer_key_hash(SSL* ssl, uint8_t out[HASH_SIZE]) {
  X509* certificate = SSL_get0_peer_certificate(ssl);
  if (certificate == NULL) return complain("peer", "shows no key");
  unsigned char* der = NULL;
  const int size = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &der);
  return hash_spki(der, size, out);
}

static X509* self_sign(EVP_PKEY* key) {
  X509* certificate = X509_new();
  if (certificate == NULL) return NULL;
  X509_NAME* name = X509_get_subject_name(certificate);
  const int made =
      X509_set_version(certificate, X509_VERSION_3) == 1 &&
      ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1) == 1 &&
      X509_gmtime_adj(X509_getm_notBefore(certificate), -CERTIFICATE_SECONDS) != NULL &&
      X509_gmtime_adj(X509_getm_notAfter(certificate), CERTIFICATE_SECONDS) != NULL &&
      X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char*)"assay example", -1, -1, 0) == 1 &&
      X509_set_issuer_name(certificate, name) == 1 && X509_set_pubkey(certificate, key) == 1 &&
      X509_sign(certificate, key, EVP_sha256()) > 0;
  if (made) return certificate;
  X509_free(certificate);
  return NULL;
}

/* The handshake itself proves that the peer holds the key; its name means nothing here. */
static int take_any_certificate(int chain_ok, X509_STORE_CTX* context) {
  (void)chain_ok;
  (void)context;
  return 1;
}

SSL_CTX* make_tls(EVP_PKEY* key, int server) {
  SSL_CTX* tls = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method());
  X509* certificate = self_sign(key);
  const int made = tls != NULL && certificate != NULL && SSL_CTX_set_min_proto_version(tls, TLS1_3_VERSION) == 1 &&
                   SSL_CTX_use_certificate(tls, certificate) == 1 && SSL_CTX_use_PrivateKey(tls, key) == 1;
  X509_free(certificate);
  if (!made) {
    SSL_CTX_free(tls);
    complain("TLS", "cannot be set up");
    return NULL;
  }
  SSL_CTX_set_session_cache_mode(tls, SSL_SESS_CACHE_OFF); /* a resumed session would skip the proof of the key */
  SSL_CTX_set_num_tickets(tls, 0);
  SSL_CTX_set_verify(tls, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, take_any_certificate);
  return tls;
}

int send_frame(SSL* ssl, const void* data, size_t size) {
  uint8_t frame[4 + MAX_FRAME];
  size_t sent = 0;
  if (size > MAX_FRAME) return complain("frame", "is too long");
  for (size_t i = 0; i < 4; ++i) frame[i] = (uint8_t)(size >> (8 * i));
  if (size > 0) memcpy(frame + 4, data, size);
  if (SSL_write_ex(ssl, frame, size + 4, &sent) != 1 || sent != size + 4)
    return complain("peer", "cannot be written to");
  return 0;
}

static int receive_all(SSL* ssl, uint8_t* data, size_t size) {
  size_t got = 0;
  for (size_t done = 0; done < size; done += got) {
    if (SSL_read_ex(ssl, data + done, size - done, &got) != 1)
      return complain("peer", "closed the connection or is too slow");
  }
  return 0;
}

int receive_frame(SSL* ssl, uint8_t* data, size_t room, size_t* size) {
  uint8_t head[4];
  if (receive_all(ssl, head, sizeof(head)) != 0) return -1;
  *size = (size_t)head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16 | (size_t)head[3] << 24;
  if (*size > room) return complain("peer", "sent a frame that is too long");
  return receive_all(ssl, data, *size);
}

int64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int set_deadline(int fd, unsigned milliseconds) {
  const struct timeval limit = {.tv_sec = (time_t)(milliseconds / 1000),
                                .tv_usec = (suseconds_t)(milliseconds % 1000 * 1000)};
  return setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) == 0 &&
                 setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) == 0
             ? 0
             : -1;
}

char* read_file(const char* path, size_t* size) {
  FILE* file = fopen(path, "rb");
  char* data = file == NULL ? NULL : malloc(MAX_FILE + 1);
  if (data == NULL) {
    complain(path, strerror(errno));
    if (file != NULL) fclose(file);
    return NULL;
  }
  *size = fread(data, 1, MAX_FILE, file);
  const int whole = feof(file) != 0 || *size < MAX_FILE;
  fclose(file);
  if (!whole) {
    complain(path, "is larger than 2 MiB");
    free(data);
    return NULL;
  }
  data[*size] = '\0';
  return data;
}

int write_file(const char* path, const void* data, size_t size) {
  FILE* file = fopen(path, "wb");
  if (file == NULL) return complain(path, strerror(errno));
  const int written = fwrite(data, 1, size, file) == size;
  return fclose(file) == 0 && written ? 0 : complain(path, "cannot be written");
}

static int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

int from_hex(const char* text, uint8_t* out, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    const int high = digit_value(text[2 * i]);
    const int low = high < 0 ? -1 : digit_value(text[2 * i + 1]);
    if (low < 0) return -1;
    out[i] = (uint8_t)(high * 16 + low);
  }
  return text[2 * size] == '\0' || text[2 * size] == '\n' || text[2 * size] == ' ' ? 0 : -1;
}

void to_hex(const uint8_t* data, size_t size, char* out) {
  static const char digits[] = "0123456789abcdef";
  for (size_t i = 0; i < size; ++i) {
    out[2 * i] = digits[data[i] >> 4];
    out[2 * i + 1] = digits[data[i] & 15];
  }
  out[2 * size] = '\0';
}

void print_json_text(const char* text) {
  putchar('"');
  for (; *text != '\0'; ++text) {
    const unsigned char c = (unsigned char)*text;
    if (c == '"' || c == '\\') printf("\\%c", c);
    else if (c < 0x20) printf("\\u%04x", c);
    else putchar(c);
  }
  putchar('"');
}
