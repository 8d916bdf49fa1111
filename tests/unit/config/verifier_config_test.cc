// SPDX-License-Identifier: Apache-2.0
#include "sdk/config/verifier_config.h"

#include <doctest/doctest.h>

namespace assay::config {
namespace {

const std::string kLeast =
    "issuer = \"https://v.example\"\ntls_certificate = \"tls.pem\"\ntls_key = \"/k/tls.key\"\npolicy = "
    "\"policy.toml\"\n";

std::string ProblemOf(const std::string& text) {
  const auto config = ParseVerifierConfig(text, "v.toml", "/etc/assay");
  return config.ok() ? "" : config.error().detail;
}

TEST_CASE("the least configuration reads, with paths resolved against the file's directory") {
  const VerifierConfig config = ParseVerifierConfig(kLeast, "v.toml", "/etc/assay").value();
  CHECK(config.issuer == "https://v.example");
  CHECK(config.tls_certificate == "/etc/assay/tls.pem");
  CHECK(config.tls_key == "/k/tls.key");
  CHECK(config.policy == "/etc/assay/policy.toml");
  CHECK(config.listen_address == "127.0.0.1");
  CHECK(config.aik_lifetime_ms == 24ULL * 3600 * 1000);
  CHECK(config.begin_per_source_minute == 10);
  CHECK(config.begin_per_ek_minute > config.begin_per_source_minute);
  CHECK(config.challenge_lifetime_ms == 2 * config.reattest_interval_ms);
}

TEST_CASE("every key reads") {
  const VerifierConfig config =
      ParseVerifierConfig(
          kLeast +
              "listen_address = \"::\"\nlisten_port = 0\noperator_socket = \"op.sock\"\noperator_group = "
              "\"ops\"\nstate_dir = \"s\"\nkeys_dir = \"k\"\n"
              "balancers = [\"10.0.0.7\", \"10.1.0.0/16\", \"fd00::/64\"]\nthreads = 3\n"
              "[limits]\nlarge_bodies = 13\nlarge_bodies_per_source = 14\nhandler_timeout = \"7s\"\nconnections = "
              "10\nconnections_per_source = 11\nhandshakes = 12\nhandshake_timeout = \"1s\"\nheader_timeout = \"2s\"\n"
              "body_timeout = \"3s\"\nwrite_timeout = \"4s\"\nidle_timeout = \"5s\"\ndrain_timeout = \"6s\"\n"
              "[attestation]\ninterval = \"30s\"\nchallenge_lifetime = \"45s\"\n"
              "[enrollment]\naik_lifetime = \"2h\"\nbegin_per_source_minute = 1\nbegin_per_ek_minute = "
              "2\nbegin_global_minute = 3\n",
          "v.toml", "/d")
          .value();
  CHECK(config.listen_address == "::");
  CHECK(config.listen_port == 0);
  CHECK(config.operator_socket == "/d/op.sock");
  CHECK(config.operator_group == "ops");
  CHECK(config.state_dir == "/d/s");
  CHECK(config.keys_dir == "/d/k");
  CHECK(config.balancers.size() == 3);
  CHECK(config.threads == 3);
  CHECK(config.max_connections == 10);
  CHECK(config.max_connections_per_source == 11);
  CHECK(config.max_handshakes == 12);
  CHECK(config.max_large_bodies == 13);
  CHECK(config.max_large_bodies_per_source == 14);
  CHECK(config.handler_timeout_ms == 7'000);
  CHECK(config.handshake_timeout_ms == 1'000);
  CHECK(config.header_timeout_ms == 2'000);
  CHECK(config.body_timeout_ms == 3'000);
  CHECK(config.write_timeout_ms == 4'000);
  CHECK(config.idle_timeout_ms == 5'000);
  CHECK(config.drain_timeout_ms == 6'000);
  CHECK(config.reattest_interval_ms == 30'000);
  CHECK(config.challenge_lifetime_ms == 45'000);
  CHECK(config.aik_lifetime_ms == 7'200'000);
  CHECK(config.begin_per_source_minute == 1);
  CHECK(config.begin_per_ek_minute == 2);
  CHECK(config.begin_global_minute == 3);
}

TEST_CASE("the limit of an EK follows the limit of a source unless it is given") {
  const VerifierConfig config =
      ParseVerifierConfig(kLeast + "[enrollment]\nbegin_per_source_minute = 1000\n", "v.toml", "/d").value();
  CHECK(config.begin_per_ek_minute == 2000);
}

TEST_CASE("what must be named is missed by name") {
  for (const std::string key : {"issuer", "tls_certificate", "tls_key", "policy"}) {
    std::string text = kLeast;
    const std::size_t at = text.find(key + " =");
    text.erase(at, text.find('\n', at) - at);
    CHECK(ProblemOf(text).find(key + ": is missing") != std::string::npos);
  }
}

TEST_CASE("a value out of its bounds is refused with line and key") {
  const char* const top[] = {"listen_port = 65536",
                             "listen_port = -1",
                             "listen_port = \"8443\"",
                             "listen_address = \"localhost\"",
                             "listen_address = \"\"",
                             "balancers = [\"lb\"]",
                             "balancers = [\"10.0.0.0/33\"]",
                             "balancers = [\"10.0.0.0/0\"]",
                             "balancers = [\"::/129\"]",
                             "balancers = [\"::1/\"]",
                             "balancers = \"10.0.0.1\"",
                             "threads = 257",
                             "operator_group = 5",
                             "state_dir = true"};
  for (const std::string line : top) {
    const std::string problem = ProblemOf(kLeast + line + "\n");
    CHECK_MESSAGE(problem.starts_with("v.toml:5: " + line.substr(0, line.find(' ')) + ": "),
                  line << " gave " << problem);
  }
  const char* const nested[][2] = {{"limits", "connections = 0"},
                                   {"limits", "connections_per_source = 0"},
                                   {"limits", "handshakes = 0"},
                                   {"limits", "large_bodies = 0"},
                                   {"limits", "large_bodies_per_source = 10001"},
                                   {"limits", "handler_timeout = \"1ms\""},
                                   {"limits", "handshake_timeout = \"1ms\""},
                                   {"limits", "header_timeout = \"2m\""},
                                   {"limits", "body_timeout = \"11m\""},
                                   {"limits", "write_timeout = 5"},
                                   {"limits", "idle_timeout = \"2d\""},
                                   {"limits", "drain_timeout = \"1h\""},
                                   {"attestation", "interval = \"1ms\""},
                                   {"attestation", "interval = \"x\""},
                                   {"attestation", "challenge_lifetime = \"0s\""},
                                   {"enrollment", "aik_lifetime = \"1s\""},
                                   {"enrollment", "begin_per_source_minute = 0"},
                                   {"enrollment", "begin_per_ek_minute = 10"},
                                   {"enrollment", "begin_global_minute = 0"}};
  for (const auto& [table, line] : nested) {
    const std::string key(line, std::string_view(line).find(' '));
    const std::string problem = ProblemOf(kLeast + "[" + table + "]\n" + line + "\n");
    CHECK_MESSAGE(problem.starts_with("v.toml:6: [" + std::string(table) + "] " + key + ": "),
                  line << " gave " << problem);
  }
}

TEST_CASE("an unknown key is refused wherever it stands") {
  CHECK(ProblemOf(kLeast + "port = 1\n").starts_with("v.toml:5: port: is not a key"));
  for (const std::string table : {"limits", "attestation", "enrollment"}) {
    CHECK(
        ProblemOf(kLeast + "[" + table + "]\nnone = 1\n").starts_with("v.toml:6: [" + table + "] none: is not a key"));
  }
  CHECK(ProblemOf(kLeast + "[limit]\n").starts_with("v.toml:5: limit: is not a key"));
}

TEST_CASE("an issuer is a URL that can stand in a token") {
  for (const std::string bad : {"", "verifier.example", "https://", "https://a b", "ftp://a", "https://a\\\"b"}) {
    std::string text = kLeast;
    text.replace(text.find("https://v.example"), 17, bad);
    CHECK_MESSAGE(ProblemOf(text).find("issuer") != std::string::npos, bad);
  }
}

}  // namespace
}  // namespace assay::config
