// SPDX-License-Identifier: Apache-2.0
// The running software TPM. Manufacturing is in swtpm_setup.cc.
#include "tests/support/swtpm.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "sdk/core/handle.h"
#include "tests/support/tpm_commands.h"

namespace assay::test {
namespace {

namespace fs = std::filesystem;
constexpr auto kStartDeadline = std::chrono::seconds(20);
constexpr int kAnswerDeadlineMs = 60'000;
constexpr std::size_t kMaxAnswer = 4096;

Error Failure(std::string what) { return MakeError(Code::kIo, std::move(what), static_cast<std::uint32_t>(errno)); }

Result<Fd> ConnectTo(const fs::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string text = path.string();
  if (text.size() >= sizeof(address.sun_path)) return MakeError(Code::kLimit, "the socket's path is too long: " + text);
  text.copy(address.sun_path, text.size());
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return Failure("socket");
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return Failure("connecting to " + text);
  return fd;
}

// Between fork and exec: only calls that are safe there.
[[noreturn]] void Become(char* const* arguments, int log) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  execvp(arguments[0], arguments);
  _exit(127);
}

Status CopyAll(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::remove_all(to, error);
  fs::copy(from, to, fs::copy_options::recursive, error);
  if (error) return MakeError(Code::kIo, "copying " + from.string() + ": " + error.message());
  return Ok();
}

}  // namespace

Result<std::unique_ptr<Swtpm>> Swtpm::Prepare() {
  ASSAY_TRY(const Manufacturer* manufacturer, ThisManufacturer());
  return std::unique_ptr<Swtpm>(new Swtpm(manufacturer));
}

Result<std::unique_ptr<Swtpm>> Swtpm::Make() {
  ASSAY_TRY(std::unique_ptr<Swtpm> tpm, Prepare());
  ASSAY_CHECK_OK(CopyAll(tpm->manufacturer_->state, tpm->state()));
  ASSAY_CHECK_OK(tpm->Start());
  return tpm;
}

Result<std::unique_ptr<Swtpm>> Swtpm::Fresh() {
  ASSAY_TRY(std::unique_ptr<Swtpm> tpm, Prepare());
  std::error_code error;
  if (!fs::create_directory(tpm->state(), error))
    return MakeError(Code::kIo, "creating " + tpm->state().string() + ": " + error.message());
  ASSAY_CHECK_OK(ManufactureInto(*tpm->manufacturer_, tpm->state()));
  ASSAY_CHECK_OK(tpm->Start());
  return tpm;
}

Swtpm::~Swtpm() {
  if (running()) (void)Kill().ok();  // on the way out: nothing is left to do about a failure
}

Status Swtpm::Start() {
  if (running()) return MakeError(Code::kConflict, "the software TPM runs already");
  const std::string state_option = "dir=" + state().string();
  const std::string server = "type=unixio,path=" + socket().string();
  const std::string control = "type=unixio,path=" + socket().string() + ".ctrl";
  std::array<std::string, 11> words = {"swtpm", "socket", "--tpm2", "--tpmstate", state_option,   "--server",
                                       server,  "--ctrl", control,  "--flags",    "startup-clear"};
  std::array<char*, words.size() + 1> arguments{};
  for (std::size_t i = 0; i < words.size(); ++i) arguments[i] = words[i].data();
  const Fd log(open((dir_ / "swtpm.log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!log.valid()) return Failure("opening the software TPM's log");
  for (const std::string suffix : {"", ".ctrl"}) unlink((socket().string() + suffix).c_str());  // left by a power cut
  const pid_t child = fork();
  if (child < 0) return Failure("fork");
  if (child == 0) Become(arguments.data(), log.get());
  pid_ = child;
  return AwaitSocket();
}

Status Swtpm::AwaitSocket() {
  const auto deadline = std::chrono::steady_clock::now() + kStartDeadline;
  while (std::chrono::steady_clock::now() < deadline) {
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = -1;
      return MakeError(Code::kUnavailable, "swtpm ended at once; is it installed? See scripts/install-deps");
    }
    if (ConnectTo(socket()).ok() && fs::exists(socket().string() + ".ctrl")) return Ok();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return MakeError(Code::kTimeout, "swtpm opened no socket");
}

Status Swtpm::Reap(int signal) {
  if (!running()) return MakeError(Code::kConflict, "the software TPM does not run");
  kill(pid_, signal);
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0) {
    if (errno != EINTR) return Failure("waiting for swtpm");
  }
  pid_ = -1;
  return Ok();
}

Status Swtpm::Stop() {
  ASSAY_CHECK_OK(TpmShutdown(*this));
  return Reap(SIGTERM);
}

Status Swtpm::Kill() { return Reap(SIGKILL); }

Status Swtpm::Restart() {
  ASSAY_CHECK_OK(Stop());
  return Start();
}

Result<fs::path> Swtpm::SaveState() {
  if (running()) return MakeError(Code::kConflict, "a running TPM's state is not whole on disk");
  fs::path saved = dir_ / ("saved-" + std::to_string(saved_++));
  ASSAY_CHECK_OK(CopyAll(state(), saved));
  return saved;
}

Status Swtpm::RestoreState(const fs::path& saved) {
  if (running()) return MakeError(Code::kConflict, "a running TPM's state can't be replaced");
  return CopyAll(saved, state());
}

Result<Buffer> Swtpm::Transmit(Bytes command) const {
  ASSAY_TRY(const Fd fd, ConnectTo(socket()));
  if (send(fd.get(), command.data(), command.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(command.size()))
    return Failure("sending a TPM command");
  Buffer answer;
  for (;;) {
    pollfd ready{.fd = fd.get(), .events = POLLIN, .revents = 0};
    if (poll(&ready, 1, kAnswerDeadlineMs) != 1) return MakeError(Code::kTimeout, "no answer to a TPM command");
    std::array<std::uint8_t, kMaxAnswer> part{};
    const ssize_t got = recv(fd.get(), part.data(), part.size(), 0);
    if (got <= 0) return Failure("reading a TPM's answer");
    answer.insert(answer.end(), part.begin(), part.begin() + got);
    Reader header(answer);
    header.Skip(2);
    const std::uint32_t size = header.U32Be();
    if (header.ok() && answer.size() >= size) return answer;
  }
}

}  // namespace assay::test
