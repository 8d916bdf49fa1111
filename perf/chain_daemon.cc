// SPDX-License-Identifier: Apache-2.0
#include "perf/chain_daemon.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <thread>

#include "perf/bench.h"
#include "sdk/config/files.h"

namespace assay::perf {
namespace {

constexpr std::string_view kListening = " port ";
constexpr std::string_view kBindingLabel = "EXPORTER-Channel-Binding";  // RFC 9266
constexpr auto kStartDeadline = std::chrono::seconds(20);
constexpr std::size_t kMaxLog = 1U << 20;

pid_t Spawn(std::array<std::string, 4> words, const std::string& log_file) {
  std::array<char*, 5> arguments{};
  for (std::size_t i = 0; i < words.size(); ++i) arguments[i] = words[i].data();
  const Fd log(::open(log_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  Expect(log.valid(), "the verifier's log cannot be made");
  const pid_t child = ::fork();
  Expect(child >= 0, "fork failed");
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::dup2(log.get(), 1) < 0 || ::dup2(log.get(), 2) < 0) ::_exit(126);
    ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }
  return child;
}

std::uint16_t PortIn(const std::string& log) {
  const std::size_t line = log.find("listening on");
  const std::size_t end = log.find('\n', line);
  if (line == std::string::npos || end == std::string::npos) return 0;
  const std::size_t at = log.rfind(kListening, end) + kListening.size();
  std::uint16_t port = 0;
  std::from_chars(log.data() + at, log.data() + end, port);
  return port;
}

}  // namespace

Daemon::Daemon(const Site& site) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "assay-verifier";
  const std::string log = site.path("verifier.log");
  pid_ = Spawn({program, "serve", "--config", site.path("verifier.toml")}, log);
  const auto deadline = std::chrono::steady_clock::now() + kStartDeadline;
  while (port_ == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const std::string text = config::ReadTextFile(log, kMaxLog).value();
    port_ = PortIn(text);
    if (port_ != 0) break;
    if (::waitpid(pid_, nullptr, WNOHANG) == pid_) {
      std::fprintf(stderr, "%s", text.c_str());
      pid_ = -1;
    }
    Expect(pid_ > 0 && std::chrono::steady_clock::now() < deadline, "the verifier does not listen");
  }
  Expect(::clock_getcpuclockid(pid_, &clock_) == 0, "the verifier's CPU time cannot be read");
}

Daemon::~Daemon() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGTERM);
  ::waitpid(pid_, nullptr, 0);
}

double Daemon::CpuNanoseconds() const { return Nanoseconds(clock_); }

Handle<SSL_CTX, SSL_CTX_free> TrustOnly(const std::string& ca_file) {
  Handle<SSL_CTX, SSL_CTX_free> context(SSL_CTX_new(TLS_client_method()));
  Expect(context != nullptr && SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION) == 1 &&
             SSL_CTX_load_verify_locations(context.get(), ca_file.c_str(), nullptr) == 1,
         "no TLS context");
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  return context;
}

Connection::Connection(std::uint16_t port, SSL_CTX* context) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int on = 1;
  const timeval patience{.tv_sec = 20, .tv_usec = 0};
  Expect(fd_.valid() && ::setsockopt(fd_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0 &&
             ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) == 0 &&
             ::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0,
         "the verifier cannot be reached");
  ssl_.reset(SSL_new(context));
  Expect(ssl_ != nullptr && SSL_set1_host(ssl_.get(), "localhost") == 1 && SSL_set_fd(ssl_.get(), fd_.get()) == 1 &&
             SSL_connect(ssl_.get()) == 1,
         "the TLS handshake failed");
  Expect(SSL_export_keying_material(ssl_.get(), channel_.data(), channel_.size(), kBindingLabel.data(),
                                    kBindingLabel.size(), nullptr, 0, 0) == 1,
         "no channel binding");
}

void Connection::Send(std::string_view path, Bytes body) {
  std::string message = "POST " + std::string(path) +
                        " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/cbor\r\nContent-Length: " +
                        std::to_string(body.size()) + "\r\n\r\n";
  message += AsText(body);
  Expect(SSL_write(ssl_.get(), message.data(), static_cast<int>(message.size())) == static_cast<int>(message.size()),
         "a request was not sent");
}

Buffer Connection::Receive() {
  constexpr std::string_view kLength = "Content-Length: ";
  std::string text = std::move(rest_);
  std::size_t whole = std::string::npos;
  std::size_t head = std::string::npos;
  while (whole == std::string::npos || text.size() < whole) {
    std::array<char, 8192> part;
    const int got = SSL_read(ssl_.get(), part.data(), static_cast<int>(part.size()));
    Expect(got > 0, "a reply did not come");
    text.append(part.data(), static_cast<std::size_t>(got));
    if (head == std::string::npos && (head = text.find("\r\n\r\n")) != std::string::npos) {
      std::size_t length = 0;
      const std::size_t at = text.find(kLength);
      Expect(
          at < head && std::from_chars(text.data() + at + kLength.size(), text.data() + head, length).ec == std::errc(),
          "a reply without a length");
      whole = head + 4 + length;
    }
  }
  if (!text.starts_with("HTTP/1.1 200 ")) std::fprintf(stderr, "%s\n", text.substr(0, 600).c_str());
  Expect(text.starts_with("HTTP/1.1 200 "), "the verifier refused");
  rest_ = text.substr(whole);
  return ToBuffer(AsBytes(std::string_view(text).substr(head + 4, whole - head - 4)));
}

}  // namespace assay::perf
