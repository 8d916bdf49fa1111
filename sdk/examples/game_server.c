/* SPDX-License-Identifier: Apache-2.0 */
/* A small game server: takes one player, asks for a result token and (unless --no-host-token) a host token, verifies
   both offline, prints one line of JSON and exits: 0 accepted, 1 refused, 2 could not judge. */
#define _POSIX_C_SOURCE 200809L
#include <arpa/inet.h>
#include <assay/server.h>
#include <getopt.h>
#include <netinet/in.h>
#include <openssl/rand.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sdk/examples/channel.h"

enum { ACCEPTED = 0, REFUSED = 1, FAILED = 2 };

struct arguments {
  const char *jwks, *revocations, *issuer, *audience, *match, *title_key, *key, *port_file, *save_nonce, *nonce_from;
  unsigned port, timeout_ms;
  int allow_test, host_token, worst_tier;
};

struct verdict {
  assay_code code;      /* of the result token */
  assay_code host_code; /* of the host token; ASSAY_OK also when none was asked for */
  int host_asked;
  uint8_t channel[HASH_SIZE];
  assay_result result;
  assay_host_result host;
};

static const char usage[] =
    "game-server: an example that verifies one player, offline.\n"
    "  --jwks FILE          the verifier's key set (required)\n"
    "  --issuer NAME        the verifier's name, iss of its tokens (required)\n"
    "  --audience TITLE     this title (required)\n"
    "  --title-key FILE     the key shared with the verifier, 64 hexadecimal digits (required)\n"
    "  --match ID           the match (default: match-1)\n"
    "  --revocations FILE   the verifier's signed revocation list\n"
    "  --port N             on 127.0.0.1; 0 takes a free one (default)\n"
    "  --port-file FILE     write the port there once listening\n"
    "  --key FILE           the server's TLS key (PEM; made when missing; default: one for this run)\n"
    "  --timeout MS         for the player to come, and for each of its answers (default: 30000)\n"
    "  --no-host-token      ask for a result token only\n"
    "  --warning            accept the tier warning, too\n"
    "  --allow-test         accept tokens made without a TPM\n"
    "  --save-nonce FILE    keep the nonce that was given out and its time\n"
    "  --nonce-from FILE    give out a nonce kept so, to show that another player's token is refused even then\n"
    "Prints one line of JSON. Exit: 0 accepted, 1 refused, 2 could not judge.\n";

static int parse(int argc, char** argv, struct arguments* args) {
  static const struct option options[] = {
      {"jwks", required_argument, NULL, 'j'},       {"issuer", required_argument, NULL, 'i'},
      {"audience", required_argument, NULL, 'a'},   {"title-key", required_argument, NULL, 't'},
      {"match", required_argument, NULL, 'm'},      {"revocations", required_argument, NULL, 'r'},
      {"port", required_argument, NULL, 'p'},       {"port-file", required_argument, NULL, 'P'},
      {"key", required_argument, NULL, 'k'},        {"timeout", required_argument, NULL, 'T'},
      {"no-host-token", no_argument, NULL, 'H'},    {"warning", no_argument, NULL, 'w'},
      {"allow-test", no_argument, NULL, 'A'},       {"save-nonce", required_argument, NULL, 's'},
      {"nonce-from", required_argument, NULL, 'n'}, {"help", no_argument, NULL, 'h'},
      {"version", no_argument, NULL, 'v'},          {NULL, 0, NULL, 0}};
  for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
    switch (c) {
      case 'j': args->jwks = optarg; break;
      case 'i': args->issuer = optarg; break;
      case 'a': args->audience = optarg; break;
      case 't': args->title_key = optarg; break;
      case 'm': args->match = optarg; break;
      case 'r': args->revocations = optarg; break;
      case 'p': args->port = (unsigned)strtoul(optarg, NULL, 10); break;
      case 'P': args->port_file = optarg; break;
      case 'k': args->key = optarg; break;
      case 'T': args->timeout_ms = (unsigned)strtoul(optarg, NULL, 10); break;
      case 'H': args->host_token = 0; break;
      case 'w': args->worst_tier = ASSAY_TIER_WARNING; break;
      case 'A': args->allow_test = 1; break;
      case 's': args->save_nonce = optarg; break;
      case 'n': args->nonce_from = optarg; break;
      case 'h': fputs(usage, stdout); exit(ACCEPTED);
      case 'v': puts(assay_version()); exit(ACCEPTED);
      default: return -1;
    }
  }
  if (args->jwks == NULL || args->issuer == NULL || args->audience == NULL || args->title_key == NULL ||
      optind != argc || args->port > 65535) {
    return complain("game-server", "--jwks, --issuer, --audience and --title-key are required; see --help");
  }
  return 0;
}

static assay_keyset* load_keys(const char* path) {
  size_t size = 0;
  assay_keyset* keys = NULL;
  char* text = read_file(path, &size);
  const assay_code code = text == NULL ? ASSAY_E_IO : assay_keyset_parse(text, size, &keys);
  free(text);
  if (code != ASSAY_OK) complain(path, assay_code_text(code));
  return keys;
}

static int load_revocations(const assay_keyset* keys, const char* path, assay_revocations** list) {
  size_t size = 0;
  if (path == NULL) return 0;
  char* text = read_file(path, &size);
  while (text != NULL && size > 0 && text[size - 1] == '\n') --size;
  const assay_code code = text == NULL ? ASSAY_E_IO : assay_revocations_parse(keys, text, size, list);
  free(text);
  return code == ASSAY_OK ? 0 : complain(path, assay_code_text(code));
}

static int listen_loopback(unsigned port, const char* port_file) {
  struct sockaddr_in address = {
      .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof(address);
  const int on = 1;
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
      bind(fd, (const struct sockaddr*)&address, size) != 0 || listen(fd, 8) != 0 ||
      getsockname(fd, (struct sockaddr*)&address, &size) != 0) {
    return complain("game-server", "cannot listen on that port");
  }
  char text[16];
  snprintf(text, sizeof(text), "%u\n", (unsigned)ntohs(address.sin_port));
  fprintf(stderr, "game-server: listening on 127.0.0.1:%s", text);
  return port_file == NULL || write_file(port_file, text, strlen(text)) == 0 ? fd : -1;
}

/* The nonce binds title, match and this very channel, so that the verifier knows that this server asked. */
static int make_nonce(const struct arguments* args, const struct verdict* verdict, uint8_t nonce[HASH_SIZE],
                      int64_t* issued_ms) {
  uint8_t title_key[HASH_SIZE];
  size_t size = 0;
  char* text = read_file(args->title_key, &size);
  const int read = text != NULL && from_hex(text, title_key, sizeof(title_key)) == 0;
  free(text);
  if (!read) return complain(args->title_key, "holds no 64 hexadecimal digits");
  *issued_ms = now_ms();
  if (assay_make_server_nonce(title_key, sizeof(title_key), args->audience, args->match, verdict->channel, nonce) !=
      ASSAY_OK)
    return -1;
  if (args->nonce_from != NULL) {
    text = read_file(args->nonce_from, &size);
    const int kept = text != NULL && size > 65 && from_hex(text, nonce, HASH_SIZE) == 0;
    if (kept) *issued_ms = strtoll(text + 65, NULL, 10);
    free(text);
    if (!kept) return complain(args->nonce_from, "holds no nonce that --save-nonce wrote");
  }
  if (args->save_nonce != NULL) {
    char line[128];
    to_hex(nonce, HASH_SIZE, line);
    snprintf(line + 64, sizeof(line) - 64, " %lld\n", (long long)*issued_ms);
    return write_file(args->save_nonce, line, strlen(line));
  }
  return 0;
}

/* audience 0 match 0 nonce */
static int send_request(SSL* ssl, const struct arguments* args, const uint8_t nonce[HASH_SIZE]) {
  char message[ASSAY_MAX_AUDIENCE + ASSAY_MAX_MATCH + 2 + HASH_SIZE];
  const size_t audience = strlen(args->audience) + 1;
  const size_t match = strlen(args->match) + 1;
  if (audience > ASSAY_MAX_AUDIENCE + 1 || match > ASSAY_MAX_MATCH + 1)
    return complain("game-server", "audience or match is too long");
  memcpy(message, args->audience, audience);
  memcpy(message + audience, args->match, match);
  memcpy(message + audience + match, nonce, HASH_SIZE);
  return send_frame(ssl, message, audience + match + HASH_SIZE);
}

static int check_result(SSL* ssl, const struct arguments* args, const assay_keyset* keys, struct verdict* verdict) {
  uint8_t nonce[HASH_SIZE];
  uint8_t token[ASSAY_MAX_TOKEN];
  size_t size = 0;
  assay_result_options options = {.struct_size = sizeof(options)};
  assay_revocations* revocations = NULL;
  if (load_revocations(keys, args->revocations, &revocations) != 0) return -1;
  int done = make_nonce(args, verdict, nonce, &options.nonce_issued_at_ms) == 0 &&
             send_request(ssl, args, nonce) == 0 && receive_frame(ssl, token, sizeof(token), &size) == 0;
  if (done) {
    options.issuer = args->issuer;
    options.audience = args->audience;
    options.match = args->match;
    options.server_nonce = nonce;
    options.session_key_hash = verdict->channel;
    options.now_ms = now_ms();
    options.leeway_ms = 2000;
    options.worst_tier = args->worst_tier;
    options.allow_test = args->allow_test;
    options.revocations = revocations;
    verdict->code = assay_verify_result_token(keys, (const char*)token, size, &options, &verdict->result);
  }
  assay_revocations_free(revocations);
  return done ? 0 : -1;
}

static int check_host(SSL* ssl, struct verdict* verdict) {
  uint8_t nonce[HASH_SIZE];
  uint8_t token[ASSAY_MAX_TOKEN];
  size_t size = 0;
  assay_attester* attester = NULL;
  verdict->host_asked = 1;
  verdict->host_code = assay_result_prepare_host_tokens(&verdict->result, &attester);
  if (verdict->host_code != ASSAY_OK) return 0;
  assay_host_token_options options = {
      .struct_size = sizeof(options), .server_nonce = nonce, .session_key_hash = verdict->channel};
  options.nonce_issued_at_ms = now_ms();
  const int done = RAND_bytes(nonce, sizeof(nonce)) == 1 && send_frame(ssl, nonce, sizeof(nonce)) == 0 &&
                   receive_frame(ssl, token, sizeof(token), &size) == 0;
  options.now_ms = now_ms();
  if (done) verdict->host_code = assay_verify_host_token(attester, token, size, &options, &verdict->host);
  assay_attester_free(attester);
  return done ? 0 : -1;
}

static void print_hex_field(const char* name, const uint8_t* data) {
  char hex[2 * HASH_SIZE + 1];
  to_hex(data, HASH_SIZE, hex);
  printf(",\"%s\":\"%s\"", name, hex);
}

static const char* tier_name(int32_t tier) {
  switch (tier) {
    case ASSAY_TIER_AFFIRMING: return "affirming";
    case ASSAY_TIER_WARNING: return "warning";
    case ASSAY_TIER_CONTRAINDICATED: return "contraindicated";
    default: return "none";
  }
}

static void print_verdict(const struct verdict* v, int accepted) {
  static const char* const gates[] = {"absent", "monitor", "enforce", "maintenance", "broken"};
  const assay_result* r = &v->result;
  const assay_code code = v->code != ASSAY_OK ? v->code : v->host_code;
  printf("{\"accepted\":%s,\"code\":\"%s\",\"text\":", accepted ? "true" : "false", assay_code_name(code));
  print_json_text(assay_code_text(code));
  printf(",\"result_token\":\"%s\",\"host_token\":\"%s\"", assay_code_name(v->code),
         v->host_asked ? assay_code_name(v->host_code) : "not_asked");
  print_hex_field("session_key_hash", v->channel);
  if (v->code == ASSAY_OK || v->code == ASSAY_E_TIER) {
    printf(",\"tier\":\"%s\",\"device_id\":", tier_name(r->tier));
    print_json_text(r->device_id);
    printf(",\"weak_device_id\":%s,\"test\":%s", r->weak_device_id ? "true" : "false", r->test ? "true" : "false");
    if (r->caller_measured) print_hex_field("caller", r->caller_digest);
    else printf(",\"caller\":\"unmeasured\"");
    printf(",\"runtime_anchor\":\"%s\",\"gate\":\"%s\"",
           r->runtime_anchor == ASSAY_ANCHOR_MEASURED ? "measured" : "self_reported", gates[r->gate]);
    printf(",\"expires\":%lld,\"reasons\":[", (long long)r->expires_at_s);
    for (uint32_t i = 0; i < r->reason_count; ++i) {
      if (i > 0) putchar(',');
      print_json_text(r->reasons[i]);
    }
    putchar(']');
  }
  if (v->host_asked && v->host_code == ASSAY_OK) printf(",\"tpm_clock_ms\":%llu", (unsigned long long)v->host.clock_ms);
  puts("}");
}

static int serve_player(SSL* ssl, const struct arguments* args, const assay_keyset* keys) {
  struct verdict verdict = {.code = ASSAY_E_IO, .host_code = ASSAY_OK};
  if (SSL_accept(ssl) != 1) return complain("game-server", "the TLS handshake failed"), FAILED;
  if (peer_key_hash(ssl, verdict.channel) != 0 || check_result(ssl, args, keys, &verdict) != 0) return FAILED;
  if (verdict.code == ASSAY_OK && args->host_token && check_host(ssl, &verdict) != 0) return FAILED;
  const int accepted = verdict.code == ASSAY_OK && verdict.host_code == ASSAY_OK;
  print_verdict(&verdict, accepted);
  const assay_code code = verdict.code != ASSAY_OK ? verdict.code : verdict.host_code;
  (void)send_frame(ssl, assay_code_name(code),
                   strlen(assay_code_name(code))); /* the last frame is no nonce but a word */
  (void)SSL_shutdown(ssl);
  return accepted ? ACCEPTED : REFUSED;
}

static int run(const struct arguments* args, const assay_keyset* keys, SSL_CTX* tls) {
  const int listener = listen_loopback(args->port, args->port_file);
  if (listener < 0 || set_deadline(listener, args->timeout_ms) != 0) return FAILED;
  const int player = accept(listener, NULL, NULL);
  close(listener);
  if (player < 0) return complain("game-server", "no player came in time"), FAILED;
  SSL* ssl = SSL_new(tls);
  int outcome = FAILED;
  if (ssl != NULL && set_deadline(player, args->timeout_ms) == 0 && SSL_set_fd(ssl, player) == 1)
    outcome = serve_player(ssl, args, keys);
  SSL_free(ssl);
  close(player);
  return outcome;
}

int main(int argc, char** argv) {
  struct arguments args = {
      .match = "match-1", .timeout_ms = 30000, .host_token = 1, .worst_tier = ASSAY_TIER_AFFIRMING};
  if (parse(argc, argv, &args) != 0) return FAILED;
  signal(SIGPIPE, SIG_IGN);
  assay_keyset* keys = load_keys(args.jwks);
  EVP_PKEY* key = keys == NULL ? NULL : load_or_make_key(args.key);
  SSL_CTX* tls = key == NULL ? NULL : make_tls(key, 1);
  const int outcome = tls == NULL ? FAILED : run(&args, keys, tls);
  SSL_CTX_free(tls);
  EVP_PKEY_free(key);
  assay_keyset_free(keys);
  return outcome;
}
