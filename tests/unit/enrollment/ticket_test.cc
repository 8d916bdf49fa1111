// SPDX-License-Identifier: Apache-2.0
#include "verifier/enrollment/ticket.h"

#include <doctest/doctest.h>

#include "sdk/core/limits.h"

namespace assay::enrollment {
namespace {

constexpr std::int64_t kNowMs = 1'790'000'000'000;

TicketContent Sample() {
  TicketContent content;
  content.expires_ms = kNowMs + kTicketLifetimeMs;
  content.aik_public = Buffer(300, 7);
  content.ek_kind = tpm::EkKind::kRsa2048Low;
  content.ek_spki = Sha256(AsBytes("ek"));
  content.host_id = Sha256(AsBytes("host"));
  content.secret = Sha256(AsBytes("secret"));
  content.qualifying = Sha256(AsBytes("q"));
  content.canonical_name = Buffer(34, 3);
  content.label = "gamer-1";
  content.token = Sha256(AsBytes("token"));
  content.anchor = "CN=Root";
  return content;
}

TEST_CASE("a ticket opens to what was sealed, and each sealing differs") {
  const TicketSealer sealer;
  const TicketContent content = Sample();
  const Buffer ticket = sealer.Seal(content).value();
  CHECK(ticket != sealer.Seal(content).value());
  const OpenedTicket opened = sealer.Open(ticket, kNowMs);
  REQUIRE(opened.outcome == TicketOutcome::kOpened);
  CHECK(EncodeTicketContent(opened.content) == EncodeTicketContent(content));
  CHECK(opened.content.token == content.token);
  TicketContent open_enrollment = content;
  open_enrollment.token.reset();
  const OpenedTicket without = sealer.Open(sealer.Seal(open_enrollment).value(), kNowMs);
  REQUIRE(without.outcome == TicketOutcome::kOpened);
  CHECK_FALSE(without.content.token.has_value());
}

TEST_CASE("a ticket shows nothing of what it holds") {
  const Buffer ticket = TicketSealer().Seal(Sample()).value();
  CHECK(std::string(AsText(ticket)).find("gamer-1") == std::string::npos);
}

TEST_CASE("a ticket ends after a minute, at that instant") {
  const TicketSealer sealer;
  const Buffer ticket = sealer.Seal(Sample()).value();
  CHECK(sealer.Open(ticket, kNowMs + kTicketLifetimeMs - 1).outcome == TicketOutcome::kOpened);
  CHECK(sealer.Open(ticket, kNowMs + kTicketLifetimeMs).outcome == TicketOutcome::kExpired);
}

TEST_CASE("a ticket of another verifier is foreign, one with any changed bit is refused, every truncation too") {
  const TicketSealer sealer, other;
  const Buffer ticket = sealer.Seal(Sample()).value();
  CHECK(other.Open(ticket, kNowMs).outcome == TicketOutcome::kForeign);
  for (std::size_t i = 0; i < ticket.size(); ++i) {
    Buffer changed = ticket;
    changed[i] ^= 0x10;
    const TicketOutcome outcome = sealer.Open(changed, kNowMs).outcome;
    const TicketOutcome expected = i < 4    ? TicketOutcome::kMalformed
                                   : i < 12 ? TicketOutcome::kForeign
                                            : TicketOutcome::kTampered;
    CHECK_MESSAGE(outcome == expected, "byte " << i);
    CHECK(sealer.Open(Bytes(ticket).first(i), kNowMs).outcome != TicketOutcome::kOpened);
  }
  Buffer longer = ticket;
  longer.push_back(0);
  CHECK(sealer.Open(longer, kNowMs).outcome == TicketOutcome::kTampered);
  CHECK(sealer.Open(Buffer(limits::kTicket + 1, 0), kNowMs).outcome == TicketOutcome::kMalformed);
  CHECK(sealer.Open({}, kNowMs).outcome == TicketOutcome::kMalformed);
}

TEST_CASE("verifiers that share a key open each other's tickets") {
  Secret key(32);
  RandomBytes(key.fill());
  const TicketSealer one(Secret::CopyOf(key.view())), two(std::move(key));
  CHECK(two.Open(one.Seal(Sample()).value(), kNowMs).outcome == TicketOutcome::kOpened);
}

TEST_CASE("the largest content fits the limit, a larger one is an error and not a cut") {
  const TicketSealer sealer;
  TicketContent content = Sample();
  content.aik_public = Buffer(limits::kPublicArea, 1);
  content.label = std::string(limits::kShortText, 'l');
  content.anchor = std::string(limits::kShortText, 'a');
  const Buffer ticket = sealer.Seal(content).value();
  CHECK(ticket.size() <= limits::kTicket);
  CHECK(sealer.Open(ticket, kNowMs).outcome == TicketOutcome::kOpened);
  content.anchor = std::string(2000, 'a');
  CHECK_FALSE(sealer.Seal(content).ok());
}

TEST_CASE("the plain content has one encoding and refuses every truncation") {
  const Buffer encoded = EncodeTicketContent(Sample());
  CHECK(EncodeTicketContent(DecodeTicketContent(encoded).value()) == encoded);
  for (std::size_t i = 0; i < encoded.size(); ++i) CHECK_FALSE(DecodeTicketContent(Bytes(encoded).first(i)).ok());
  Buffer longer = encoded;
  longer.push_back(0);
  CHECK_FALSE(DecodeTicketContent(longer).ok());
}

}  // namespace
}  // namespace assay::enrollment
