// SPDX-License-Identifier: Apache-2.0
#include "verifier/server/proxy_protocol.h"

#include <doctest/doctest.h>

#include "tests/unit/server/server_rig.h"

namespace assay::server {
namespace {

constexpr std::string_view kSignature("\r\n\r\n\0\r\nQUIT\n", 12);
const Buffer kV4 = {203, 0, 113, 9, 10, 0, 0, 1, 0x12, 0x34, 0x20, 0xFB};

Buffer Header(std::uint8_t command, std::uint8_t family, const Buffer& body) {
  Writer out;
  out.Put(AsBytes(kSignature));
  out.U8(command);
  out.U8(family);
  out.U16Be(static_cast<std::uint16_t>(body.size()));
  out.Put(body);
  return std::move(out).Take();
}

Buffer With(Buffer body, const Buffer& tail) {
  body.insert(body.end(), tail.begin(), tail.end());
  return body;
}

Result<std::string> Source(const Buffer& header) {
  if (header.size() < kProxyFixed) return MakeError(Code::kMalformed, "short");
  return ProxySource(Bytes(header).first(kProxyFixed), Bytes(header).subspan(kProxyFixed));
}

TEST_CASE("the client's address is read for IPv4, IPv6 and not for LOCAL") {
  CHECK(Source(Header(0x21, 0x11, kV4)).value() == "203.0.113.9");
  Buffer v6(36, 0);
  v6[0] = 0x20;
  v6[1] = 0x01;
  v6[15] = 0x07;
  CHECK(Source(Header(0x21, 0x21, v6)).value() == "2001::7");
  CHECK(Source(Header(0x20, 0x00, {})).value().empty());
  CHECK(Source(Header(0x20, 0x11, kV4)).value().empty());
}

TEST_CASE("TLVs are walked to the end, and a checksum must hold") {
  CHECK(Source(Header(0x21, 0x11, With(kV4, {0x04, 0, 2, 0, 0}))).ok());
  CHECK_FALSE(Source(Header(0x21, 0x11, With(kV4, {0x04, 0, 3, 0, 0}))).ok());
  CHECK_FALSE(Source(Header(0x21, 0x11, With(kV4, {0x04}))).ok());
  // Its last four bytes were computed by another program, which gives 0xE3069283 for "123456789".
  const Buffer fixed = Header(0x21, 0x11, With(kV4, {0x03, 0, 4, 0x85, 0xD5, 0xAE, 0x4B}));
  CHECK(Source(fixed).ok());
  constexpr std::size_t kTypeAt = kProxyFixed + 12;  // changed, the TLV is no checksum any more
  for (std::size_t i = kProxyFixed; i < fixed.size(); ++i) {
    if (i == kTypeAt) continue;
    Buffer broken = fixed;
    broken[i] ^= 1;
    CHECK_FALSE_MESSAGE(Source(broken).ok(), i);
  }
  CHECK_FALSE(Source(Header(0x21, 0x11, With(kV4, {0x03, 0, 2, 0, 0}))).ok());
}

TEST_CASE("each field of the fixed part is checked, and every cut refused") {
  const Buffer good = Header(0x21, 0x11, kV4);
  for (std::size_t size = 0; size < good.size(); ++size)
    CHECK_FALSE(Source(Buffer(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size))).ok());
  CHECK_FALSE(Source(With(good, {0})).ok());
  for (std::size_t i = 0; i < kProxyFixed; ++i) {
    Buffer broken = good;
    broken[i] ^= 0x80;
    CHECK_FALSE_MESSAGE(Source(broken).ok(), i);
  }
  for (const int command : {0x00, 0x01, 0x11, 0x22, 0x2F, 0x31})
    CHECK_FALSE(Source(Header(static_cast<std::uint8_t>(command), 0x11, kV4)).ok());
  for (const int family : {0x00, 0x12, 0x22, 0x31, 0x32, 0x01})
    CHECK(Source(Header(0x21, static_cast<std::uint8_t>(family), Buffer(216, 0))).error().code == Code::kUnsupported);
  CHECK_FALSE(Source(Header(0x21, 0x21, kV4)).ok());
  CHECK(Source(Header(0x21, 0x11, Buffer(kProxyMaxBody + 1, 0))).error().code == Code::kLimit);
}

// Sends `header` and then speaks TLS; what /who says, or nothing.
std::string WhoThrough(const Rig& rig, const Buffer& header) {
  Fd fd = rig.Dial();
  SendRaw(fd, header);
  RawTls tls(std::move(fd));
  if (!tls.connected()) return {};
  tls.Send("GET /who HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  const std::string reply = tls.ReadAll();
  const std::size_t body = reply.find("\r\n\r\n");
  return body == std::string::npos ? std::string() : reply.substr(body + 4, reply.find('|', body) - body - 4);
}

TEST_CASE("a balancer's header sets the source, a broken or missing one ends the connection") {
  for (const std::string balancer : {"127.0.0.1", "127.0.0.0/8", "::ffff:127.0.0.1"}) {
    Rig rig([&](TransportSettings& settings) { settings.balancers = {"10.9.9.9", balancer}; });
    CHECK(WhoThrough(rig, Header(0x21, 0x11, kV4)) == "203.0.113.9");
    CHECK(WhoThrough(rig, Header(0x20, 0x00, {})) == "127.0.0.1");
    Buffer mapped(36, 0);
    mapped[10] = mapped[11] = 0xFF;
    mapped[12] = 198;
    CHECK(WhoThrough(rig, Header(0x21, 0x21, mapped)) == "198.0.0.0");
    CHECK(rig.transport->counts().proxy_failures.value() == 0);
    CHECK(WhoThrough(rig, Header(0x21, 0x12, kV4)).empty());
    CHECK(WhoThrough(rig, Header(0x31, 0x11, kV4)).empty());
    CHECK(WhoThrough(rig, {}).empty());
    CHECK(Eventually([&] { return rig.transport->counts().proxy_failures.value() == 3; }));
  }
}

TEST_CASE("whoever is no balancer cannot name a source") {
  Rig rig([](TransportSettings& settings) { settings.balancers = {"10.9.9.9", "128.0.0.0/1"}; });
  CHECK(WhoThrough(rig, Header(0x21, 0x11, kV4)).empty());
  CHECK(Eventually([&] { return rig.transport->counts().handshake_failures.value() == 1; }));
  CHECK(WhoThrough(rig, {}) == "127.0.0.1");
}

TEST_CASE("version 1 of the protocol is not spoken, and a slow header is cut") {
  Rig rig([](TransportSettings& settings) {
    settings.balancers = {"127.0.0.1"};
    settings.handshake_timeout_ms = 200;
  });
  CHECK(WhoThrough(rig, ToBuffer(AsBytes("PROXY TCP4 203.0.113.9 10.0.0.1 4660 8443\r\n"))).empty());
  const Fd fd = rig.Dial();
  SendRaw(fd, AsBytes(kSignature));
  CHECK(ClosedWithin(fd, std::chrono::seconds(3)));
}

TEST_CASE("limits by source count the clients behind a balancer apart") {
  Rig rig([](TransportSettings& settings) {
    settings.balancers = {"127.0.0.1"};
    settings.max_connections_per_source = 1;
  });
  const auto open = [&](std::uint8_t last) {
    Buffer v4 = kV4;
    v4[3] = last;
    Fd fd = rig.Dial();
    SendRaw(fd, Header(0x21, 0x11, v4));
    return RawTls(std::move(fd));
  };
  const RawTls one = open(1), two = open(2);
  CHECK(one.connected());
  CHECK(two.connected());
  CHECK_FALSE(open(1).connected());
}

}  // namespace
}  // namespace assay::server
