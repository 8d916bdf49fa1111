// SPDX-License-Identifier: Apache-2.0
// Manufacturing software TPMs: swtpm_setup with a local CA whose keys never leave a temporary directory.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <mutex>
#include <vector>

#include "sdk/core/handle.h"
#include "tests/support/swtpm.h"

namespace assay::test {
namespace {

namespace fs = std::filesystem;

Status WriteText(const fs::path& path, const std::string& text) {
  std::ofstream out(path);
  out << text;
  out.close();
  if (!out) return MakeError(Code::kIo, "writing " + path.string());
  return Ok();
}

Result<std::string> ReadText(const fs::path& path) {
  std::ifstream in(path);
  if (!in) return MakeError(Code::kIo, "reading " + path.string());
  return std::string(std::istreambuf_iterator<char>(in), {});
}

Status RunTool(std::vector<std::string> words, const fs::path& log_path) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const Fd log(open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!log.valid()) return MakeError(Code::kIo, "opening " + log_path.string(), static_cast<std::uint32_t>(errno));
  const pid_t child = fork();
  if (child < 0) return MakeError(Code::kIo, "fork", static_cast<std::uint32_t>(errno));
  if (child == 0) {
    dup2(log.get(), STDOUT_FILENO);
    dup2(log.get(), STDERR_FILENO);
    execvp(arguments[0], arguments.data());
    _exit(127);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return Ok();
  Result<std::string> text = ReadText(log_path);
  return MakeError(Code::kUnavailable,
                   words[0] + " failed (scripts/install-deps names the packages): " + (text.ok() ? *text : ""));
}

Status WriteConfiguration(const fs::path& dir) {
  const std::string at = dir.string();
  ASSAY_CHECK_OK(WriteText(dir / "localca.conf", "statedir = " + at + "/ca\nsigningkey = " + at +
                                                     "/ca/signkey.pem\nissuercert = " + at +
                                                     "/ca/issuercert.pem\ncertserial = " + at + "/ca/certserial\n"));
  ASSAY_CHECK_OK(WriteText(dir / "localca.options",
                           "--platform-manufacturer Assay\n--platform-version 1.0\n--platform-model Test\n"));
  return WriteText(dir / "setup.conf", "create_certs_tool = /usr/bin/swtpm_localca\ncreate_certs_tool_config = " + at +
                                           "/localca.conf\ncreate_certs_tool_options = " + at +
                                           "/localca.options\nactive_pcr_banks = sha256\n");
}

struct Workshop {
  TempDir dir;
  Manufacturer manufacturer;
};

Result<std::unique_ptr<Workshop>> Open() {
  auto workshop = std::make_unique<Workshop>();
  const fs::path at = workshop->dir.path();
  Manufacturer& manufacturer = workshop->manufacturer;
  manufacturer.setup_conf = at / "setup.conf";
  manufacturer.state = at / "state";
  for (const fs::path& part : {at / "ca", manufacturer.state}) {
    std::error_code error;
    if (!fs::create_directory(part, error))
      return MakeError(Code::kIo, "creating " + part.string() + ": " + error.message());
  }
  ASSAY_CHECK_OK(WriteConfiguration(at));
  ASSAY_CHECK_OK(ManufactureInto(manufacturer, manufacturer.state));
  ASSAY_TRY(manufacturer.root_pem, ReadText(at / "ca" / "swtpm-localca-rootca-cert.pem"));
  ASSAY_TRY(manufacturer.issuer_pem, ReadText(at / "ca" / "issuercert.pem"));
  return workshop;
}

}  // namespace

Status ManufactureInto(const Manufacturer& manufacturer, const fs::path& state) {
  std::vector<std::string> words = {"swtpm_setup",
                                    "--tpm2",
                                    "--tpmstate",
                                    state.string(),
                                    "--create-ek-cert",
                                    "--config",
                                    manufacturer.setup_conf.string()};
  if (geteuid() == 0)
    words.insert(words.end(), {"--runas", "root"});  // else it becomes a user who can't enter our directory
  return RunTool(std::move(words), manufacturer.setup_conf.parent_path() / "setup.log");
}

Result<const Manufacturer*> ThisManufacturer() {
  static std::mutex mutex;
  static std::unique_ptr<Workshop> workshop;  // removed when the process ends
  const std::lock_guard lock(mutex);
  if (!workshop) { ASSAY_TRY(workshop, Open()); }
  return static_cast<const Manufacturer*>(&workshop->manufacturer);
}

}  // namespace assay::test
