// SPDX-License-Identifier: Apache-2.0
// The relay as a program between a real agent and a verifier that says what a test wants, over real TLS. The verifier
// here checks what only a whole chain shows: that the quote is bound to the very connection it arrived on.
#include <doctest/doctest.h>

#include <atomic>
#include <mutex>

#include "sdk/core/host_token.h"
#include "sdk/core/protocol.h"
#include "tests/support/test_certificate.h"
#include "tests/unit/agent/machine.h"
#include "tests/unit/net/scripted_server.h"

namespace assay::agent {
namespace {

using test::kWait;
using test::Machine;

Challenge ChallengeNumber(int number) {
  Challenge challenge;
  challenge.nonce = Buffer(limits::kChallenge, static_cast<std::uint8_t>(number));
  challenge.selection = {tpm::Alg::kSha256, 0x40FF};
  challenge.lifetime_ms = 60'000;
  return challenge;
}

// Answers every request of every connection; what it saw is counted.
class Verifier {
 public:
  explicit Verifier(Machine& machine)
      : machine_(machine),
        certificate_(assay::test::MakeCertificate(machine.dir, "verifier", "IP:127.0.0.1")),
        server_({.certificate = &certificate_}, {[this](net::Peer& peer) { Serve(peer); }}) {
    std::ofstream(machine.dir / "relay.toml")
        << "verifier = \"https://127.0.0.1:" << server_.port() << "\"\nca = \"" << certificate_.certificate
        << "\"\nagent_socket = \"" << machine.socket() << "\"\nfirst_backoff = \"50ms\"\nmax_backoff = \"200ms\"\n";
  }

  std::atomic<int> challenges{0};
  std::atomic<int> submissions{0};
  std::atomic<int> bound{0};  // submissions whose quote covers this connection
  std::atomic<int> tokens{0};
  std::atomic<int> status{200};
  std::atomic<Tier> tier{Tier::kAffirming};
  std::atomic<bool> close_after_reply{false};
  int connections() const { return server_.connections(); }

 private:
  void Serve(net::Peer& peer) {
    for (std::string request = peer.ReadRequest(); !request.empty(); request = peer.ReadRequest()) {
      const Buffer reply = request.starts_with(std::string("POST ") + route::kChallenge)
                               ? EncodeChallenge(ChallengeNumber(++challenges))
                               : Judge(peer, request.substr(request.find("\r\n\r\n") + 4));
      if (status == 200) {
        peer.SendReply(AsText(reply), close_after_reply ? "Connection: close\r\n" : "");
      } else {
        const Buffer error = EncodeErrorReply({"binding_mismatch", "detail", "fix"});
        peer.Send("HTTP/1.1 " + std::to_string(status) + " Refused\r\nContent-Length: " + std::to_string(error.size()) +
                  "\r\n\r\n" + std::string(AsText(error)));
      }
      if (close_after_reply) return;
    }
  }

  Buffer Judge(net::Peer& peer, const std::string& body) {
    ++submissions;
    const auto evidence = DecodeEvidence(AsBytes(body));
    if (!evidence.ok()) return {};
    const auto attest = tpm::DecodeAttest(evidence->quote);
    const Digest extra = ExtraData(QuoteTag::kEvidence, evidence->nonce, Sha256(evidence->body), peer.Binding());
    if (attest.ok() && Equal(attest->extra_data, extra)) ++bound;
    AttestReply reply;
    reply.tier = tier;
    const auto decoded = DecodeEvidenceBody(evidence->body);
    if (decoded.ok() && decoded->request)
      reply.result_token = "token." + std::to_string(++tokens) + "." + std::string(decoded->request->audience);
    reply.next = ChallengeNumber(100 + submissions);
    reply.next_in_ms = 3'600'000;
    return EncodeAttestReply(reply);
  }

  Machine& machine_;
  assay::test::CertificateFiles certificate_;
  net::ScriptedServer server_;
};

int RelayOnce(Machine& machine) {
  return machine.Run("assay-relay", {"--config", machine.dir / "relay.toml", "--once", "--json"});
}

TEST_CASE("the relay's exit code tells the verdict, or who did not answer") {
  Machine machine;
  Verifier verifier(machine);
  CHECK(RelayOnce(machine) == 7);  // no agent yet
  machine.Start();
  CHECK(RelayOnce(machine) == 0);
  CHECK(machine.CommandOutput().find("\"tier\":\"affirming\"") != std::string::npos);
  CHECK(verifier.bound == 1);
  verifier.tier = Tier::kWarning;
  CHECK(RelayOnce(machine) == 3);
  verifier.tier = Tier::kContraindicated;
  CHECK(RelayOnce(machine) == 4);
  CHECK(machine.Command({"status"}) == 0);
  CHECK(machine.CommandOutput().find("tier: contraindicated") != std::string::npos);
  verifier.status = 403;
  CHECK(RelayOnce(machine) == 5);
  CHECK(machine.CommandOutput().find("binding_mismatch") != std::string::npos);
  CHECK(verifier.bound == verifier.submissions);
  CHECK(machine.Run("assay-relay", {"--config", machine.dir / "none.toml"}) == 2);
  CHECK(machine.Run("assay-relay", {"--config", machine.dir / "relay.toml", "--check-config"}) == 0);
  std::ofstream(machine.dir / "relay.toml", std::ios::app) << "unknown = 1\n";
  CHECK(RelayOnce(machine) == 2);
}

TEST_CASE("without a verifier, or with one whose certificate another vouches for, nothing is sent") {
  Machine machine;
  machine.Start();
  const auto other = assay::test::MakeCertificate(machine.dir, "other", "IP:127.0.0.1");
  Verifier verifier(machine);
  const std::string good = config::ReadTextFile(machine.dir / "relay.toml", 4096).value();
  std::string bad = good;
  bad.replace(bad.find("/verifier.pem"), 13, "/other.pem");
  std::ofstream(machine.dir / "relay.toml") << bad;
  CHECK(RelayOnce(machine) == 5);
  CHECK(machine.CommandOutput().find("verifier_certificate") != std::string::npos);
  CHECK(verifier.challenges == 0);
  std::string nobody = good;
  const std::size_t port = nobody.find("127.0.0.1:") + 10;
  nobody.replace(port, nobody.find('"', port) - port, "1");
  std::ofstream(machine.dir / "relay.toml") << nobody;
  CHECK(RelayOnce(machine) == 6);
}

struct RunningRelay {
  explicit RunningRelay(Machine& machine)
      : pid(test::Spawn({std::string(ASSAY_BIN_DIR) + "/assay-relay", "--config", machine.dir / "relay.toml"},
                        machine.dir / "relay.log")) {}
  ~RunningRelay() {
    ::kill(pid, SIGTERM);
    (void)test::Wait(pid);
  }
  pid_t pid;
};

local::Reply AskToken(Machine& machine, const std::string& audience) {
  return local::Client::Connect(machine.socket())
      .value()
      .Call(local::ResultTokenRequest{audience, "m", {}, {}, 20'000}, kWait)
      .value();
}

TEST_CASE("a game gets result and host tokens through the whole chain, one round trip each") {
  Machine machine;
  machine.Start();
  Verifier verifier(machine);
  const RunningRelay relay(machine);
  for (int i = 1; i <= 3; ++i) {
    const local::Reply reply = AskToken(machine, "title");
    REQUIRE_MESSAGE(reply.ok, reply.error.detail);
    CHECK(AsText(reply.payload) == "token." + std::to_string(i) + ".title");
  }
  const local::Reply host = local::Client::Connect(machine.socket())
                                .value()
                                .Call(local::HostTokenRequest{"title", false, 0, {}, {}}, kWait)
                                .value();
  REQUIRE_MESSAGE(host.ok, host.error.detail);
  CHECK(ParseHostToken(host.payload).value().attester == machine.aik->SpkiDigest());
  CHECK(verifier.challenges == 1);
  CHECK(verifier.connections() == 1);
  CHECK(verifier.bound == verifier.submissions);
  CHECK(verifier.submissions <= 4);  // the first was routine
}

TEST_CASE("a verifier that closes every connection, and an agent that starts anew, are lived through") {
  Machine machine;
  machine.Start();
  Verifier verifier(machine);
  verifier.close_after_reply = true;
  const RunningRelay relay(machine);
  CHECK(AskToken(machine, "title").ok);
  CHECK(machine.End(SIGKILL).signal == SIGKILL);
  machine.Start();
  const local::Reply reply = AskToken(machine, "title");
  CHECK_MESSAGE(reply.ok, reply.error.detail);
  CHECK(verifier.bound == verifier.submissions);
  CHECK(verifier.connections() > 2);
}

}  // namespace
}  // namespace assay::agent
