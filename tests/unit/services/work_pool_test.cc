// SPDX-License-Identifier: Apache-2.0
#include "verifier/server/work_pool.h"

#include <doctest/doctest.h>

#include <atomic>
#include <future>

namespace assay::server {
namespace {

TEST_CASE("a pool that finishes runs what was queued and takes no more") {
  WorkPool pool(2, 100);
  std::promise<void> open;
  const std::shared_future<void> gate = open.get_future().share();
  std::atomic<int> ran = 0;
  for (int i = 0; i < 50; ++i) {
    CHECK(pool.Run([&ran, gate] {
      gate.wait();
      ++ran;
    }) == Queued::kYes);
  }
  open.set_value();
  pool.Finish();
  CHECK(ran == 50);
  CHECK(pool.Run([&ran] { ++ran; }) == Queued::kFull);
  pool.Finish();
  CHECK(ran == 50);
}

TEST_CASE("a full pool refuses and runs nothing on the caller's thread") {
  WorkPool pool(1, 2);
  std::promise<void> open, busy;
  const std::shared_future<void> gate = open.get_future().share();
  CHECK(pool.Run([&busy, gate] {
    busy.set_value();
    gate.wait();
  }) == Queued::kYes);
  busy.get_future().wait();
  std::atomic<int> ran = 0;
  CHECK(pool.Run([&ran] { ++ran; }) == Queued::kYes);
  CHECK(pool.Run([&ran] { ++ran; }) == Queued::kYes);
  CHECK(pool.Run([&ran] { ++ran; }) == Queued::kFull);
  CHECK(ran == 0);
  open.set_value();
  pool.Finish();
  CHECK(ran == 2);
}

}  // namespace
}  // namespace assay::server
