// SPDX-License-Identifier: Apache-2.0
#include "agent/daemon.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>

#include <cerrno>
#include <future>

#include "agent/events/measured_log.h"
#include "agent/platform/platform_claims.h"
#include "agent/quoter/quoter.h"
#include "agent/quoter/tpm_queue.h"
#include "agent/server/relay_user.h"
#include "agent/server/server.h"
#include "agent/server/service.h"
#include "sdk/config/files.h"

namespace assay::agent {
namespace {

constexpr mode_t kStateMode = 0700;

Result<Fd> TakeSignals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&set, signal);
  if (::pthread_sigmask(SIG_BLOCK, &set, nullptr) != 0) return MakeError(Code::kInternal, "cannot block signals");
  Fd fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.valid()) return MakeError(Code::kIo, "cannot make a signalfd", static_cast<std::uint32_t>(errno));
  return fd;
}

struct Listener {
  Fd fd;
  bool ours = true;
};

// From systemd's socket unit when it passed one, else our own.
Result<Listener> MakeListener(const std::string& path) {
  if (::sd_listen_fds(1) == 1 && ::sd_is_socket_unix(SD_LISTEN_FDS_START, SOCK_STREAM, 1, nullptr, 0) > 0) {
    return Listener{Fd(SD_LISTEN_FDS_START), false};
  }
  ASSAY_TRY(Fd fd, ListenAt(path));
  return Listener{std::move(fd), true};
}

// A TPM behind a socket is not reset with this machine, so the kernel's boot id says nothing about it.
Digest BootIdFor(const config::AgentConfig& config) {
  return config.tcti.starts_with("device:") ? ReadBootId("") : Digest{};
}

class Daemon {
 public:
  explicit Daemon(DaemonParts parts) : parts_(std::move(parts)), relay_user_(parts_.config.relay_user) {}

  Status Run();

 private:
  Server::Options ServerOptions();
  Quoter::Parts QuoterParts(const AgentMeasurements& measurements);
  void OnSignal(int signal, Server& server, Service& service, Quoter& quoter, TpmQueue& queue);
  void Reload(Server& server, Service& service, Quoter& quoter, TpmQueue& queue);

  DaemonParts parts_;
  RelayUser relay_user_;
  std::vector<MeasuredLog> log_;  // none or one
};

Server::Options Daemon::ServerOptions() {
  Server::Options options;
  options.max_connections = parts_.config.max_connections;
  options.max_connections_per_user = parts_.config.max_connections_per_user;
  options.io_timeout_ms = parts_.config.io_timeout_ms;
  options.is_relay = [this](uid_t uid) { return relay_user_.Is(uid); };
  return options;
}

Quoter::Parts Daemon::QuoterParts(const AgentMeasurements& measurements) {
  Quoter::Parts parts;
  parts.device = parts_.device.get();
  parts.log = &log_.front();
  parts.gate = parts_.gate.get();
  parts.state_dir = parts_.config.state_dir;
  parts.firmware_log = parts_.config.firmware_log;
  parts.pcr = parts_.config.pcr;
  parts.measurements = measurements;
  return parts;
}

Status Daemon::Run() {
  ASSAY_TRY(const Fd signals, TakeSignals());
  ASSAY_CHECK_OK(config::MakeDirectory(parts_.config.state_dir, kStateMode));
  AgentMeasurements measurements;
  ASSAY_TRY(measurements.agent, DigestOfThisExecutable());
  measurements.bpf_object = parts_.gate->Facts().bpf_object;
  measurements.config = parts_.config.digest;
  // The socket first: it is also what keeps a second agent from the log and the register.
  ASSAY_TRY(Listener listener, MakeListener(parts_.config.socket));
  ASSAY_TRY(MeasuredLog log,
            MeasuredLog::Open({RuntimeLogPath(parts_.config.state_dir), parts_.config.pcr, BootIdFor(parts_.config)},
                              *parts_.device));
  log_.push_back(std::move(log));
  for (const LogFault fault : kLogFaults) {
    if (log_.front().HasFault(fault))
      parts_.log("warning: " + std::string(LogFaultText(fault)) + "; " + std::string(LogFaultFix(fault)));
  }
  ASSAY_CHECK_OK(log_.front().AppendIdentity(measurements));

  Inbox inbox;
  Server server(std::move(listener.fd), ServerOptions(), *parts_.gate, inbox);
  Quoter quoter(QuoterParts(measurements));
  TpmQueue queue;  // its thread ends before what it uses
  Service service({&server, &inbox, &queue, &quoter, parts_.device.get(), parts_.config});
  server.SetHandler(service);
  parts_.log("ready at " + parts_.config.socket + ", TPM " + parts_.config.tcti);
  (void)::sd_notify(0, "READY=1");
  const Status served =
      server.Run(signals.get(), [&](int signal) { OnSignal(signal, server, service, quoter, queue); });
  (void)::sd_notify(0, "STOPPING=1");
  queue.Stop();
  ASSAY_CHECK_OK(served);
  // A clean stop is an entry of its own: without one the next identity entry tells of a crash.
  ASSAY_CHECK_OK(quoter.AppendEntry(EntryKind::kStop));
  if (listener.ours) (void)::unlink(parts_.config.socket.c_str());
  return Ok();
}

void Daemon::OnSignal(int signal, Server& server, Service& service, Quoter& quoter, TpmQueue& queue) {
  if (signal != SIGHUP) {
    parts_.log("stopping");
    server.Stop();
    return;
  }
  Reload(server, service, quoter, queue);
}

// What may change under a running agent does; the rest is named and waits for a restart. The new configuration's
// digest goes into the log as an identity entry of its own.
void Daemon::Reload(Server& server, Service& service, Quoter& quoter, TpmQueue& queue) {
  auto loaded = config::LoadAgentConfig(parts_.config_path);
  if (!loaded.ok()) {
    parts_.log("the configuration was not read again, the old one stays: " + loaded.error().ToString());
    return;
  }
  config::AgentConfig next = std::move(loaded).value();
  const config::AgentConfig& now = parts_.config;
  if (next.tcti != now.tcti || next.pcr != now.pcr || next.socket != now.socket || next.state_dir != now.state_dir ||
      next.firmware_log != now.firmware_log) {
    parts_.log("[tpm], socket and state_dir changed in the file: restart the agent for them");
  }
  const bool changed = next.digest != now.digest;
  parts_.config.relay_user = next.relay_user;
  parts_.config.max_connections = next.max_connections;
  parts_.config.max_connections_per_user = next.max_connections_per_user;
  parts_.config.io_timeout_ms = next.io_timeout_ms;
  parts_.config.digest = next.digest;
  relay_user_ = RelayUser(next.relay_user);
  server.SetOptions(ServerOptions());
  service.SetBudgets(next);
  parts_.log("configuration read again");
  if (!changed) return;
  const Status queued = queue.Submit(Priority::kEvidence, [&quoter, digest = next.digest, log = parts_.log] {
    const Status appended = quoter.OnConfigChange(digest);
    if (!appended.ok()) log("cannot log the new configuration: " + appended.error().ToString());
  });
  if (!queued.ok()) parts_.log("cannot log the new configuration: " + queued.error().ToString());
}

}  // namespace

Status RunDaemon(DaemonParts parts) {
  Daemon daemon(std::move(parts));
  return daemon.Run();
}

}  // namespace assay::agent
