// SPDX-License-Identifier: Apache-2.0
#include "agent/server/request_table.h"

#include <doctest/doctest.h>

#include "sdk/core/limits.h"

namespace assay::agent {
namespace {

using local::Kind;

Caller CallerAs(uid_t uid, bool relay) {
  Caller caller;
  caller.uid = uid;
  caller.relay = relay;
  return caller;
}

bool May(Kind kind, const Caller& caller) { return IsPermitted(*FindRow(kind), caller); }

TEST_CASE("every kind of request has exactly one row, and no other kind has one") {
  for (std::uint8_t kind = 1; kind <= static_cast<std::uint8_t>(Kind::kDoctor); ++kind) {
    REQUIRE(FindRow(static_cast<Kind>(kind)) != nullptr);
    CHECK(FindRow(static_cast<Kind>(kind))->kind == static_cast<Kind>(kind));
  }
  CHECK(FindRow(static_cast<Kind>(0)) == nullptr);
  CHECK(FindRow(static_cast<Kind>(static_cast<std::uint8_t>(Kind::kDoctor) + 1)) == nullptr);
}

TEST_CASE("a client may ask for tokens and status, and for nothing of the relay's or root's") {
  const Caller client = CallerAs(1000, false);
  for (const Kind kind : {Kind::kStatus, Kind::kResultToken, Kind::kHostToken}) CHECK(May(kind, client));
  for (const Kind kind :
       {Kind::kWaitWork, Kind::kEvidence, Kind::kDeliver, Kind::kAttester, Kind::kShowEvidence, Kind::kDoctor}) {
    CHECK_FALSE(May(kind, client));
  }
}

TEST_CASE("the relay may not do what is root's, and root is not the relay") {
  const Caller relay = CallerAs(998, true);
  const Caller root = CallerAs(0, false);
  for (const Kind kind : {Kind::kWaitWork, Kind::kEvidence, Kind::kDeliver, Kind::kAttester}) {
    CHECK(May(kind, relay));
    CHECK_FALSE(May(kind, root));
  }
  for (const Kind kind : {Kind::kShowEvidence, Kind::kDoctor}) {
    CHECK_FALSE(May(kind, relay));
    CHECK(May(kind, root));
  }
}

TEST_CASE("only the relay may send large frames, and every request that quotes is budgeted") {
  CHECK(FrameLimit(CallerAs(1000, false)) <= 1024);
  CHECK(FrameLimit(CallerAs(0, false)) <= 1024);
  CHECK(FrameLimit(CallerAs(998, true)) == limits::kLocalRequest);
  for (const Kind kind : {Kind::kEvidence, Kind::kResultToken, Kind::kHostToken, Kind::kShowEvidence})
    CHECK(FindRow(kind)->quotes);
}

TEST_CASE("each row has room for its largest request, and not for much more") {
  local::EvidenceRequest evidence;
  evidence.challenge.nonce = Buffer(limits::kChallenge, 1);
  evidence.challenge.lifetime_ms = evidence.challenge.runtime_from = evidence.work = UINT64_MAX;
  evidence.challenge.firmware_from = limits::kFirmwareLog;
  evidence.challenge.selection = {tpm::Alg::kSha256, (1U << limits::kPcrs) - 1};
  evidence.channel_binding = Buffer(32, 1);
  const std::string audience(limits::kAudience, 'a');
  const local::Request largest[] = {
      local::StatusRequest{},
      local::WaitWorkRequest{UINT64_MAX},
      evidence,
      local::ResultTokenRequest{audience, std::string(limits::kMatch, 'm'), {}, {}, UINT64_MAX},
      local::HostTokenRequest{audience, true, UINT64_MAX, {}, {}},
      local::ShowEvidenceRequest{},
      local::AttesterRequest{},
      local::DoctorRequest{},
      local::DeliverRequest{UINT64_MAX, std::string(limits::kShortText, 's'), Buffer(limits::kLocalDelivery), {}}};
  for (const local::Request& request : largest) {
    const std::size_t size = local::EncodeRequest(request).size();
    CHECK(local::DecodeRequest(local::EncodeRequest(request)).ok());
    CHECK(size <= FindRow(local::KindOf(request))->max_size);
    CHECK(FindRow(local::KindOf(request))->max_size <= size + 4096);
  }
}

}  // namespace
}  // namespace assay::agent
