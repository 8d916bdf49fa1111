// SPDX-License-Identifier: Apache-2.0
#include "verifier/server/transport.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "tests/unit/server/server_rig.h"

namespace assay::server {
namespace {

using net::HttpReply;

std::string Text(const HttpReply& reply) { return std::string(AsText(reply.body)); }

TEST_CASE("requests go back and forth over one kept connection") {
  Rig rig;
  auto client = rig.Client();
  for (int i = 0; i < 3; ++i) {
    CHECK(Text(client.Get("/hello").value()) == "hello");
    CHECK(Text(client.Post("/echo", "text/plain", AsBytes("some text")).value()) == "some text");
  }
  CHECK(rig.transport->counts().accepted.value() == 1);
  CHECK(rig.transport->counts().requests.value() == 6);
}

TEST_CASE("the channel binding is the same at both ends, and another for each connection") {
  Rig rig;
  auto client = rig.Client();
  CHECK(client.ChannelBinding().error().code == Code::kUnavailable);
  REQUIRE(client.Connect().ok());
  const Digest first = client.ChannelBinding().value();
  CHECK(Text(client.Get("/who").value()).find("|" + ToHex(first) + "|") != std::string::npos);
  client.Close();
  REQUIRE(client.Connect().ok());
  const Digest second = client.ChannelBinding().value();
  CHECK(first != second);
  CHECK(Text(client.Get("/who").value()) == "127.0.0.1|" + ToHex(second) + "|0|");
}

TEST_CASE("a path without a route, a wrong method and a body over the route's limit are refused by name") {
  Rig rig;
  auto client = rig.Client();
  CHECK(client.Get("/none").value().status == 404);
  CHECK(client.Get("/hello/").value().status == 404);
  CHECK(rig.transport->counts().accepted.value() == 1);  // nothing was left unread, so the connection went on
  CHECK(client.Post("/hello", "text/plain", {}).value().status == 405);
  CHECK(client.Post("/echo", "text/plain", Buffer(1000, 'x')).value().status == 200);
  CHECK(client.Post("/echo", "text/plain", Buffer(1001, 'x')).value().status == 413);
  CHECK(Text(client.Post("/large", "text/plain", Buffer(4U << 20, 'x')).value()) == std::to_string(4U << 20));
  const HttpReply refused = client.Post("/large", "application/cbor", Buffer((4U << 20) + 1, 'x')).value();
  CHECK(refused.status == 413);
  CHECK(refused.content_type == "application/cbor");
}

TEST_CASE("a body in chunks is cut at the route's limit though no length was told") {
  Rig rig;
  RawTls tls(rig.Dial());
  REQUIRE(tls.connected());
  tls.Send("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (int i = 0; i < 3; ++i) tls.Send("190\r\n" + std::string(400, 'x') + "\r\n");
  CHECK(tls.ReadAll().starts_with("HTTP/1.1 413"));
}

TEST_CASE("what is no HTTP/1.1, and a header over its limit, are refused") {
  Rig rig;
  {
    RawTls tls(rig.Dial());
    tls.Send("NONSENSE\r\n\r\n");
    CHECK(tls.ReadAll().starts_with("HTTP/1.1 400"));
  }
  {
    RawTls tls(rig.Dial());
    tls.Send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n");
    CHECK(tls.ReadAll().starts_with("HTTP/1.1 400"));
  }
  {
    RawTls tls(rig.Dial());
    tls.Send("GET /hello HTTP/1.1\r\nHost: a\r\nX: " + std::string(17U << 10, 'x'));
    CHECK(tls.ReadAll().starts_with("HTTP/1.1 431"));
  }
  CHECK(rig.transport->counts().bad_requests.value() == 3);
}

TEST_CASE("a slow header and a slow body are cut at their deadline, however they trickle") {
  Rig rig([](TransportSettings& settings) {
    settings.header_timeout_ms = 200;
    settings.body_timeout_ms = 200;
  });
  std::uint64_t cuts = 0;
  for (const std::string start :
       {"GET /hello HTTP/1.1\r\nX-Slow: ", "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 900\r\n\r\n"}) {
    ++cuts;
    RawTls tls(rig.Dial());
    const auto begin = std::chrono::steady_clock::now();
    tls.Send(start);
    std::atomic<bool> cut{false};
    std::thread trickle([&] {
      while (!cut) {
        ::usleep(20'000);
        tls.Send("x");
      }
    });
    // Reading and writing one SSL on two threads is not allowed: let the trickle run into the cut first.
    CHECK(Eventually([&] { return rig.transport->counts().timeouts.value() == cuts; }));
    cut = true;
    trickle.join();
    CHECK(tls.ReadAll().empty());
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(3));
  }
  CHECK(rig.transport->counts().timeouts.value() == 2);
  CHECK(rig.Client().Get("/hello").value().status == 200);
}

TEST_CASE("an idle connection is closed after its time and the client renews it silently") {
  Rig rig([](TransportSettings& settings) { settings.idle_timeout_ms = 100; });
  auto client = rig.Client();
  CHECK(client.Get("/hello").value().status == 200);
  REQUIRE(Eventually([&] { return rig.transport->counts().connections.value() == 0; }));
  CHECK(client.Post("/echo", "text/plain", AsBytes("x")).value().status == 200);
  CHECK(rig.transport->counts().accepted.value() == 2);
}

TEST_CASE("two hundred half-open handshakes do not keep others out, and end at their deadline") {
  Rig rig([](TransportSettings& settings) { settings.handshake_timeout_ms = 1'000; });
  std::vector<Fd> held;
  for (int i = 0; i < 200; ++i) held.push_back(rig.Dial());
  REQUIRE(Eventually([&] { return rig.transport->counts().handshakes.value() == 200; }));
  auto client = rig.Client();
  CHECK(client.Get("/hello").value().status == 200);
  CHECK(Eventually([&] { return rig.transport->counts().handshakes.value() == 0; }));
  CHECK(rig.transport->counts().connections.value() == 1);
  for (const Fd& fd : held) CHECK(ClosedWithin(fd, std::chrono::seconds(2)));
}

TEST_CASE("a full table of handshakes drops the oldest and takes the newest") {
  Rig rig([](TransportSettings& settings) {
    settings.max_handshakes = 10;
    settings.handshake_timeout_ms = 60'000;
  });
  std::vector<Fd> held;
  for (int i = 0; i < 30; ++i) held.push_back(rig.Dial());
  CHECK(ClosedWithin(held.front(), std::chrono::seconds(5)));
  CHECK(rig.Client().Get("/hello").value().status == 200);
  CHECK(Eventually([&] { return rig.transport->counts().handshakes.value() <= 10; }));
  CHECK(rig.transport->counts().refused_handshakes.value() >= 20);
}

TEST_CASE("connections are bounded in all and by source, and a place that was left can be taken") {
  Rig rig([](TransportSettings& settings) { settings.max_connections_per_source = 2; });
  auto one = rig.Client(), two = rig.Client(), three = rig.Client();
  CHECK(one.Connect().ok());
  CHECK(two.Connect().ok());
  CHECK_FALSE(three.Connect().ok());
  CHECK(rig.transport->counts().refused_source.value() == 1);
  one.Close();
  CHECK(Eventually([&] { return three.Connect().ok(); }));

  Rig small([](TransportSettings& settings) { settings.max_connections = 1; });
  auto first = small.Client(), second = small.Client();
  CHECK(first.Connect().ok());
  CHECK_FALSE(second.Connect().ok());
  CHECK(small.transport->counts().refused_limit.value() == 1);
}

TEST_CASE("large bodies under way are bounded by source, small ones go on") {
  Rig rig([](TransportSettings& settings) { settings.max_large_bodies_per_source = 1; });
  RawTls holder(rig.Dial());
  holder.Send("POST /large HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\nxxx");
  REQUIRE(Eventually([&] { return rig.transport->counts().requests.value() == 1; }));
  auto client = rig.Client();
  const Buffer large(100'000, 'x');
  const HttpReply busy = client.Post("/large", "text/plain", large).value();
  CHECK(busy.status == 503);
  CHECK(busy.retry_after_s.has_value());
  CHECK(client.Post("/large", "text/plain", Buffer(60'000, 'x')).value().status == 200);
}

TEST_CASE("a handler that answers late, twice, never, or by an exception") {
  std::vector<Responder> kept;
  std::mutex mutex;
  const auto keep = [&](Request, Responder respond) {
    const std::lock_guard lock(mutex);
    kept.push_back(std::move(respond));
  };
  const auto twice = [](Request, Responder respond) {
    respond(TextResponse("one"));
    respond(TextResponse("two"));
  };
  const auto fail = [](Request, Responder) { throw std::runtime_error("broken"); };
  Rig rig([](TransportSettings& settings) { settings.handler_timeout_ms = 150; },
          {{"GET", "/late", Listener::kNetwork, 100, keep},
           {"GET", "/twice", Listener::kNetwork, 100, twice},
           {"GET", "/fail", Listener::kNetwork, 100, fail}});
  auto client = rig.Client();
  CHECK(client.Get("/late").value().status == 503);
  kept.at(0)(TextResponse("too late"));
  CHECK(Text(client.Get("/twice").value()) == "one");
  CHECK(Text(client.Get("/hello").value()) == "hello");
  CHECK(client.Get("/fail").value().status == 500);
  CHECK(rig.transport->counts().handler_failures.value() == 1);
  CHECK(rig.transport->counts().accepted.value() == 1);
}

TEST_CASE("a drain finishes what is under way, closes what is idle, and takes nothing new") {
  std::atomic<bool> working{false}, go{false};
  std::thread worker;
  const auto slow = [&](Request, Responder respond) {
    worker = std::thread([&, respond = std::move(respond)] {
      working = true;
      while (!go) ::usleep(1'000);
      respond(TextResponse("finished"));
    });
  };
  Rig rig({}, {{"GET", "/slow", Listener::kNetwork, 100, slow}});
  auto idle = rig.Client();
  CHECK(idle.Get("/hello").value().status == 200);
  std::string answer;
  bool kept = true;
  std::thread caller([&] {
    auto client = rig.Client();
    answer = Text(client.Get("/slow").value());
    ::usleep(50'000);
    kept = client.Get("/hello").ok();
  });
  REQUIRE(Eventually([&] { return working.load(); }));
  std::thread stopper([&] { rig.transport->Stop(5'000); });
  CHECK(Eventually([&] { return rig.transport->counts().connections.value() == 1; }));
  auto late = rig.Client();
  CHECK_FALSE(late.Connect().ok());
  go = true;
  stopper.join();
  caller.join();
  worker.join();
  CHECK(answer == "finished");
  CHECK_FALSE(kept);
  CHECK(rig.transport->counts().connections.value() == 0);
}

TEST_CASE("a drain out of patience cuts, and responders kept beyond the transport do nothing") {
  std::vector<Responder> kept;
  const auto keep = [&](Request, Responder respond) { kept.push_back(std::move(respond)); };
  auto rig = std::make_unique<Rig>(std::function<void(TransportSettings&)>(),
                                   std::vector<Route>{{"GET", "/keep", Listener::kNetwork, 100, keep}});
  auto client = rig->Client();
  std::thread caller([&] { CHECK_FALSE(client.Get("/keep").ok()); });
  REQUIRE(Eventually([&] { return rig->transport->counts().requests.value() == 1; }));
  const auto begin = std::chrono::steady_clock::now();
  rig->transport->Stop(100);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(2));
  caller.join();
  REQUIRE(kept.size() == 1);
  rig.reset();
  kept[0](TextResponse("into the void"));
}

TEST_CASE("the operator socket has mode 0660 and tells who is at the other end") {
  std::string path;
  Rig rig([&](TransportSettings& settings) { settings.operator_socket = path = settings.tls_key + ".sock"; });
  struct stat info {};
  REQUIRE(::stat(path.c_str(), &info) == 0);
  CHECK((info.st_mode & 07777) == 0660);
  net::UnixHttpClient client({path});
  const std::string who = Text(client.Get("/who").value());
  CHECK(who.starts_with("local|none|" + std::to_string(::getuid()) + "|"));
  CHECK(who.find(std::to_string(::getgid()) + ",") != std::string::npos);
  CHECK(client.Post("/echo", "application/json", Buffer(1001, 'x')).value().status == 413);
  CHECK(Text(client.Post("/large", "application/json", Buffer(1U << 20, 'x')).value()) == std::to_string(1U << 20));
  rig.transport->Stop(1'000);
  CHECK(::stat(path.c_str(), &info) != 0);
}

TEST_CASE("an operator socket in use is not taken over, a dead one is replaced, a file is kept") {
  std::string path;
  Rig rig([&](TransportSettings& settings) { settings.operator_socket = path = settings.tls_key + ".sock"; });
  TransportSettings second = rig.settings;
  CHECK(Transport::Start(second, {}).error().code == Code::kConflict);
  CHECK(net::UnixHttpClient({path}).Get("/hello").value().status == 200);
  second.operator_socket = rig.files.certificate;
  CHECK(Transport::Start(second, {}).error().code == Code::kConfig);
}

TEST_CASE("a transport says what it cannot start with") {
  Rig rig;
  const auto problem = [&](auto change) {
    TransportSettings settings = rig.settings;
    change(settings);
    const auto started = Transport::Start(settings, {});
    return started.ok() ? std::string() : started.error().detail;
  };
  CHECK(problem([](auto& s) { s.address = "localhost"; }).find("no IP address") != std::string::npos);
  CHECK(problem([&](auto& s) { s.port = rig.transport->port(); }).find("cannot listen") != std::string::npos);
  CHECK(problem([](auto& s) { s.tls_certificate = "/none.pem"; }).find("/none.pem") != std::string::npos);
  CHECK(problem([&](auto& s) { s.tls_key = rig.files.certificate; }) != "");
  CHECK(problem([](auto& s) { s.balancers = {"lb1"}; }).find("lb1") != std::string::npos);
  CHECK(problem([](auto& s) { s.operator_socket = "/" + std::string(200, 'x'); }).find("107") != std::string::npos);
  const auto other = test::MakeCertificate(rig.dir, "other", "DNS:localhost");
  CHECK(problem([&](auto& s) { s.tls_key = other.key; }) != "");
  const auto p384 = test::MakeCertificate(rig.dir, "p384", "DNS:localhost", "P-384");
  CHECK(problem([&](auto& s) {
          s.tls_certificate = p384.certificate;
          s.tls_key = p384.key;
        }).find("P-256") != std::string::npos);
}

TEST_CASE("a check without binding refuses the certificates, balancers and groups that a start refuses") {
  Rig rig;
  const auto problem = [&](auto change) {
    TransportSettings settings = rig.settings;
    change(settings);
    const Status checked = Transport::Check(settings);
    return checked.ok() ? std::string() : checked.error().detail;
  };
  CHECK(problem([](auto&) {}) == "");
  CHECK(problem([](auto& s) { s.tls_certificate = "/none.pem"; }).find("/none.pem") != std::string::npos);
  const auto other = test::MakeCertificate(rig.dir, "other", "DNS:localhost");
  CHECK(problem([&](auto& s) { s.tls_key = other.key; }).find(other.key) != std::string::npos);
  CHECK(problem([](auto& s) { s.balancers = {"lb1"}; }).find("lb1") != std::string::npos);
  CHECK(problem([](auto& s) { s.operator_group = "no-such-group"; }).find("no-such-group") != std::string::npos);
}

TEST_CASE("TLS 1.2 is refused") {
  Rig rig;
  const Fd fd = rig.Dial();
  const Handle<SSL_CTX, SSL_CTX_free> context(SSL_CTX_new(TLS_client_method()));
  SSL_CTX_set_max_proto_version(context.get(), TLS1_2_VERSION);
  const Handle<SSL, SSL_free> ssl(SSL_new(context.get()));
  SSL_set_fd(ssl.get(), fd.get());
  CHECK(SSL_connect(ssl.get()) != 1);
  CHECK(Eventually([&] { return rig.transport->counts().handshake_failures.value() == 1; }));
}

}  // namespace
}  // namespace assay::server
