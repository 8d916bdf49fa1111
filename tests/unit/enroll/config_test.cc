// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <string>

#include "sdk/config/enroll_config.h"

namespace assay::config {
namespace {

TEST_CASE("a file says all that the options say") {
  const EnrollConfig config = ParseEnrollConfig(R"(
verifier = "https://v:8443"
ca = "/etc/assay/ca.pem"
tcti = "swtpm:path=/tmp/s"
state_dir = "/tmp/state"
aik = "ecdsa-p256"
aik_handle = "0x81010123"
ek = "p384-high"
ek_certificate = "/tmp/ek.pem"
intermediates = ["/tmp/a.pem", "/tmp/b.pem"]
token_file = "/tmp/token"
label = "box"
timeout = "5s"
)",
                                                "enroll.toml")
                                  .value();
  CHECK(config.aik == tpm::AikKind::kEccP256);
  CHECK(config.aik_handle == 0x81010123);
  CHECK(config.ek == tpm::EkKind::kEccP384High);
  CHECK(config.intermediates.size() == 2);
  CHECK(config.timeout_ms == 5000);
  CHECK(CheckEnrollConfig(config).ok());
}

TEST_CASE("unknown keys and values out of range are errors that name the key") {
  for (const char* line :
       {"verfier = \"https://v\"", "aik = \"rsa\"", "aik_handle = \"81010100\"", "aik_handle = \"0x82000000\"",
        "aik_handle = \"0x8101010z\"", "ek = \"rsa\"", "timeout = \"0s\"", "ek_without_certificate = 1"}) {
    const Result<EnrollConfig> config = ParseEnrollConfig(line, "enroll.toml");
    REQUIRE_FALSE(config.ok());
    CHECK(config.error().code == Code::kConfig);
    const std::string text = line;
    CHECK_MESSAGE(config.error().detail.find(text.substr(0, text.find(' '))) != std::string::npos,
                  config.error().detail);
  }
}

TEST_CASE("a verifier by https and its CA are needed, and a label has a limit") {
  EnrollConfig config;
  config.verifier = "https://v";
  config.ca = "ca.pem";
  CHECK(CheckEnrollConfig(config).ok());
  EnrollConfig bad = config;
  bad.verifier = "http://v";
  CHECK_FALSE(CheckEnrollConfig(bad).ok());
  bad = config;
  bad.ca.clear();
  CHECK_FALSE(CheckEnrollConfig(bad).ok());
  bad = config;
  bad.label = std::string(129, 'l');
  CHECK_FALSE(CheckEnrollConfig(bad).ok());
  bad = config;
  bad.ek_certificate = "a.pem";
  bad.ek_without_certificate = true;
  CHECK_FALSE(CheckEnrollConfig(bad).ok());
}

TEST_CASE("kinds of EK keep their names") {
  for (const auto kind : {tpm::EkKind::kRsa2048Low, tpm::EkKind::kRsa2048High, tpm::EkKind::kEccP256Low,
                          tpm::EkKind::kEccP256High, tpm::EkKind::kEccP384High}) {
    CHECK(EkKindFromName(EkKindName(kind)).value() == kind);
  }
}

}  // namespace
}  // namespace assay::config
