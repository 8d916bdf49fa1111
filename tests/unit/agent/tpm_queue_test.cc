// SPDX-License-Identifier: Apache-2.0
#include "agent/quoter/tpm_queue.h"

#include <doctest/doctest.h>

#include <atomic>
#include <future>
#include <memory>
#include <vector>

namespace assay::agent {
namespace {

// Holds the queue's thread in a job until released, so that what waits behind it is known.
struct Held {
  explicit Held(TpmQueue& queue) {
    auto started = std::make_shared<std::promise<void>>();  // with the job, which outlives this scope
    auto running = started->get_future();
    REQUIRE(queue
                .Submit(Priority::kEvidence,
                        [started, released = gate.get_future().share()] {
                          started->set_value();
                          released.wait();
                        })
                .ok());
    running.wait();
  }
  std::promise<void> gate;
};

TEST_CASE("evidence goes before host tokens, and each kind in its order of arrival") {
  std::vector<int> order;
  {
    std::promise<void> done;
    TpmQueue queue;
    Held held(queue);
    REQUIRE(queue
                .Submit(Priority::kBackground,
                        [&] {
                          order.push_back(5);
                          done.set_value();
                        })
                .ok());
    REQUIRE(queue.Submit(Priority::kHostToken, [&] { order.push_back(3); }).ok());
    REQUIRE(queue.Submit(Priority::kEvidence, [&] { order.push_back(1); }).ok());
    REQUIRE(queue.Submit(Priority::kHostToken, [&] { order.push_back(4); }).ok());
    REQUIRE(queue.Submit(Priority::kEvidence, [&] { order.push_back(2); }).ok());
    CHECK(queue.waiting() == 5);
    held.gate.set_value();
    done.get_future().wait();
  }
  CHECK(order == std::vector<int>{1, 2, 3, 4, 5});
}

TEST_CASE("a full queue refuses, and only its own kind") {
  TpmQueue queue(2);
  Held held(queue);
  CHECK(queue.Submit(Priority::kHostToken, [] {}).ok());
  CHECK(queue.Submit(Priority::kHostToken, [] {}).ok());
  CHECK(queue.Submit(Priority::kHostToken, [] {}).error().code == Code::kBusy);
  CHECK(queue.Submit(Priority::kEvidence, [] {}).ok());
  held.gate.set_value();
}

TEST_CASE("stopping finishes the job in hand, drops the rest and takes no more") {
  std::atomic<int> ran{0};
  TpmQueue queue;
  Held held(queue);
  REQUIRE(queue.Submit(Priority::kEvidence, [&] { ++ran; }).ok());
  auto stopped = std::async(std::launch::async, [&] { queue.Stop(); });
  while (queue.waiting() != 0) std::this_thread::yield();
  held.gate.set_value();
  stopped.wait();
  CHECK(ran == 0);
  CHECK(queue.Submit(Priority::kEvidence, [] {}).error().code == Code::kBusy);
}

}  // namespace
}  // namespace assay::agent
