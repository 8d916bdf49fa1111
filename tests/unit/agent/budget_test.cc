// SPDX-License-Identifier: Apache-2.0
#include "agent/quoter/budget.h"

#include <doctest/doctest.h>

namespace assay::agent {
namespace {

TEST_CASE("a bucket gives its burst at once, then its rate, and never more than its burst") {
  const config::QuoteBudget budget{60, 3};
  Bucket bucket;
  for (int i = 0; i < 3; ++i) CHECK(bucket.Take(budget, 1000));
  CHECK_FALSE(bucket.Take(budget, 1000));
  CHECK_FALSE(bucket.Take(budget, 1999));
  CHECK(bucket.Take(budget, 2000));
  CHECK_FALSE(bucket.Take(budget, 2000));
  CHECK_FALSE(bucket.IsFull(budget, 4000));
  CHECK(bucket.IsFull(budget, 100'000));
  for (int i = 0; i < 3; ++i) CHECK(bucket.Take(budget, 10'000'000'000));
  CHECK_FALSE(bucket.Take(budget, 10'000'000'000));
}

TEST_CASE("a clock that goes back gives nothing") {
  const config::QuoteBudget budget{60, 1};
  Bucket bucket;
  CHECK(bucket.Take(budget, 5000));
  CHECK_FALSE(bucket.Take(budget, 1000));
}

TEST_CASE("one user's budget is not another's") {
  UserBudgets users({60, 1});
  CHECK(users.Take(1000, 0));
  CHECK_FALSE(users.Take(1000, 0));
  CHECK(users.Take(1001, 0));
}

TEST_CASE("a crowd of users takes bounded memory: full buckets are forgotten, spent ones are kept") {
  UserBudgets users({60, 1}, 2);
  CHECK(users.Take(1, 0));
  CHECK(users.Take(2, 0));
  CHECK_FALSE(users.Take(3, 0));
  CHECK_FALSE(users.Take(1, 500));
  CHECK(users.Take(3, 2000));
}

}  // namespace
}  // namespace assay::agent
