// SPDX-License-Identifier: Apache-2.0
// The local socket under clients that do not behave.
#include "agent/server/server.h"

#include <doctest/doctest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <chrono>
#include <fstream>

#include "sdk/core/limits.h"
#include "tests/unit/agent/server_fixture.h"

namespace assay::agent {
namespace {

using test::ServerFixture;
using test::ServerOptions;
using test::TextOf;

constexpr std::uint64_t kWait = 20'000;

void SendAll(const Fd& fd, Bytes bytes) {
  REQUIRE(::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
}

// What the server sent until it closed the connection.
Buffer ReadToEnd(const Fd& fd) {
  Buffer out;
  std::array<std::uint8_t, 4096> buffer;
  for (;;) {
    pollfd item{fd.get(), POLLIN, 0};
    REQUIRE(::poll(&item, 1, static_cast<int>(kWait)) == 1);
    const ssize_t size = ::recv(fd.get(), buffer.data(), buffer.size(), 0);
    if (size <= 0) return out;
    out.insert(out.end(), buffer.begin(), buffer.begin() + size);
  }
}

std::string CodeIn(const Buffer& frame) {
  REQUIRE(frame.size() > local::kFrameHead);
  return local::DecodeReply(Bytes(frame).subspan(local::kFrameHead)).value().error.code;
}

void CheckServes(ServerFixture& fixture) {
  const auto reply = fixture.Connect().Call(local::StatusRequest{}, kWait);
  REQUIRE(reply.ok());
  CHECK(reply->ok);
}

TEST_CASE("several requests go over one connection, in order") {
  ServerFixture fixture;
  local::Client client = fixture.Connect();
  for (int i = 0; i < 3; ++i) {
    CHECK(TextOf(client.Call(local::StatusRequest{}, kWait).value()).find("\"gate\"") != std::string::npos);
    CHECK(local::DecodeAttesterReply(client.Call(local::AttesterRequest{}, kWait).value().payload).value().attester ==
          fixture.quoter.aik->SpkiDigest());
  }
}

TEST_CASE("a frame over the caller's limit is answered by its size and the connection is closed") {
  ServerFixture fixture;
  const Fd fd = fixture.RawConnect();
  Writer head;
  head.U32Le(limits::kLocalRequest + 1);
  SendAll(fd, head.buffer());
  CHECK(CodeIn(ReadToEnd(fd)) == CodeName(Code::kLimit));
  CheckServes(fixture);
}

TEST_CASE("a client's frames are held to a client's sizes") {
  ServerFixture fixture({.we_are_relay = false});
  const Fd fd = fixture.RawConnect();
  Writer head;
  head.U32Le(2000);
  SendAll(fd, head.buffer());
  CHECK(CodeIn(ReadToEnd(fd)) == CodeName(Code::kLimit));
}

TEST_CASE("bytes that are no request are answered and the connection is closed, whatever they are") {
  ServerFixture fixture;
  const Buffer good = local::EncodeRequest(test::EvidenceFor(0));
  for (std::size_t size = 1; size < good.size(); size += 7) {
    const Fd fd = fixture.RawConnect();
    SendAll(fd, local::Frame(Bytes(good).first(size)));
    CHECK(CodeIn(ReadToEnd(fd)) == CodeName(Code::kMalformed));
  }
  const Fd fd = fixture.RawConnect();
  SendAll(fd, Buffer{0, 0, 0, 0});
  CHECK(CodeIn(ReadToEnd(fd)) == CodeName(Code::kMalformed));
  CheckServes(fixture);
}

TEST_CASE("what is the relay's is refused to others, and the connection stays") {
  ServerFixture fixture({.we_are_relay = false});
  local::Client client = fixture.Connect();
  for (const local::Request& request :
       {local::Request(local::WaitWorkRequest{10}), local::Request(test::EvidenceFor(0)),
        local::Request(test::Delivery(0, test::Verdict(Tier::kAffirming))), local::Request(local::AttesterRequest{})}) {
    const local::Reply reply = client.Call(request, kWait).value();
    CHECK_FALSE(reply.ok);
    CHECK(reply.error.code == CodeName(Code::kDenied));
  }
  CHECK(client.Call(local::StatusRequest{}, kWait).value().ok);
}

TEST_CASE("a client that sends half a frame and stalls is closed, and blocks nobody meanwhile") {
  ServerFixture fixture({.io_timeout_ms = 300});
  const Fd stalled = fixture.RawConnect();
  SendAll(stalled, Buffer{20, 0, 0, 0, 1, 2});
  CheckServes(fixture);
  const auto start = std::chrono::steady_clock::now();
  CHECK(ReadToEnd(stalled).empty());
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(10));
  CheckServes(fixture);
}

TEST_CASE("a client that does not read its replies is closed, and blocks nobody meanwhile") {
  ServerFixture fixture({.io_timeout_ms = 300});
  const Fd deaf = fixture.RawConnect();
  const int small = 1;
  REQUIRE(::setsockopt(deaf.get(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small) == 0);
  const Buffer request = local::Frame(local::EncodeRequest(local::StatusRequest{}));
  // More requests than the socket's buffers hold replies of: the server stops reading, then gives up.
  bool closed = false;
  for (int i = 0; i < 100'000 && !closed; ++i) {
    pollfd item{deaf.get(), POLLOUT, 0};
    if (::poll(&item, 1, 2000) != 1) break;
    closed = ::send(deaf.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0;
  }
  CheckServes(fixture);
  if (!closed) {
    pollfd item{deaf.get(), 0, 0};
    for (int i = 0; i < 100 && (item.revents & POLLHUP) == 0; ++i) ::poll(&item, 1, 100);
    closed = (item.revents & POLLHUP) != 0;
  }
  CHECK(closed);
}

TEST_CASE("one user's connections are bounded, and a closed one makes room") {
  ServerFixture fixture({.max_connections_per_user = 3});
  std::vector<Fd> held;
  for (int i = 0; i < 2; ++i) held.push_back(fixture.RawConnect());
  CheckServes(fixture);
  held.push_back(fixture.RawConnect());
  // The server accepts in order, so an answer on a later connection would come after these were counted.
  const Fd over = fixture.RawConnect();
  CHECK(ReadToEnd(over).empty());
  held.clear();
  bool served = false;
  for (int i = 0; i < 100 && !served; ++i) {
    auto client = local::Client::Connect(fixture.path());
    served = client.ok() && client->Call(local::StatusRequest{}, kWait).ok();
  }
  CHECK(served);
}

TEST_CASE("a client that leaves in the middle of its request costs nothing") {
  ServerFixture fixture;
  for (int i = 0; i < 20; ++i) {
    const Fd fd = fixture.RawConnect();
    SendAll(fd, local::Frame(local::EncodeRequest(test::EvidenceFor(0))));
  }
  CheckServes(fixture);
}

TEST_CASE("a stale socket is replaced, a live one and a plain file are not") {
  const assay::test::TempDir dir;
  const std::string path = dir / "run/agent.sock";
  { const Fd gone = ListenAt(path).value(); }
  const auto second = ListenAt(path);
  REQUIRE(second.ok());
  CHECK(ListenAt(path).error().code == Code::kConflict);
  struct stat info {};
  REQUIRE(::stat(path.c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0666);
  std::ofstream(dir / "file") << "x";
  CHECK(ListenAt(dir / "file").error().code == Code::kConflict);
}

}  // namespace
}  // namespace assay::agent
