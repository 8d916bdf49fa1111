// SPDX-License-Identifier: Apache-2.0
#include "sdk/config/agent_config.h"

#include <doctest/doctest.h>

#include "sdk/config/relay_config.h"
#include "sdk/core/crypto.h"

namespace assay::config {
namespace {

TEST_CASE("an empty agent configuration means the defaults of a real machine") {
  const AgentConfig config = ParseAgentConfig("", "agent.toml").value();
  CHECK(config.tcti == "device:/dev/tpmrm0");
  CHECK(config.pcr == 14);
  CHECK(config.socket == kDefaultAgentSocket);
  CHECK_FALSE(config.firmware_log.empty());
  CHECK(config.digest == Sha256({}));
}

TEST_CASE("the agent's configuration is read whole, and its digest is that of the file") {
  const char text[] =
      "[tpm]\ntcti = \"swtpm:path=/tmp/x\"\npcr = 15\n[agent]\nsocket = \"/tmp/a.sock\"\nstate_dir = "
      "\"/tmp/s\"\nrelay_user = \"0\"\n"
      "io_timeout = \"2s\"\n[budget.connection]\nper_minute = 5\nburst = 2\n";
  const AgentConfig config = ParseAgentConfig(text, "agent.toml").value();
  CHECK(config.tcti == "swtpm:path=/tmp/x");
  CHECK(config.firmware_log.empty());
  CHECK(config.pcr == 15);
  CHECK(config.socket == "/tmp/a.sock");
  CHECK(config.relay_user == "0");
  CHECK(config.io_timeout_ms == 2000);
  CHECK(config.connection.per_minute == 5);
  CHECK(config.connection.burst == 2);
  CHECK(config.user.burst == 30);
  CHECK(config.digest == Sha256(AsBytes(text)));
}

TEST_CASE("a TCTI over the network is refused unless the file allows it by name") {
  CHECK_FALSE(ParseAgentConfig("[tpm]\ntcti = \"swtpm:host=127.0.0.1,port=2321\"\n", "f").ok());
  CHECK_FALSE(ParseAgentConfig("[tpm]\ntcti = \"mssim:host=127.0.0.1\"\n", "f").ok());
  CHECK(ParseAgentConfig("[tpm]\ntcti = \"mssim:host=127.0.0.1\"\nallow_developer_tcti = true\n", "f").ok());
  CHECK_FALSE(ParseAgentConfig("[tpm]\ntcti = \"cmd:sh\"\nallow_developer_tcti = true\n", "f").ok());
  CHECK_FALSE(ParseAgentConfig("[tpm]\ntcti = \"\"\n", "f").ok());
}

TEST_CASE("unknown keys and values out of range are errors of the agent's configuration") {
  for (const char* text : {"x = 1\n", "[tpm]\npcr = 16\n", "[tpm]\npcr = 7\n", "[agent]\nsocket = \"relative\"\n",
                           "[agent]\nsocks = \"/a\"\n", "[agent]\nrelay_user = \"\"\n", "[budget.user]\nburst = 0\n",
                           "[budget.other]\nburst = 1\n"}) {
    const auto config = ParseAgentConfig(text, "f");
    REQUIRE_MESSAGE(!config.ok(), text);
    CHECK(config.error().code == Code::kConfig);
  }
  CHECK(LoadAgentConfig("/nonexistent/agent.toml").error().code == Code::kNotFound);
}

TEST_CASE("the relay's configuration names the verifier and its roots") {
  const RelayConfig config =
      ParseRelayConfig("verifier = \"https://v.example:9443\"\nca = \"/etc/assay/ca.pem\"\n", "f").value();
  CHECK(config.verifier_host == "v.example");
  CHECK(config.verifier_port == 9443);
  CHECK(config.server_name == "v.example");
  CHECK(config.ca_file == "/etc/assay/ca.pem");
  for (const char* text : {"", "verifier = \"https://v\"\n", "ca = \"x\"\n", "verifier = \"http://v\"\nca = \"x\"\n",
                           "verifier = \"https://v\"\nca = \"x\"\nzzz = 1\n",
                           "verifier = \"https://v\"\nca = \"x\"\nfirst_backoff = \"10s\"\nmax_backoff = \"1s\"\n"}) {
    CHECK_MESSAGE(!ParseRelayConfig(text, "f").ok(), text);
  }
}

TEST_CASE("verifier addresses are read strictly") {
  CHECK(ParseVerifierUrl("https://127.0.0.1:8443/").value().port == 8443);
  CHECK(ParseVerifierUrl("https://[::1]:1").value().host == "::1");
  CHECK(ParseVerifierUrl("https://[::1]").value().port == 8443);
  for (const char* url : {"", "https://", "https://a:", "https://a:0", "https://a:65536", "https://a:1x", "https://a/b",
                          "https://[::1", "https://[::1]x", "https://a b", "https://user@a", "https://::1"}) {
    CHECK_MESSAGE(!ParseVerifierUrl(url).ok(), url);
  }
}

}  // namespace
}  // namespace assay::config
