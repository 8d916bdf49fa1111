// SPDX-License-Identifier: Apache-2.0
#include "verifier/server/audit_records.h"

#include <doctest/doctest.h>

#include "sdk/core/crypto.h"
#include "sdk/core/json.h"

namespace assay::server {
namespace {

AttestRecord Sample() {
  return {.outcome = "judged",
          .host = Sha256(AsBytes("h")),
          .attester = Sha256(AsBytes("a")),
          .generation = 3,
          .clock = {.clock = 1234, .reset_count = 5, .restart_count = 6, .safe = true},
          .challenge_age_ms = 7,
          .policy = {},
          .at_ms = 9};
}

TEST_CASE("every record is one line of JSON") {
  const std::vector<Reason> reasons = {{"pcr_value", Tier::kWarning, "d", "f"}};
  TokenRequest request;
  request.audience = "a\"b\\c";
  request.match = "line\nbreak";
  AttestRecord record = Sample();
  record.reasons = &reasons;
  record.request = &request;
  for (const std::string& line : {EncodeRecord(record), EncodeRecord(SystemRecord{"start", "quote \" and \n", 1}),
                                  EncodeRecord(enrollment::EnrollmentRecord{}, std::nullopt, 1)}) {
    CHECK(line.find('\n') == std::string::npos);
    JsonParser parser(1U << 16);
    CHECK(parser.Parse(line).ok());
  }
}

TEST_CASE("a fence mark reads back what a judged record and a renewal wrote, and nothing else counts") {
  FenceMark mark;
  CHECK(ReadFenceMark(EncodeRecord(Sample()), mark).value() == MarkKind::kFence);
  CHECK(mark.host == Sha256(AsBytes("h")));
  CHECK(mark.generation == 3);
  CHECK(mark.clock.clock == 1234);
  CHECK(mark.clock.reset_count == 5);
  CHECK(mark.clock.restart_count == 6);
  CHECK(mark.clock.safe);
  AttestRecord refused = Sample();
  refused.outcome = "replay";
  CHECK(ReadFenceMark(EncodeRecord(refused), mark).value() == MarkKind::kNone);
  enrollment::EnrollmentRecord enrolled;
  CHECK(ReadFenceMark(EncodeRecord(enrolled, std::nullopt, 1), mark).value() == MarkKind::kNone);
  enrolled.action = enrollment::EnrollmentRecord::Action::kRenew;
  enrolled.previous_generation = 4;
  CHECK(ReadFenceMark(EncodeRecord(enrolled, Sample().clock, 1), mark).value() == MarkKind::kFence);
  CHECK(mark.generation == 4);
  CHECK_FALSE(ReadFenceMark(EncodeRecord(enrolled, std::nullopt, 1), mark).ok());
}

TEST_CASE("text of a client cannot pose as a member of the record") {
  TokenRequest request;
  request.audience = "x\",\"clock\":1,\"reset\":0,\"host\":\"00";
  AttestRecord record = Sample();
  record.request = &request;
  FenceMark mark;
  CHECK(ReadFenceMark(EncodeRecord(record), mark).value() == MarkKind::kFence);
  CHECK(mark.clock.clock == 1234);
  CHECK(mark.host == Sha256(AsBytes("h")));
}

}  // namespace
}  // namespace assay::server
