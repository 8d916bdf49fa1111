// SPDX-License-Identifier: Apache-2.0
// A software TPM for a test: manufactured by swtpm_setup with endorsement certificates of a CA of this process, in a
// temporary directory, reached by an AF_UNIX socket. Everything it started and wrote is gone with the object.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <string>

#include "sdk/core/bytes.h"
#include "sdk/core/result.h"
#include "tests/support/temp_dir.h"

namespace assay::test {

// The CA that signs the endorsement certificates, made once a process.
struct Manufacturer {
  std::string root_pem;
  std::string issuer_pem;            // the intermediate
  std::filesystem::path setup_conf;  // for swtpm_setup --config
  std::filesystem::path state;       // of one manufactured TPM
};
Result<const Manufacturer*> ThisManufacturer();
// A TPM state of its own in `state`, which must exist: another seed, other endorsement keys.
Status ManufactureInto(const Manufacturer& manufacturer, const std::filesystem::path& state);

// One owner, one thread. The child dies with the thread that started it.
class Swtpm {
 public:
  static Result<std::unique_ptr<Swtpm>>
  Make();  // copies the process's one manufactured state: the same endorsement keys
  static Result<std::unique_ptr<Swtpm>> Fresh();  // manufactured for this call (about 0.7 s)
  ~Swtpm();
  Swtpm(const Swtpm&) = delete;
  Swtpm& operator=(const Swtpm&) = delete;

  std::string tcti() const { return "swtpm:path=" + socket().string(); }
  std::filesystem::path socket() const { return std::filesystem::path(dir_.path()) / "tpm.sock"; }
  const Manufacturer& manufacturer() const noexcept { return *manufacturer_; }
  bool running() const noexcept { return pid_ > 0; }

  Status Start();    // a boot: TPM2_Startup(CLEAR)
  Status Stop();     // an orderly shutdown: TPM2_Shutdown(CLEAR), then SIGTERM
  Status Kill();     // a power cut: SIGKILL
  Status Restart();  // Stop and Start

  // The stored state, while the TPM does not run. Saved copies live as long as this object.
  Result<std::filesystem::path> SaveState();
  Status RestoreState(const std::filesystem::path& saved);

  // One command and its answer, beside whatever else uses the TPM.
  Result<Buffer> Transmit(Bytes command) const;

 private:
  explicit Swtpm(const Manufacturer* manufacturer) : manufacturer_(manufacturer) {}
  static Result<std::unique_ptr<Swtpm>> Prepare();
  std::filesystem::path state() const { return std::filesystem::path(dir_.path()) / "state"; }
  Status AwaitSocket();
  Status Reap(int signal);

  TempDir dir_;
  const Manufacturer* manufacturer_;
  pid_t pid_ = -1;
  int saved_ = 0;
};

}  // namespace assay::test
