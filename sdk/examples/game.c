/* SPDX-License-Identifier: Apache-2.0 */
/* A small game: joins game-server over a channel that its own key authenticates, and hands over the tokens that the
   agent makes for it. Prints one line of JSON. Exit: 0 the server accepted, 1 it refused, 2 something failed. */
#define _POSIX_C_SOURCE 200809L
#include <arpa/inet.h>
#include <assay/client.h>
#include <assay/server.h>
#include <getopt.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sdk/examples/channel.h"

enum { ACCEPTED = 0, REFUSED = 1, FAILED = 2 };

struct arguments {
  const char *agent, *key, *save_token, *present_token, *other_key, *server_key_hash;
  unsigned port, deadline_ms;
};

/* What the server asked for. */
struct request {
  char audience[ASSAY_MAX_AUDIENCE + 1];
  char match[ASSAY_MAX_MATCH + 1];
  uint8_t nonce[HASH_SIZE];
};

static const char usage[] =
    "game: an example that joins game-server with tokens of the agent on this machine.\n"
    "  --port N                    where game-server listens on 127.0.0.1 (required)\n"
    "  --agent-socket PATH         the agent's socket (default: " ASSAY_DEFAULT_SOCKET
    ")\n"
    "  --key FILE                  this player's key (PEM; made when missing; default: one for this run)\n"
    "  --server-key-hash HEX       leave unless the server's key has this SHA-256 (of its SubjectPublicKeyInfo);\n"
    "                              without it the server is not authenticated\n"
    "  --deadline MS               for each answer of the agent and the server (default: 30000)\n"
    "To show what a server must refuse:\n"
    "  --save-token FILE           keep the result token\n"
    "  --present-token FILE        present that token of another player instead of an own one\n"
    "  --session-key-hash-from PEM ask for tokens that are bound to that key, while the channel uses --key\n"
    "Prints one line of JSON. Exit: 0 the server accepted, 1 it refused, 2 something failed.\n";

static int parse(int argc, char** argv, struct arguments* args) {
  static const struct option options[] = {{"port", required_argument, NULL, 'p'},
                                          {"agent-socket", required_argument, NULL, 'a'},
                                          {"key", required_argument, NULL, 'k'},
                                          {"server-key-hash", required_argument, NULL, 'S'},
                                          {"deadline", required_argument, NULL, 'd'},
                                          {"save-token", required_argument, NULL, 's'},
                                          {"present-token", required_argument, NULL, 'P'},
                                          {"session-key-hash-from", required_argument, NULL, 'o'},
                                          {"help", no_argument, NULL, 'h'},
                                          {"version", no_argument, NULL, 'v'},
                                          {NULL, 0, NULL, 0}};
  for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
    switch (c) {
      case 'p': args->port = (unsigned)strtoul(optarg, NULL, 10); break;
      case 'a': args->agent = optarg; break;
      case 'k': args->key = optarg; break;
      case 'S': args->server_key_hash = optarg; break;
      case 'd': args->deadline_ms = (unsigned)strtoul(optarg, NULL, 10); break;
      case 's': args->save_token = optarg; break;
      case 'P': args->present_token = optarg; break;
      case 'o': args->other_key = optarg; break;
      case 'h': fputs(usage, stdout); exit(ACCEPTED);
      case 'v': puts(assay_version()); exit(ACCEPTED);
      default: return -1;
    }
  }
  if (args->port == 0 || args->port > 65535 || args->deadline_ms == 0 || optind != argc)
    return complain("game", "--port is required; see --help");
  return 0;
}

static int connect_loopback(unsigned port, unsigned deadline_ms) {
  const struct sockaddr_in address = {
      .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (fd < 0 || set_deadline(fd, deadline_ms) != 0 ||
      connect(fd, (const struct sockaddr*)&address, sizeof(address)) != 0) {
    return complain("game", "no server listens on that port");
  }
  return fd;
}

static int check_server(SSL* ssl, const char* expected) {
  uint8_t wanted[HASH_SIZE], found[HASH_SIZE];
  if (expected == NULL) return 0;
  if (from_hex(expected, wanted, sizeof(wanted)) != 0)
    return complain("--server-key-hash", "takes 64 hexadecimal digits");
  if (peer_key_hash(ssl, found) != 0 || memcmp(wanted, found, sizeof(found)) != 0)
    return complain("game", "the server has another key");
  return 0;
}

/* audience 0 match 0 nonce */
static int receive_request(SSL* ssl, struct request* request) {
  uint8_t message[ASSAY_MAX_AUDIENCE + ASSAY_MAX_MATCH + 2 + HASH_SIZE];
  size_t size = 0;
  if (receive_frame(ssl, message, sizeof(message), &size) != 0) return -1;
  const uint8_t* end = message + size;
  const uint8_t* match = memchr(message, 0, size);
  const uint8_t* nonce = match == NULL ? NULL : memchr(match + 1, 0, (size_t)(end - match - 1));
  if (nonce == NULL || end - nonce - 1 != HASH_SIZE || match - message > ASSAY_MAX_AUDIENCE ||
      nonce - match - 1 > ASSAY_MAX_MATCH) {
    return complain("game", "the server's request does not parse");
  }
  memcpy(request->audience, message, (size_t)(match - message) + 1);
  memcpy(request->match, match + 1, (size_t)(nonce - match));
  memcpy(request->nonce, nonce + 1, HASH_SIZE);
  return 0;
}

static int explain(assay_code code, const assay_error* error) {
  fprintf(stderr, "game: %s", assay_code_text(code));
  if (error->code[0] != '\0') fprintf(stderr, " %s: %s %s", error->code, error->detail, error->fix);
  fputc('\n', stderr);
  printf("{\"accepted\":false,\"code\":\"%s\",\"agent_code\":", assay_code_name(code));
  print_json_text(error->code);
  fputs(",\"detail\":", stdout);
  print_json_text(error->detail);
  puts("}");
  return -1;
}

static int own_token(const struct arguments* args, const assay_client* agent, const struct request* request,
                     const uint8_t hash[HASH_SIZE], char* token, size_t* size) {
  const assay_result_request ask = {sizeof(ask), request->audience, request->match, request->nonce, hash};
  assay_error error;
  const assay_code code = assay_client_result_token(agent, &ask, token, size, args->deadline_ms, &error);
  if (code != ASSAY_OK) return explain(code, &error);
  return args->save_token == NULL ? 0 : write_file(args->save_token, token, *size);
}

static int kept_token(const char* path, char* token, size_t* size) {
  size_t found = 0;
  char* text = read_file(path, &found);
  const int fits = text != NULL && found <= ASSAY_MAX_TOKEN;
  if (fits) {
    memcpy(token, text, found);
    *size = found;
  }
  free(text);
  return fits ? 0 : complain(path, "holds no token");
}

/* The server's next frame is a nonce of 32 bytes, or its verdict: a shorter word. */
static int answer_host_nonce(SSL* ssl, const struct arguments* args, const assay_client* agent,
                             const struct request* request, const uint8_t hash[HASH_SIZE],
                             const uint8_t nonce[HASH_SIZE]) {
  const assay_host_request ask = {
      .struct_size = sizeof(ask), .audience = request->audience, .server_nonce = nonce, .session_key_hash = hash};
  uint8_t token[ASSAY_MAX_TOKEN];
  size_t size = sizeof(token);
  assay_error error;
  const assay_code code = assay_client_host_token(agent, &ask, token, &size, args->deadline_ms, &error);
  if (code != ASSAY_OK) return explain(code, &error);
  return send_frame(ssl, token, size);
}

static int join(SSL* ssl, const struct arguments* args, const assay_client* agent, const uint8_t hash[HASH_SIZE]) {
  struct request request;
  char token[ASSAY_MAX_TOKEN + 1];
  size_t size = sizeof(token);
  uint8_t answer[64];
  size_t answer_size = 0;
  if (receive_request(ssl, &request) != 0) return FAILED;
  const int got = args->present_token != NULL ? kept_token(args->present_token, token, &size)
                                              : own_token(args, agent, &request, hash, token, &size);
  if (got != 0 || send_frame(ssl, token, size) != 0 ||
      receive_frame(ssl, answer, sizeof(answer) - 1, &answer_size) != 0)
    return FAILED;
  if (answer_size == HASH_SIZE) {
    if (answer_host_nonce(ssl, args, agent, &request, hash, answer) != 0 ||
        receive_frame(ssl, answer, sizeof(answer) - 1, &answer_size) != 0)
      return FAILED;
  }
  answer[answer_size] = 0;
  const int accepted = strcmp((const char*)answer, "ok") == 0;
  printf("{\"accepted\":%s,\"code\":", accepted ? "true" : "false");
  print_json_text((const char*)answer);
  printf(",\"server_authenticated\":%s}\n", args->server_key_hash != NULL ? "true" : "false");
  return accepted ? ACCEPTED : REFUSED;
}

static int run(const struct arguments* args, SSL_CTX* tls, const uint8_t hash[HASH_SIZE]) {
  assay_client* agent = NULL;
  const assay_code code = assay_client_open(args->agent, &agent);
  if (code != ASSAY_OK) return complain("game", assay_code_text(code)), FAILED;
  int outcome = FAILED;
  const int fd = connect_loopback(args->port, args->deadline_ms);
  SSL* ssl = fd < 0 ? NULL : SSL_new(tls);
  if (ssl != NULL && SSL_set_fd(ssl, fd) == 1 && SSL_connect(ssl) == 1) {
    if (check_server(ssl, args->server_key_hash) == 0) outcome = join(ssl, args, agent, hash);
    (void)SSL_shutdown(ssl);
  } else if (fd >= 0) {
    complain("game", "the TLS handshake failed");
  }
  SSL_free(ssl);
  if (fd >= 0) close(fd);
  assay_client_close(agent);
  return outcome;
}

int main(int argc, char** argv) {
  struct arguments args = {.deadline_ms = 30000};
  uint8_t hash[HASH_SIZE];
  if (parse(argc, argv, &args) != 0) return FAILED;
  signal(SIGPIPE, SIG_IGN);
  EVP_PKEY* key = load_or_make_key(args.key);
  EVP_PKEY* bound = key == NULL || args.other_key == NULL ? NULL : load_or_make_key(args.other_key);
  SSL_CTX* tls = key == NULL || (args.other_key != NULL && bound == NULL) ? NULL : make_tls(key, 0);
  const int outcome = tls == NULL || key_hash(bound == NULL ? key : bound, hash) != 0 ? FAILED : run(&args, tls, hash);
  SSL_CTX_free(tls);
  EVP_PKEY_free(bound);
  EVP_PKEY_free(key);
  return outcome;
}
