// SPDX-License-Identifier: Apache-2.0
#include "sdk/include/assay/client.h"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <thread>

#include "sdk/tools/fake_agent.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/sdk/scene.h"

namespace assay::test {
namespace {

using Client = Handle<assay_client, assay_client_close>;
constexpr std::uint32_t kDeadlineMs = 5000;

Client Open(const std::string& path) {
  assay_client* handle = nullptr;
  if (assay_client_open(path.c_str(), &handle) != ASSAY_OK) std::abort();
  return Client(handle);
}

// The test-mode agent in a thread of its own.
struct Running {
  TempDir dir;
  std::string path = dir / "agent.sock";
  std::atomic<bool> stop{false};
  Scene scene;
  std::thread thread;
  Running() {
    Fd listener = tools::ListenUnix(path).value();
    auto copy =
        tools::SoftAttester::Make({PrivateKey::FromPem(AsText(scene.attester.keys().signer.Pem().view())).value(),
                                   PrivateKey::FromPem(AsText(scene.attester.keys().aik.Pem().view())).value()})
            .value();
    thread = std::thread([this, listener = std::move(listener), attester = std::move(copy)]() mutable {
      const tools::FakeAgent agent(std::move(attester), {.issuer = "https://verifier.example"});
      if (!agent.Serve(listener, stop).ok()) std::abort();
    });
  }
  ~Running() {
    stop = true;
    thread.join();
  }
};

std::int64_t NowMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

assay_result_request RequestOf(const Scene& scene) {
  return {.struct_size = sizeof(assay_result_request),
          .audience = "title.example",
          .match = "match-1",
          .server_nonce = scene.request.server_nonce.data(),
          .session_key_hash = scene.request.session_key_hash.data()};
}

// A peer that answers one connection as it is told.
struct Peer {
  TempDir dir;
  std::string path = dir / "peer.sock";
  std::thread thread;
  explicit Peer(std::function<void(int)> serve) {
    Fd listener = tools::ListenUnix(path).value();
    thread = std::thread([listener = std::move(listener), serve = std::move(serve)] {
      const Fd fd(::accept(listener.get(), nullptr, nullptr));
      serve(fd.get());
    });
  }
  ~Peer() { thread.join(); }
};

void ReadRequest(int fd) {
  std::array<std::uint8_t, 4096> data;
  if (::recv(fd, data.data(), data.size(), 0) < 0) std::abort();
}

void Send(int fd, Bytes data) {
  if (::send(fd, data.data(), data.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(data.size())) std::abort();
}

Buffer Frame(Bytes body) {
  Writer out;
  out.U32Le(static_cast<std::uint32_t>(body.size()));
  out.Put(body);
  return std::move(out).Take();
}

TEST_CASE("tokens that the client brings are those that the server accepts") {
  Running running;
  const Client client = Open(running.path);
  Scene& scene = running.scene;
  std::string token(ASSAY_MAX_TOKEN + 1, '\0');
  std::size_t size = token.size();
  const assay_result_request request = RequestOf(scene);
  scene.options.nonce_issued_at_ms = NowMs();
  REQUIRE(assay_client_result_token(client.get(), &request, token.data(), &size, kDeadlineMs, nullptr) == ASSAY_OK);
  CHECK(token[size] == '\0');
  scene.options.now_ms = NowMs();
  REQUIRE(scene.Verify(token.substr(0, size)) == ASSAY_OK);
  assay_attester* handle = nullptr;
  REQUIRE(assay_result_prepare_host_tokens(&scene.result, &handle) == ASSAY_OK);
  const Attester attester(handle);
  const assay_host_request host{.struct_size = sizeof(host),
                                .audience = "title.example",
                                .server_nonce = scene.host_request.server_nonce.data(),
                                .session_key_hash = scene.request.session_key_hash.data(),
                                .heartbeat = 0,
                                .sequence = 0};
  std::array<std::uint8_t, ASSAY_MAX_TOKEN> bytes;
  size = bytes.size();
  scene.host_options.nonce_issued_at_ms = NowMs();
  REQUIRE(assay_client_host_token(client.get(), &host, bytes.data(), &size, kDeadlineMs, nullptr) == ASSAY_OK);
  scene.host_options.now_ms = NowMs() + 1;
  CHECK(assay_verify_host_token(attester.get(), bytes.data(), size, &scene.host_options, nullptr) == ASSAY_OK);
}

TEST_CASE("a buffer that is too small gets the size it needs and nothing else") {
  Running running;
  const Client client = Open(running.path);
  std::array<char, 256> json{};
  std::size_t size = json.size();
  REQUIRE(assay_client_status(client.get(), json.data(), &size, kDeadlineMs, nullptr) == ASSAY_OK);
  const std::string text = json.data();
  CHECK(text.size() == size);
  CHECK(text.find("\"mode\":\"test\"") != std::string::npos);
  for (std::size_t room = 0; room <= text.size(); ++room) {
    json.fill('x');
    size = room;
    CHECK(assay_client_status(client.get(), json.data(), &size, kDeadlineMs, nullptr) == ASSAY_E_BUFFER);
    CHECK(size == text.size() + 1);
    CHECK(json[0] == 'x');
  }
  size = text.size() + 1;
  CHECK(assay_client_status(client.get(), json.data(), &size, kDeadlineMs, nullptr) == ASSAY_OK);
}

TEST_CASE("one client serves many threads at once") {
  Running running;
  const Client client = Open(running.path);
  std::atomic<int> faults{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 10; ++i) {
        const assay_result_request request = RequestOf(running.scene);
        std::array<char, ASSAY_MAX_TOKEN + 1> token;
        std::size_t size = token.size();
        if (assay_client_result_token(client.get(), &request, token.data(), &size, kDeadlineMs, nullptr) != ASSAY_OK)
          ++faults;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(faults == 0);
}

TEST_CASE("nobody, a stranger, silence and a slow peer have their own codes") {
  std::array<char, 64> json{};
  std::size_t size = json.size();
  const TempDir dir;
  const Client nobody = Open(dir / "none.sock");
  CHECK(assay_client_status(nobody.get(), json.data(), &size, kDeadlineMs, nullptr) == ASSAY_E_UNAVAILABLE);
  const auto ask = [&](std::function<void(int)> serve, std::uint32_t deadline_ms) {
    Peer peer(std::move(serve));
    const Client client = Open(peer.path);
    size = json.size();
    return assay_client_status(client.get(), json.data(), &size, deadline_ms, nullptr);
  };
  const local::Reply good{.ok = true, .payload = ToBuffer(AsBytes("{}")), .error = {}};
  const Buffer frame = Frame(local::EncodeReply(good));
  CHECK(ask(
            [&](int fd) {
              ReadRequest(fd);
              Send(fd, frame);
            },
            kDeadlineMs) == ASSAY_OK);
  CHECK(ask(
            [&](int fd) {
              ReadRequest(fd);
              for (const std::uint8_t byte : frame) Send(fd, Bytes(&byte, 1));
            },
            kDeadlineMs) == ASSAY_OK);
  for (std::size_t cut = 0; cut < frame.size(); ++cut) {
    CHECK(ask(
              [&](int fd) {
                ReadRequest(fd);
                Send(fd, Bytes(frame).first(cut));
              },
              kDeadlineMs) == ASSAY_E_PROTOCOL);
  }
  CHECK(ask(
            [&](int fd) {
              ReadRequest(fd);
              Send(fd, Frame(AsBytes("no CBOR")));
            },
            kDeadlineMs) == ASSAY_E_PROTOCOL);
  CHECK(ask(
            [&](int fd) {
              ReadRequest(fd);
              Send(fd, Frame({}));
            },
            kDeadlineMs) == ASSAY_E_PROTOCOL);
  CHECK(ask(
            [&](int fd) {
              ReadRequest(fd);
              Send(fd, Buffer(4, 0xFF));
            },
            kDeadlineMs) == ASSAY_E_PROTOCOL);
  const local::Reply zero{.ok = true, .payload = {0x41, 0x00, 0x42}, .error = {}};
  CHECK(ask(
            [&](int fd) {
              ReadRequest(fd);
              Send(fd, Frame(local::EncodeReply(zero)));
            },
            kDeadlineMs) == ASSAY_E_PROTOCOL);
  const auto begin = std::chrono::steady_clock::now();
  CHECK(ask(
            [&](int fd) {
              ReadRequest(fd);
              ReadRequest(fd);
            },
            150) == ASSAY_E_TIMEOUT);  // the second read ends when the client leaves
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(4));
  // a byte now and then does not stretch the deadline
  CHECK(ask(
            [&](int fd) {
              ReadRequest(fd);
              for (int i = 0; i < 4; ++i) {
                (void)::send(fd, frame.data() + i, 1, MSG_NOSIGNAL);
                std::this_thread::sleep_for(std::chrono::milliseconds(80));
              }
            },
            150) == ASSAY_E_TIMEOUT);
}

TEST_CASE("the agent's refusal reaches the game in words") {
  const local::Reply refusal{.ok = false,
                             .payload = {},
                             .error = {"audience_not_authorised", "No title lists this caller.", "Ask the studio."}};
  Peer peer([&](int fd) {
    ReadRequest(fd);
    Send(fd, Frame(local::EncodeReply(refusal)));
  });
  const Client client = Open(peer.path);
  const Scene scene;
  const assay_result_request request = RequestOf(scene);
  std::array<char, 64> token;
  std::size_t size = token.size();
  assay_error error;
  CHECK(assay_client_result_token(client.get(), &request, token.data(), &size, kDeadlineMs, &error) == ASSAY_E_REFUSED);
  CHECK(std::string(error.code) == "audience_not_authorised");
  CHECK(std::string(error.detail) == "No title lists this caller.");
  CHECK(std::string(error.fix) == "Ask the studio.");
}

TEST_CASE("requests that break a limit are refused before anything is sent") {
  const Client client = Open("/nonexistent/agent.sock");
  const Scene scene;
  std::array<char, 64> token;
  const auto with = [&](auto change) {
    assay_result_request request = RequestOf(scene);
    change(request);
    std::size_t size = token.size();
    return assay_client_result_token(client.get(), &request, token.data(), &size, kDeadlineMs, nullptr);
  };
  const std::string long_text(ASSAY_MAX_AUDIENCE + 1, 'a');
  CHECK(with([](assay_result_request&) {}) == ASSAY_E_UNAVAILABLE);
  CHECK(with([](assay_result_request& r) { r.struct_size = 3; }) == ASSAY_E_ARGUMENT);
  CHECK(with([](assay_result_request& r) { r.audience = nullptr; }) == ASSAY_E_ARGUMENT);
  CHECK(with([](assay_result_request& r) { r.audience = ""; }) == ASSAY_E_ARGUMENT);
  CHECK(with([&](assay_result_request& r) { r.audience = long_text.c_str(); }) == ASSAY_E_ARGUMENT);
  CHECK(with([&](assay_result_request& r) { r.match = long_text.c_str(); }) == ASSAY_E_ARGUMENT);
  CHECK(with([](assay_result_request& r) { r.match = nullptr; }) == ASSAY_E_ARGUMENT);
  CHECK(with([](assay_result_request& r) { r.server_nonce = nullptr; }) == ASSAY_E_ARGUMENT);
  CHECK(with([](assay_result_request& r) { r.session_key_hash = nullptr; }) == ASSAY_E_ARGUMENT);
  std::size_t size = token.size();
  CHECK(assay_client_status(client.get(), token.data(), &size, 0, nullptr) == ASSAY_E_ARGUMENT);
  CHECK(assay_client_status(nullptr, token.data(), &size, 1, nullptr) == ASSAY_E_ARGUMENT);
  assay_client* handle = nullptr;
  CHECK(assay_client_open(std::string(108, 'a').c_str(), &handle) == ASSAY_E_ARGUMENT);
  CHECK(assay_client_open("", &handle) == ASSAY_E_ARGUMENT);
  CHECK(assay_client_open("a", nullptr) == ASSAY_E_ARGUMENT);
}

}  // namespace
}  // namespace assay::test
