// SPDX-License-Identifier: Apache-2.0
#include "sdk/net/https_client.h"

#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <mutex>

#include "tests/unit/net/scripted_server.h"

namespace assay::net {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kSoon = std::chrono::seconds(3);

const test::TempDir& Dir() {
  static const test::TempDir dir;
  return dir;
}
const test::CertificateFiles& Certificate() {
  static const test::CertificateFiles files =
      test::MakeCertificate(Dir(), "server", "DNS:localhost,DNS:verifier.example,IP:127.0.0.1");
  return files;
}
const test::CertificateFiles& Other() {
  static const test::CertificateFiles files = test::MakeCertificate(Dir(), "other", "DNS:localhost,IP:127.0.0.1");
  return files;
}

HttpsOptions OptionsFor(const ScriptedServer& server) {
  HttpsOptions options;
  options.host = "127.0.0.1";
  options.port = server.port();
  options.ca_file = Certificate().certificate;
  return options;
}

HttpsClient ClientOf(const ScriptedServer& server, std::function<void(HttpsOptions&)> adjust = {}) {
  HttpsOptions options = OptionsFor(server);
  if (adjust) adjust(options);
  return HttpsClient::Create(options).value();
}

void Echo(Peer& peer) {
  for (std::string request = peer.ReadRequest(); !request.empty(); request = peer.ReadRequest())
    peer.SendReply(request);
}
void Close(Peer&) {}
Script Say(std::string text) {
  return [text = std::move(text)](Peer& peer) {
    if (!peer.ReadRequest().empty()) peer.Send(text);
  };
}

std::string Text(const Result<HttpReply>& reply) {
  return reply.ok() ? std::string(AsText(reply->body)) : "error: " + reply.error().ToString();
}
Code CodeOf(const Result<HttpReply>& reply) { return reply.ok() ? Code::kInternal : reply.error().code; }

TEST_CASE("a request is written as asked and the reply is read whole") {
  ScriptedServer server({.certificate = &Certificate()}, {Echo});
  HttpsClient client = ClientOf(server);
  const std::string host = "Host: 127.0.0.1:" + std::to_string(server.port()) + "\r\n";
  CHECK(Text(client.Get("/a?b=c")) == "GET /a?b=c HTTP/1.1\r\n" + host + "\r\n");
  CHECK(Text(client.Post("/p", "application/cbor", AsBytes("body"))) ==
        "POST /p HTTP/1.1\r\n" + host + "Content-Type: application/cbor\r\nContent-Length: 4\r\n\r\nbody");
  HttpRequest request{
      .method = "DELETE", .path = "/d", .content_type = "", .body = {}, .headers = {{"Authorization", "Bearer x"}}};
  CHECK(Text(client.Call(request)) ==
        "DELETE /d HTTP/1.1\r\n" + host + "Authorization: Bearer x\r\nContent-Length: 0\r\n\r\n");
  const std::string large(300'000, 'y');
  CHECK(Text(client.Post("/p", "t", AsBytes(large))).ends_with(large));
  CHECK(server.connections() == 1);
}

TEST_CASE("what cannot stand in a request is refused before anything is sent") {
  ScriptedServer server({.certificate = &Certificate()}, {Echo});
  HttpsClient client = ClientOf(server);
  const auto refused = [&](HttpRequest request) {
    const bool malformed = CodeOf(client.Call(request)) == Code::kMalformed;
    return malformed && !client.MayHaveBeenSent();
  };
  CHECK(refused({.method = "GET", .path = "/a b"}));
  CHECK(refused({.method = "GET", .path = "/a\r\nX: y"}));
  CHECK(refused({.method = "GET", .path = "a"}));
  CHECK(refused({.method = "G T", .path = "/"}));
  CHECK(refused({.method = "", .path = "/"}));
  CHECK(refused({.method = "POST", .path = "/", .content_type = "a\r\nb"}));
  CHECK(refused({.method = "GET", .path = "/", .content_type = "", .body = AsBytes("x")}));
  CHECK(refused({.method = "GET", .path = "/", .content_type = "", .body = {}, .headers = {{"X", "a\nb"}}}));
  CHECK(refused({.method = "GET", .path = "/", .content_type = "", .body = {}, .headers = {{"X:", "a"}}}));
}

TEST_CASE("the server's certificate must chain to the CA file and carry the name") {
  ScriptedServer server({.certificate = &Certificate()}, {Echo});
  const auto connect = [&](std::function<void(HttpsOptions&)> adjust) {
    HttpsClient client = ClientOf(server, std::move(adjust));
    const Status status = client.Connect();
    return status.ok() ? Code::kInternal : status.error().code;
  };
  CHECK(connect([](HttpsOptions&) {}) == Code::kInternal);
  CHECK(connect([](HttpsOptions& o) { o.server_name = "verifier.example"; }) == Code::kInternal);
  CHECK(connect([](HttpsOptions& o) { o.server_name = "VERIFIER.example"; }) == Code::kInternal);
  CHECK(connect([](HttpsOptions& o) { o.server_name = "other.example"; }) == Code::kDenied);
  CHECK(connect([](HttpsOptions& o) { o.server_name = "server"; }) ==
        Code::kDenied);  // the subject's common name counts for nothing
  CHECK(connect([](HttpsOptions& o) { o.server_name = "127.0.0.2"; }) == Code::kDenied);
  CHECK(connect([](HttpsOptions& o) { o.ca_file = Other().certificate; }) == Code::kDenied);
}

TEST_CASE("an expired certificate is refused") {
  const auto expired = test::MakeCertificate(Dir(), "expired", "IP:127.0.0.1", "P-256", -1);
  ScriptedServer server({.certificate = &expired}, {Echo});
  HttpsClient client = ClientOf(server, [&](HttpsOptions& o) { o.ca_file = expired.certificate; });
  const Status status = client.Connect();
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().code == Code::kDenied);
  CHECK(status.error().detail.find("expired") != std::string::npos);
}

TEST_CASE("a pinned key stands for chain and name, another key is refused") {
  ScriptedServer server({.certificate = &Certificate()}, {Echo});
  const auto pin = [&](const Digest& spki) {
    return ClientOf(server, [&](HttpsOptions& o) {
      o.ca_file.clear();
      o.pinned_spki = spki;
      o.server_name = "name.of.nobody";
    });
  };
  CHECK(pin(Certificate().spki).Get("/").ok());
  HttpsClient wrong = pin(Other().spki);
  CHECK(CodeOf(wrong.Get("/")) == Code::kDenied);
  CHECK_FALSE(wrong.MayHaveBeenSent());
}

TEST_CASE("a server without TLS 1.3 is not spoken to") {
  ScriptedServer server({.certificate = &Certificate(), .client_ca = "", .highest_version = TLS1_2_VERSION}, {Echo});
  CHECK_FALSE(ClientOf(server).Connect().ok());
}

TEST_CASE("a client certificate is shown when one is configured") {
  std::atomic<int> shown{0};
  const auto script = [&](Peer& peer) {
    if (peer.HadClientCertificate()) ++shown;
    Echo(peer);
  };
  ScriptedServer server({.certificate = &Certificate(), .client_ca = Other().certificate}, {script});
  HttpsClient with = ClientOf(server, [](HttpsOptions& o) {
    o.client_certificate = Other().certificate;
    o.client_key = Other().key;
  });
  CHECK(with.Get("/").ok());
  CHECK(shown == 1);
  with.Close();
  CHECK_FALSE(ClientOf(server).Get("/").ok());
  CHECK(shown == 1);
}

TEST_CASE("options that cannot work are refused before any connection") {
  const auto refused = [](std::function<void(HttpsOptions&)> adjust) {
    HttpsOptions options;
    options.host = "127.0.0.1";
    options.ca_file = Certificate().certificate;
    adjust(options);
    const auto client = HttpsClient::Create(options);
    return !client.ok() && client.error().code == Code::kConfig;
  };
  CHECK_FALSE(refused([](HttpsOptions&) {}));
  CHECK(refused([](HttpsOptions& o) { o.host.clear(); }));
  CHECK(refused([](HttpsOptions& o) { o.port = 0; }));
  CHECK(refused([](HttpsOptions& o) { o.ca_file.clear(); }));
  CHECK(refused([](HttpsOptions& o) { o.ca_file = "/none.pem"; }));
  CHECK(refused([](HttpsOptions& o) { o.ca_file = Certificate().key; }));
  CHECK(refused([](HttpsOptions& o) { o.pinned_spki = Digest{}; }));
  CHECK(refused([](HttpsOptions& o) { o.client_key = Certificate().key; }));
  CHECK(refused([](HttpsOptions& o) {
    o.client_certificate = Certificate().certificate;
    o.client_key = Other().key;
  }));
}

TEST_CASE("a bound post goes over the connection whose binding was read, or not at all") {
  std::mutex mutex;
  std::vector<Digest> bindings;
  const auto once = [&](Peer& peer) {
    {
      const std::lock_guard lock(mutex);
      bindings.push_back(peer.Binding());
    }
    if (const std::string request = peer.ReadRequest(); !request.empty()) peer.SendReply(request);
  };
  ScriptedServer server({.certificate = &Certificate()}, {once});
  HttpsClient client = ClientOf(server);
  CHECK(CodeOf(client.PostBound("/", "t", {})) == Code::kConflict);  // nothing is up
  REQUIRE(client.Connect().ok());
  CHECK(CodeOf(client.PostBound("/", "t", {})) == Code::kConflict);  // up, but its binding was never read
  REQUIRE(client.Connect().ok());
  const Digest binding = client.ChannelBinding().value();
  CHECK(client.PostBound("/", "t", AsBytes("evidence")).ok());
  {
    const std::lock_guard lock(mutex);
    CHECK(bindings.back() == binding);
  }
  // The server has closed: the old binding is worth nothing.
  ::usleep(50'000);
  CHECK(CodeOf(client.PostBound("/", "t", AsBytes("evidence"))) == Code::kConflict);
  CHECK_FALSE(client.MayHaveBeenSent());
  REQUIRE(client.Connect().ok());
  CHECK(client.ChannelBinding().value() != binding);
  CHECK(client.PostBound("/", "t", AsBytes("evidence")).ok());
}

TEST_CASE("a connection renewed silently does not inherit the binding that was read") {
  ScriptedServer server({.certificate = &Certificate()}, {Close, Echo});
  HttpsClient client = ClientOf(server);
  REQUIRE(client.Connect().ok());
  REQUIRE(client.ChannelBinding().ok());
  ::usleep(50'000);
  CHECK(client.Get("/").ok());
  CHECK(CodeOf(client.PostBound("/", "t", {})) == Code::kConflict);
}

TEST_CASE("only a read is repeated on a fresh connection, and only once") {
  // The first connection answers once and swallows the second request.
  const auto swallow = [](Peer& peer) {
    peer.SendReply(peer.ReadRequest());
    (void)peer.ReadRequest();
  };
  {
    ScriptedServer server({.certificate = &Certificate()}, {swallow, Echo});
    HttpsClient client = ClientOf(server);
    CHECK(client.Get("/1").ok());
    CHECK(client.Get("/2").ok());
    CHECK(server.connections() == 2);
  }
  {
    ScriptedServer server({.certificate = &Certificate()}, {swallow, Echo});
    HttpsClient client = ClientOf(server);
    CHECK(client.Post("/1", "t", {}).ok());
    CHECK(CodeOf(client.Post("/2", "t", {})) == Code::kUnavailable);
    CHECK(client.MayHaveBeenSent());
    CHECK(server.connections() == 1);
    CHECK(client.Post("/3", "t", {}).ok());
  }
  {
    ScriptedServer server({.certificate = &Certificate()}, {swallow, [](Peer& peer) { (void)peer.ReadRequest(); }});
    HttpsClient client = ClientOf(server);
    CHECK(client.Get("/1").ok());
    CHECK(CodeOf(client.Get("/2")) == Code::kUnavailable);
    CHECK(server.connections() == 2);
  }
}

TEST_CASE("bytes that nobody asked for end a kept connection before they can answer the next request") {
  const auto smuggle = [](Peer& peer) {
    peer.SendReply(peer.ReadRequest());
    peer.SendReply("forged");
    (void)peer.ReadRequest();
  };
  ScriptedServer server({.certificate = &Certificate()}, {smuggle, Echo});
  HttpsClient client = ClientOf(server);
  CHECK(client.Get("/1").ok());
  ::usleep(50'000);
  CHECK(Text(client.Get("/2")).starts_with("GET /2 "));
}

TEST_CASE("replies over their limits, cut or not HTTP are errors, and the next call starts afresh") {
  const std::string head = "HTTP/1.1 200 OK\r\n";
  const struct {
    std::string text;
    Code code;
  } cases[] = {
      {head + "Content-Length: 1001\r\n\r\n" + std::string(1001, 'x'), Code::kLimit},
      {head + "Content-Length: 99999999999999999999\r\n\r\n", Code::kMalformed},
      {head + "Transfer-Encoding: chunked\r\n\r\n3e9\r\n" + std::string(1001, 'x') + "\r\n0\r\n\r\n", Code::kLimit},
      {head + "X: " + std::string(20'000, 'x') + "\r\n\r\n", Code::kLimit},
      {head + "Content-Length: 10\r\n\r\nshort", Code::kUnavailable},
      {head + "Content-Len", Code::kUnavailable},
      {"", Code::kUnavailable},
      {"220 mail.example ESMTP\r\n\r\n", Code::kMalformed},
      {"HTTP/1.1 100 Continue\r\n\r\n", Code::kMalformed},
      {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", Code::kMalformed}};
  for (const auto& [text, code] : cases) {
    ScriptedServer server({.certificate = &Certificate()}, {Say(text), Echo});
    HttpsClient client = ClientOf(server, [](HttpsOptions& o) { o.reply_limit = 1000; });
    const auto reply = client.Post("/", "t", {});
    CHECK_MESSAGE(CodeOf(reply) == code, text.substr(0, 60) << " gave " << Text(reply));
    CHECK(client.MayHaveBeenSent());
    CHECK(client.Post("/", "t", {}).ok());
  }
}

TEST_CASE("a reply without a length must end with TLS's own end, not with a cut") {
  const std::string reply = "HTTP/1.1 200 OK\r\n\r\nup to the end";
  const auto proper = [&](Peer& peer) {
    (void)peer.ReadRequest();
    peer.Send(reply);
    SSL_shutdown(peer.ssl());
  };
  ScriptedServer cut({.certificate = &Certificate()}, {Say(reply)}), whole({.certificate = &Certificate()}, {proper});
  CHECK_FALSE(ClientOf(cut).Get("/").ok());
  CHECK(Text(ClientOf(whole).Get("/")) == "up to the end");
}

TEST_CASE("a server that does not answer, trickles or never finishes TLS meets the deadline") {
  const auto hold = [](Peer& peer) {
    (void)peer.ReadRequest();
    (void)peer.ReadRequest();
  };
  const auto trickle = [](Peer& peer) {
    (void)peer.ReadRequest();
    peer.Send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
    for (int i = 0; i < 40; ++i) {
      ::usleep(20'000);
      peer.Send("x");
    }
  };
  for (const Script& script : {Script(hold), Script(trickle)}) {
    ScriptedServer server({.certificate = &Certificate()}, {script});
    HttpsClient client = ClientOf(server, [](HttpsOptions& o) { o.request_timeout_ms = 200; });
    const auto begin = Clock::now();
    CHECK(CodeOf(client.Post("/", "t", {})) == Code::kTimeout);
    CHECK(client.MayHaveBeenSent());
    CHECK(Clock::now() - begin < kSoon);
  }
  ScriptedServer mute({}, {[](Peer& peer) { (void)peer.ReadRequest(); }});
  HttpsClient client = ClientOf(mute, [](HttpsOptions& o) { o.connect_timeout_ms = 200; });
  const auto begin = Clock::now();
  CHECK(CodeOf(client.Get("/")) == Code::kTimeout);
  CHECK_FALSE(client.MayHaveBeenSent());
  CHECK(Clock::now() - begin < kSoon);
}

TEST_CASE("a reset while a large body is written is an error and raises no signal") {
  const auto reset = [](Peer& peer) {
    ::usleep(20'000);
    peer.Reset();
  };
  ScriptedServer server({.certificate = &Certificate()}, {reset});
  HttpsClient client = ClientOf(server);
  const Buffer body(32U << 20, 'x');
  const auto reply = client.Post("/", "t", body);
  CHECK(CodeOf(reply) == Code::kUnavailable);
  CHECK(client.MayHaveBeenSent());
}

TEST_CASE("an early refusal is read although the body was not taken, and the connection is given up") {
  const auto refuse = [](Peer& peer) {
    peer.Send("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno");
    std::array<char, 65536> sink{};
    while (SSL_read(peer.ssl(), sink.data(), static_cast<int>(sink.size())) > 0) {}
  };
  ScriptedServer server({.certificate = &Certificate()}, {refuse, Echo});
  HttpsClient client = ClientOf(server);
  const auto reply = client.Post("/", "t", Buffer(8U << 20, 'x'));
  REQUIRE_MESSAGE(reply.ok(), Text(reply));
  CHECK(reply->status == 413);
  CHECK(client.Get("/").ok());
  CHECK(server.connections() == 2);
}

TEST_CASE("the time to wait that a busy server names is handed on") {
  const auto busy = Say("HTTP/1.1 503 Busy\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n");
  const auto dated =
      Say("HTTP/1.1 503 Busy\r\nRetry-After: Fri, 31 Dec 1999 23:59:59 GMT\r\nContent-Length: 0\r\n\r\n");
  ScriptedServer server({.certificate = &Certificate()}, {busy, dated});
  HttpsClient client = ClientOf(server);
  CHECK(client.Get("/").value().retry_after_s == 7);
  CHECK_FALSE(client.Get("/").value().retry_after_s.has_value());
}

TEST_CASE("nobody listening, and a name that does not resolve") {
  std::uint16_t port = 0;
  { port = ScriptedServer({}, {Close}).port(); }
  HttpsOptions options;
  options.host = "127.0.0.1";
  options.port = port;
  options.ca_file = Certificate().certificate;
  HttpsClient client = HttpsClient::Create(options).value();
  CHECK(CodeOf(client.Get("/")) == Code::kUnavailable);
  options.host = "no-such-host.invalid";
  options.connect_timeout_ms = 2'000;
  HttpsClient lost = HttpsClient::Create(options).value();
  const Code code = CodeOf(lost.Get("/"));
  CHECK((code == Code::kUnavailable || code == Code::kTimeout));
}

TEST_CASE("the local client speaks over a socket file, keeps the connection and renews a closed one") {
  const std::string path = Dir() / "op.sock";
  const auto once = [](Peer& peer) { peer.SendReply(peer.ReadRequest()); };
  ScriptedServer server({.certificate = nullptr, .client_ca = "", .highest_version = 0, .unix_path = path},
                        {once, Echo});
  UnixHttpClient client({path});
  CHECK(Text(client.Get("/a")) == "GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ::usleep(50'000);
  CHECK(Text(client.Post("/b", "application/json", AsBytes("{}"))).ends_with("\r\n\r\n{}"));
  CHECK(client.Get("/c").ok());
  CHECK(server.connections() == 2);
  HttpRequest bound;
  bound.bound = true;
  CHECK(CodeOf(client.Call(bound)) == Code::kUnsupported);
}

TEST_CASE("a socket path that is missing, too long or refused is told apart") {
  CHECK(CodeOf(UnixHttpClient({Dir() / "none.sock"}).Get("/")) == Code::kUnavailable);
  CHECK(CodeOf(UnixHttpClient({std::string(200, 'x')}).Get("/")) == Code::kConfig);
  CHECK(CodeOf(UnixHttpClient({""}).Get("/")) == Code::kConfig);
}

}  // namespace
}  // namespace assay::net
