// SPDX-License-Identifier: Apache-2.0
#include "verifier/server/transport.h"

#include <grp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <functional>
#include <memory>
#include <thread>

#include "sdk/core/handle.h"
#include "verifier/server/connection.h"
#include "verifier/server/router.h"
#include "verifier/server/tls_context.h"

namespace assay::server {
namespace {

namespace asio = boost::asio;
using Tcp = asio::ip::tcp;
using Local = asio::local::stream_protocol;
constexpr int kBacklog = 1024;
constexpr mode_t kOperatorMode = 0660;
constexpr rlim_t kOtherDescriptors = 256;
constexpr auto kAcceptPause = std::chrono::milliseconds(50);  // out of descriptors: do not spin

bool IsShortage(const boost::system::error_code& failed) {
  namespace errc = boost::system::errc;
  return failed == errc::too_many_files_open || failed == errc::too_many_files_open_in_system ||
         failed == errc::no_buffer_space || failed == errc::not_enough_memory;
}

// A socket that nobody answers is of a verifier that is gone.
Status ClearSocketPath(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    return MakeError(Code::kConfig,
                     path + ": a socket path has at most " + std::to_string(sizeof address.sun_path - 1) + " bytes");
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return Ok();
  if (!S_ISSOCK(info.st_mode)) return MakeError(Code::kConfig, path + ": exists and is no socket");
  path.copy(address.sun_path, path.size());
  const Fd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (probe.valid() && ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    return MakeError(Code::kConflict, path + ": another verifier answers there");
  }
  if (::unlink(path.c_str()) != 0)
    return MakeError(Code::kIo, path + ": cannot be replaced", static_cast<std::uint32_t>(errno));
  return Ok();
}

Result<gid_t> GroupOf(const std::string& name) {
  const struct group* found = ::getgrnam(name.c_str());
  if (found == nullptr) return MakeError(Code::kConfig, "operator_group: there is no group \"" + name + "\"");
  return found->gr_gid;
}

Status GiveSocketTo(const std::string& path, const std::string& group_name) {
  if (::chmod(path.c_str(), kOperatorMode) != 0)
    return MakeError(Code::kIo, path + ": its mode cannot be set", static_cast<std::uint32_t>(errno));
  if (group_name.empty()) return Ok();
  ASSAY_TRY(const gid_t group, GroupOf(group_name));
  if (::chown(path.c_str(), static_cast<uid_t>(-1), group) == 0) return Ok();
  return MakeError(Code::kConfig, path + ": cannot be given to the group " + group_name,
                   static_cast<std::uint32_t>(errno));
}

// Descriptors for all connections, and some for the rest of the program.
Status RaiseDescriptorLimit(const TransportSettings& settings) {
  const rlim_t wanted = settings.max_connections + settings.max_operator_connections + kOtherDescriptors;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return Ok();
  if (limit.rlim_max < wanted) {
    return MakeError(Code::kConfig, "limits.connections needs " + std::to_string(wanted) +
                                        " file descriptors, allowed are " + std::to_string(limit.rlim_max) +
                                        ": raise LimitNOFILE or lower the limit");
  }
  limit.rlim_cur = wanted;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0)
    return MakeError(Code::kIo, "the limit of file descriptors cannot be raised", static_cast<std::uint32_t>(errno));
  return Ok();
}

class Server final : public Transport {
 public:
  Server(TransportSettings settings, std::vector<Route> routes, BalancerList balancers, asio::ssl::context tls)
      : shared_{.settings = std::move(settings),
                .router = Router(std::move(routes)),
                .balancers = std::move(balancers),
                .tls = std::move(tls)} {}
  ~Server() override { Stop(0); }

  Status Bind() {
    const unsigned wanted =
        shared_.settings.threads != 0 ? shared_.settings.threads : std::max(1U, std::thread::hardware_concurrency());
    for (unsigned i = 0; i < wanted; ++i) loops_.push_back(std::make_unique<asio::io_context>(1));
    ASSAY_CHECK_OK(BindNetwork());
    if (!shared_.settings.operator_socket.empty()) ASSAY_CHECK_OK(BindOperator());
    for (auto& loop : loops_) {
      guards_.push_back(asio::make_work_guard(*loop));
      threads_.emplace_back([&loop = *loop] { loop.run(); });
    }
    AcceptNetwork();
    if (operator_acceptor_) AcceptOperator();
    return Ok();
  }

  std::uint16_t port() const override { return port_; }
  const TransportCounts& counts() const override { return shared_.counts; }

  void Stop(std::uint64_t drain_ms) override {
    if (threads_.empty()) return;
    asio::post(*loops_.front(), [this] {
      boost::system::error_code ignored;
      if (acceptor_) acceptor_->close(ignored);
      if (operator_acceptor_) operator_acceptor_->close(ignored);
    });
    shared_.handshakes.Trim(0);
    shared_.open.Drain(std::chrono::milliseconds(drain_ms));
    guards_.clear();
    for (auto& loop : loops_) loop->stop();
    for (auto& thread : threads_) thread.join();
    threads_.clear();
    acceptor_.reset();
    operator_acceptor_.reset();
    loops_.clear();  // with what was still opening
    if (!shared_.settings.operator_socket.empty()) ::unlink(shared_.settings.operator_socket.c_str());
  }

 private:
  Status BindNetwork() {
    boost::system::error_code failed;
    const auto address = asio::ip::make_address(shared_.settings.address, failed);
    if (failed) return MakeError(Code::kConfig, "listen_address \"" + shared_.settings.address + "\" is no IP address");
    acceptor_ = std::make_unique<Tcp::acceptor>(*loops_.front());
    const Tcp::endpoint endpoint(address, shared_.settings.port);
    acceptor_->open(endpoint.protocol(), failed);
    if (!failed) acceptor_->set_option(Tcp::acceptor::reuse_address(true), failed);
    if (!failed) acceptor_->bind(endpoint, failed);
    if (!failed) acceptor_->listen(kBacklog, failed);
    if (failed) {
      return MakeError(Code::kIo,
                       "cannot listen on " + shared_.settings.address + " port " +
                           std::to_string(shared_.settings.port) + ": " + failed.message(),
                       static_cast<std::uint32_t>(failed.value()));
    }
    port_ = acceptor_->local_endpoint(failed).port();
    return Ok();
  }

  Status BindOperator() {
    const std::string& path = shared_.settings.operator_socket;
    ASSAY_CHECK_OK(ClearSocketPath(path));
    boost::system::error_code failed;
    operator_acceptor_ = std::make_unique<Local::acceptor>(*loops_.front());
    operator_acceptor_->open(Local(), failed);
    // The file takes the descriptor's mode (less the umask), and nobody can connect before listen().
    if (!failed && ::fchmod(operator_acceptor_->native_handle(), kOperatorMode) != 0)
      failed.assign(errno, boost::system::system_category());
    if (!failed) operator_acceptor_->bind(Local::endpoint(path), failed);
    if (failed)
      return MakeError(Code::kIo, path + ": cannot be made: " + failed.message(),
                       static_cast<std::uint32_t>(failed.value()));
    ASSAY_CHECK_OK(GiveSocketTo(path, shared_.settings.operator_group));
    operator_acceptor_->listen(kBacklog, failed);
    if (failed)
      return MakeError(Code::kIo, path + ": cannot listen: " + failed.message(),
                       static_cast<std::uint32_t>(failed.value()));
    return Ok();
  }

  asio::io_context& NextLoop() { return *loops_[next_++ % loops_.size()]; }

  void AcceptNetwork() {
    asio::io_context& loop = NextLoop();
    acceptor_->async_accept(loop, [this](boost::system::error_code failed, Tcp::socket socket) {
      if (failed == asio::error::operation_aborted || !acceptor_->is_open()) return;
      if (failed && IsShortage(failed)) return Pause([this] { AcceptNetwork(); });
      if (!failed) StartNetworkConnection(shared_, std::move(socket));
      AcceptNetwork();
    });
  }

  void AcceptOperator() {
    asio::io_context& loop = NextLoop();
    operator_acceptor_->async_accept(loop, [this](boost::system::error_code failed, Local::socket socket) {
      if (failed == asio::error::operation_aborted || !operator_acceptor_->is_open()) return;
      if (failed && IsShortage(failed)) return Pause([this] { AcceptOperator(); });
      if (!failed) StartOperatorConnection(shared_, std::move(socket));
      AcceptOperator();
    });
  }

  void Pause(std::function<void()> then) {
    auto timer = std::make_shared<asio::steady_timer>(*loops_.front(), kAcceptPause);  // owned by its own handler
    timer->async_wait([timer, then = std::move(then)](boost::system::error_code failed) {
      if (!failed) then();
    });
  }

  ConnectionShared shared_;
  std::vector<std::unique_ptr<asio::io_context>> loops_;
  std::vector<asio::executor_work_guard<asio::io_context::executor_type>> guards_;
  std::unique_ptr<Tcp::acceptor> acceptor_;
  std::unique_ptr<Local::acceptor> operator_acceptor_;
  std::vector<std::thread> threads_;
  std::size_t next_ = 0;
  std::uint16_t port_ = 0;
};

}  // namespace

Status Transport::Check(const TransportSettings& settings) {
  ASSAY_CHECK_OK(MakeTlsContext(settings.tls_certificate, settings.tls_key));
  ASSAY_CHECK_OK(BalancerList::Parse(settings.balancers));
  if (!settings.operator_group.empty()) ASSAY_CHECK_OK(GroupOf(settings.operator_group));
  return Ok();
}

Result<std::unique_ptr<Transport>> Transport::Start(TransportSettings settings, std::vector<Route> routes) {
  ASSAY_TRY(asio::ssl::context tls, MakeTlsContext(settings.tls_certificate, settings.tls_key));
  ASSAY_TRY(BalancerList balancers, BalancerList::Parse(settings.balancers));
  ASSAY_CHECK_OK(RaiseDescriptorLimit(settings));
  auto server = std::make_unique<Server>(std::move(settings), std::move(routes), std::move(balancers), std::move(tls));
  ASSAY_CHECK_OK(server->Bind());
  return std::unique_ptr<Transport>(std::move(server));
}

void AddTransportMetrics(const Transport& transport, MetricsPage& page) {
  const TransportCounts& counts = transport.counts();
  const auto counter = [&](const char* name, const char* help, const char* labels, const Counter& value) {
    page.AddCounter(name, help, labels, [&value] { return static_cast<double>(value.value()); });
  };
  const auto gauge = [&](const char* name, const char* help, const Gauge& value) {
    page.AddGauge(name, help, "", [&value] { return static_cast<double>(value.value()); });
  };
  counter("assay_connections_accepted_total", "Connections accepted from the network", "", counts.accepted);
  constexpr char kRefused[] = "assay_connections_refused_total";
  constexpr char kRefusedHelp[] = "Connections refused or dropped, by the limit they met";
  counter(kRefused, kRefusedHelp, "{limit=\"connections\"}", counts.refused_limit);
  counter(kRefused, kRefusedHelp, "{limit=\"source\"}", counts.refused_source);
  counter(kRefused, kRefusedHelp, "{limit=\"handshakes\"}", counts.refused_handshakes);
  counter("assay_tls_handshake_failures_total", "TLS handshakes that failed or ran out of time", "",
          counts.handshake_failures);
  counter("assay_proxy_header_failures_total", "Balancer connections without a valid PROXY protocol v2 header", "",
          counts.proxy_failures);
  counter("assay_timeouts_total", "Handshakes, headers, bodies, handlers and writes that ran out of time", "",
          counts.timeouts);
  counter("assay_http_requests_total", "Requests whose header was read", "", counts.requests);
  counter("assay_http_bad_requests_total", "Requests that were no HTTP/1.1 or had too long a header", "",
          counts.bad_requests);
  counter("assay_http_bodies_refused_total", "Requests refused because too many large bodies were under way", "",
          counts.refused_bodies);
  counter("assay_http_handler_failures_total", "Requests whose handler failed without an answer", "",
          counts.handler_failures);
  page.AddHistogram("assay_http_request_seconds", "From a request's first byte to the last of its reply", "",
                    counts.request_seconds);
  gauge("assay_connections", "Network connections open, handshakes among them", counts.connections);
  gauge("assay_tls_handshakes", "PROXY headers and TLS handshakes under way", counts.handshakes);
  gauge("assay_operator_connections", "Connections open on the operator socket", counts.operator_connections);
}

}  // namespace assay::server
