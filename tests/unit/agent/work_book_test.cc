// SPDX-License-Identifier: Apache-2.0
#include "agent/server/work_book.h"

#include <doctest/doctest.h>

namespace assay::agent {
namespace {

constexpr std::uint64_t kRelay = 500;

Caller ClientOf(uid_t uid, std::uint64_t connection) {
  Caller caller;
  caller.uid = uid;
  caller.connection = connection;
  return caller;
}

TEST_CASE("requests are taken oldest first, each by one relay") {
  WorkBook book;
  const auto first = book.Add(ClientOf(1, 20), {}, 100).value();
  const auto second = book.Add(ClientOf(1, 21), {}, 100).value();
  CHECK(book.TakeNext(kRelay) == first);
  CHECK(book.TakeNext(kRelay + 1) == second);
  CHECK_FALSE(book.TakeNext(kRelay).has_value());
  CHECK(book.Find(first)->taken_by == kRelay);
}

TEST_CASE("a relay that goes away gives its requests back, a client that goes away takes its own along") {
  WorkBook book;
  const auto work = book.Add(ClientOf(1, 20), {}, 100).value();
  REQUIRE(book.TakeNext(kRelay) == work);
  CHECK(book.OnClosed(kRelay));
  CHECK(book.TakeNext(kRelay + 1) == work);
  CHECK_FALSE(book.OnClosed(20));
  CHECK(book.Find(work) == nullptr);
}

TEST_CASE("one user cannot fill the book, and the book is bounded") {
  WorkBook book;
  for (std::size_t i = 0; i < WorkBook::kMaxPerUser; ++i) CHECK(book.Add(ClientOf(1, i), {}, 100).ok());
  CHECK(book.Add(ClientOf(1, 99), {}, 100).error().code == Code::kBusy);
  CHECK(book.Add(ClientOf(2, 99), {}, 100).ok());
  for (uid_t uid = 10; book.size() < WorkBook::kMaxWork; ++uid)
    CHECK(book.Add(ClientOf(uid, 1000 + uid), {}, 100).ok());
  CHECK(book.Add(ClientOf(5, 99), {}, 100).error().code == Code::kBusy);
}

TEST_CASE("what is past its deadline is taken out, and only that") {
  WorkBook book;
  CHECK(book.NextDeadline() == UINT64_MAX);
  const auto early = book.Add(ClientOf(1, 20), {}, 100).value();
  const auto late = book.Add(ClientOf(1, 21), {}, 200).value();
  CHECK(book.NextDeadline() == 100);
  CHECK(book.TakeExpired(99).empty());
  const auto expired = book.TakeExpired(100);
  REQUIRE(expired.size() == 1);
  CHECK(expired[0].id == early);
  CHECK(book.Find(late) != nullptr);
}

}  // namespace
}  // namespace assay::agent
