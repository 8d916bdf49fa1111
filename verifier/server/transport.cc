// SPDX-License-Identifier: Apache-2.0
#include "verifier/server/transport.h"

#include <grp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <condition_variable>
#include <thread>

#include "verifier/server/connection.h"
#include "verifier/server/router.h"
#include "verifier/server/tls_context.h"

namespace assay::server {
namespace {

namespace asio = boost::asio;
using Tcp = asio::ip::tcp;
using Local = asio::local::stream_protocol;
constexpr int kBacklog = 1024;
constexpr auto kAcceptPause = std::chrono::milliseconds(50);  // out of descriptors: do not spin

class Server final : public Transport {
 public:
  Server(TransportSettings settings, std::vector<Route> routes, asio::ssl::context tls)
      : shared_{.settings = std::move(settings), .router = Router(std::move(routes)), .tls = std::move(tls), .counts = {}, .sources = {}, .open = {}} {}
  ~Server() override { Stop(0); }

  Status Bind() {
    const unsigned wanted = shared_.settings.threads != 0 ? shared_.settings.threads : std::max(1U, std::thread::hardware_concurrency());
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
    shared_.open.Drain(std::chrono::milliseconds(drain_ms));
    guards_.clear();
    for (auto& loop : loops_) loop->stop();
    for (auto& thread : threads_) thread.join();
    threads_.clear();
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
      return MakeError(Code::kIo, "cannot listen on " + shared_.settings.address + " port " + std::to_string(shared_.settings.port) + ": " + failed.message(),
                       static_cast<std::uint32_t>(failed.value()));
    }
    port_ = acceptor_->local_endpoint(failed).port();
    return Ok();
  }

  Status BindOperator() {
    const std::string& path = shared_.settings.operator_socket;
    if (path.size() >= sizeof(sockaddr_un::sun_path)) return MakeError(Code::kConfig, path + ": a socket path has at most 107 bytes");
    struct stat info {};
    if (::lstat(path.c_str(), &info) == 0) {
      if (!S_ISSOCK(info.st_mode)) return MakeError(Code::kConfig, path + ": exists and is no socket");
      ::unlink(path.c_str());  // of a verifier that is gone: the state directory's lock keeps two from running
    }
    boost::system::error_code failed;
    operator_acceptor_ = std::make_unique<Local::acceptor>(*loops_.front());
    operator_acceptor_->open(Local(), failed);
    const mode_t before = ::umask(0117);  // 0660 from the first moment
    if (!failed) operator_acceptor_->bind(Local::endpoint(path), failed);
    ::umask(before);
    if (!failed) operator_acceptor_->listen(kBacklog, failed);
    if (failed) return MakeError(Code::kIo, path + ": cannot listen: " + failed.message(), static_cast<std::uint32_t>(failed.value()));
    if (!shared_.settings.operator_group.empty()) {
      const struct group* group = ::getgrnam(shared_.settings.operator_group.c_str());
      if (group == nullptr || ::chown(path.c_str(), static_cast<uid_t>(-1), group->gr_gid) != 0) {
        return MakeError(Code::kConfig, path + ": cannot be given to the group " + shared_.settings.operator_group);
      }
    }
    return Ok();
  }

  asio::io_context& NextLoop() { return *loops_[next_++ % loops_.size()]; }

  void AcceptNetwork() {
    asio::io_context& loop = NextLoop();
    acceptor_->async_accept(loop, [this](boost::system::error_code failed, Tcp::socket socket) {
      if (failed == asio::error::operation_aborted || !acceptor_->is_open()) return;
      if (failed) return Pause([this] { AcceptNetwork(); });
      StartNetworkConnection(shared_, std::move(socket));
      AcceptNetwork();
    });
  }

  void AcceptOperator() {
    asio::io_context& loop = NextLoop();
    operator_acceptor_->async_accept(loop, [this](boost::system::error_code failed, Local::socket socket) {
      if (failed == asio::error::operation_aborted || !operator_acceptor_->is_open()) return;
      if (failed) return Pause([this] { AcceptOperator(); });
      StartOperatorConnection(shared_, std::move(socket));
      AcceptOperator();
    });
  }

  void Pause(std::function<void()> then) {
    auto timer = std::make_shared<asio::steady_timer>(*loops_.front(), kAcceptPause);  // owned by its own handler
    timer->async_wait([timer, then = std::move(then)](boost::system::error_code failed) { if (!failed) then(); });
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

Result<std::unique_ptr<Transport>> Transport::Start(TransportSettings settings, std::vector<Route> routes) {
  ASSAY_TRY(asio::ssl::context tls, MakeTlsContext(settings.tls_certificate, settings.tls_key));
  auto server = std::make_unique<Server>(std::move(settings), std::move(routes), std::move(tls));
  ASSAY_CHECK_OK(server->Bind());
  return std::unique_ptr<Transport>(std::move(server));
}

}  // namespace assay::server
