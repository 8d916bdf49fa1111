// SPDX-License-Identifier: Apache-2.0
// A Store in memory with the same rules as the real ones, and a fault to switch on. For tests of what stands on a store.
#pragma once

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "verifier/store/store.h"

namespace assay::test {

class MemoryStore : public store::Store {
 public:
  std::map<Digest, store::HostRow> hosts;
  std::map<Digest, store::AikRow> aiks;
  std::map<Digest, store::ClockRow> clocks;
  std::vector<store::VerdictRow> verdicts;
  struct Token {
    std::int64_t expires_at = 0;
    bool used = false;
  };
  std::map<Digest, Token> tokens;
  std::vector<store::Revocation> revocations;
  std::optional<Error> fault;  // every call fails with it
  int writes = 0;              // calls that changed something
  int reads = 0;

  Result<std::optional<store::HostRow>> FindHost(const Digest& id) override {
    if (fault) return *fault;
    ++reads;
    const auto at = hosts.find(id);
    return at == hosts.end() ? std::optional<store::HostRow>() : at->second;
  }
  Result<std::optional<store::AikRow>> FindAik(const Digest& attester) override {
    if (fault) return *fault;
    ++reads;
    const auto at = aiks.find(attester);
    return at == aiks.end() ? std::optional<store::AikRow>() : at->second;
  }
  Result<std::vector<store::HostRow>> ListHosts(const std::optional<Digest>& after, std::size_t limit) override {
    if (fault) return *fault;
    ++reads;
    std::vector<store::HostRow> out;
    for (auto at = after ? hosts.upper_bound(*after) : hosts.begin(); at != hosts.end() && out.size() < limit; ++at)
      out.push_back(at->second);
    return out;
  }
  Result<std::uint64_t> PutEnrollment(const store::HostRow& host, const store::AikRow& aik,
                                      const std::optional<Digest>& token, std::int64_t now) override {
    if (fault) return *fault;
    const auto existing = aiks.find(aik.attester);
    if (existing != aiks.end() && existing->second.host_id != aik.host_id)
      return MakeError(Code::kConflict, "the AIK belongs to another host");
    if (token) {
      const auto at = tokens.find(*token);
      if (at == tokens.end() || at->second.used || at->second.expires_at <= now)
        return MakeError(Code::kDenied, "the enrollment token is unknown, used or expired");
      at->second.used = true;
    }
    ++writes;
    const auto known = hosts.find(host.host_id);
    const std::uint64_t old = known == hosts.end() ? 0 : known->second.generation;
    const bool renewal = existing != aiks.end() && existing->second.generation == old && old > 0;
    store::HostRow row = host;
    row.generation = renewal ? old : old + 1;
    hosts[row.host_id] = row;
    aiks[aik.attester] = aik;
    aiks[aik.attester].generation = row.generation;
    return row.generation;
  }
  Status SetResetAccepted(const Digest& id, bool accepted) override {
    return Change(id, [&](store::HostRow& row) { row.reset_accepted = accepted; });
  }
  Status ReplaceHost(const Digest& old_host, const Digest& new_host) override {
    return Change(old_host, [&](store::HostRow& row) {
      row.state = "replaced";
      row.replaced_by = new_host;
    });
  }
  Status ForgetHost(const Digest& id) override {
    if (fault) return *fault;
    if (hosts.erase(id) == 0) return MakeError(Code::kNotFound, "no such host");
    ++writes;
    std::erase_if(aiks, [&](const auto& item) { return item.second.host_id == id; });
    std::erase_if(verdicts, [&](const auto& row) { return row.host_id == id; });
    return Ok();
  }
  Status PutVerdicts(const std::vector<store::VerdictRow>& rows) override {
    if (fault) return *fault;
    ++writes;
    for (const auto& row : rows) {
      verdicts.push_back(row);
      clocks[row.host_id] = row.clock;
    }
    return Ok();
  }
  Result<std::vector<store::VerdictRow>> Verdicts(const Digest& id, std::size_t limit) override {
    if (fault) return *fault;
    ++reads;
    std::vector<store::VerdictRow> out;
    for (auto at = verdicts.rbegin(); at != verdicts.rend() && out.size() < limit; ++at) {
      if (at->host_id == id) out.push_back(*at);
    }
    return out;
  }
  Result<std::vector<store::ClockRow>> Clocks() override {
    if (fault) return *fault;
    std::vector<store::ClockRow> out;
    for (const auto& [id, row] : clocks) out.push_back(row);
    return out;
  }
  Status PutClocks(const std::vector<store::ClockRow>& rows) override {
    if (fault) return *fault;
    for (const auto& row : rows) clocks[row.host_id] = row;
    return Ok();
  }
  Result<std::uint64_t> AuditMark() override {
    if (fault) return *fault;
    std::uint64_t mark = 0;
    for (const auto& row : verdicts) mark = std::max(mark, row.audit_sequence);
    return mark;
  }
  Status CheckEnrollmentToken(const Digest& hash, std::int64_t now) override {
    if (fault) return *fault;
    const auto at = tokens.find(hash);
    if (at == tokens.end() || at->second.used || at->second.expires_at <= now)
      return MakeError(Code::kDenied, "the enrollment token is unknown, used or expired");
    return Ok();
  }
  Status AddEnrollmentToken(const Digest& hash, std::int64_t expires_at) override {
    if (fault) return *fault;
    ++writes;
    tokens[hash] = {expires_at, false};
    return Ok();
  }
  Status AddRevocation(const store::Revocation& revocation) override {
    if (fault) return *fault;
    ++writes;
    revocations.push_back(revocation);
    return Ok();
  }
  Result<std::vector<store::Revocation>> Revocations(std::int64_t now) override {
    if (fault) return *fault;
    std::vector<store::Revocation> out;
    for (const auto& item : revocations) {
      if (item.until > now) out.push_back(item);
    }
    return out;
  }

 private:
  template <typename F>
  Status Change(const Digest& id, F change) {
    if (fault) return *fault;
    const auto at = hosts.find(id);
    if (at == hosts.end()) return MakeError(Code::kNotFound, "no such host");
    ++writes;
    change(at->second);
    return Ok();
  }
};

}  // namespace assay::test
