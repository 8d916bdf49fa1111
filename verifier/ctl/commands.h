// SPDX-License-Identifier: Apache-2.0
// What assayctl can do. Each command returns what it found as JSON for machines and as text for people.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "verifier/audit/verify.h"
#include "verifier/ctl/operator_client.h"

namespace assay::ctl {

struct Shown {
  Json json;
  std::string text;
  Exit exit = Exit::kDone;  // kCheckFailed: the command worked and what it looked at is not good
};

Outcome<Shown> HostsList(OperatorClient& client);
Outcome<Shown> HostsShow(OperatorClient& client, const std::string& host);
Outcome<Shown> HostsExplain(OperatorClient& client, const std::string& host, unsigned limit);
Outcome<Shown> HostsForget(OperatorClient& client, const std::string& host, const std::string& reason);
Outcome<Shown> HostsAcceptReset(OperatorClient& client, const std::string& host, const std::string& reason);
Outcome<Shown> HostsReplace(OperatorClient& client, const std::string& old_host, const std::string& new_host,
                            const std::string& reason);
Outcome<Shown> PolicyReload(OperatorClient& client, const std::string& reason);
Outcome<Shown> TokensCreate(OperatorClient& client, std::int64_t ttl_s, const std::string& reason);
Outcome<Shown> Revoke(OperatorClient& client, const std::string& kind, const std::string& value, std::int64_t ttl_s,
                      const std::string& reason);
Outcome<Shown> ShowStatus(OperatorClient& client);

// Offline, on files.
Outcome<Shown> PolicyCheck(const std::string& path);
struct AuditSource {
  std::string directory;
  std::string key_file;
};  // no key file: the one beside the trail
// Takes one line with its newline; false: it could not be written.
using Sink = std::function<bool(std::string_view)>;
// {"seq", "segment", "rec": the record's exact bytes} a line, as the trail is walked: any length in little memory.
Outcome<Shown> AuditExport(const AuditSource& source, const audit::RecordRange& range, const Sink& sink);
Outcome<Shown> AuditTail(const AuditSource& source, std::size_t count);  // the same lines, of the last `count` records
Outcome<Shown> AuditVerify(const std::string& directory, const std::string& key_file);

// "90s", "30m", "24h", "7d" as seconds. kMalformed.
Result<std::int64_t> SecondsFromText(std::string_view text);

std::string FailureText(const Failure& failure);
Json FailureJson(const Failure& failure);

}  // namespace assay::ctl
