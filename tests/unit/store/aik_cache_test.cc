// SPDX-License-Identifier: Apache-2.0
#include "verifier/store/aik_cache.h"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "sdk/core/tpm.h"
#include "tests/support/memory_store.h"

namespace assay::store {
namespace {

Digest Id(std::uint8_t seed) {
  Digest id{};
  id.fill(seed);
  return id;
}

// A TPMT_PUBLIC of an AIK on P-256 that holds a real point.
Buffer EccArea() {
  const PublicKey key = PrivateKey::Generate(KeyType::kP256).value().Public().value();
  const auto point = key.Point().value();
  Writer out;
  out.U16Be(0x0023);
  out.U16Be(0x000B);
  out.U32Be(tpm::attr::kFixedTpm | tpm::attr::kFixedParent | tpm::attr::kSensitiveDataOrigin |
            tpm::attr::kUserWithAuth | tpm::attr::kRestricted | tpm::attr::kSignEncrypt);
  out.PutU16Sized({});
  out.U16Be(0x0010);
  out.U16Be(0x0018);
  out.U16Be(0x000B);
  out.U16Be(3);
  out.U16Be(0x0010);
  out.PutU16Sized(point.x);
  out.PutU16Sized(point.y);
  return std::move(out).Take();
}

struct Fixture {
  test::MemoryStore store;
  Buffer area = EccArea();
  std::uint64_t Enroll(const Digest& host, const Digest& attester) {
    HostRow host_row;
    host_row.host_id = host;
    AikRow aik;
    aik.attester = attester;
    aik.host_id = host;
    aik.public_area = area;
    return store.PutEnrollment(host_row, aik, std::nullopt, 0).value();
  }
};

TEST_CASE("an entry is read once and then found in the cache with its key parsed") {
  Fixture f;
  f.Enroll(Id(1), Id(11));
  AikCache cache(f.store, 1024);
  const AikRecordPtr first = cache.Find(Id(11)).value();
  REQUIRE(first != nullptr);
  CHECK(first->key.type() == KeyType::kP256);
  CHECK(first->host.generation == 1);
  const int reads = f.store.reads;
  CHECK(cache.Find(Id(11)).value() == first);
  CHECK(f.store.reads == reads);
  CHECK(cache.counters().hits == 1);
  CHECK(cache.counters().misses == 1);
  CHECK(first->spki == first->key.Spki());
  CHECK(cache.FindCached(Id(11)) == first);
  CHECK(cache.FindCached(Id(12)) == nullptr);
  cache.Forget(Id(11));
  CHECK(cache.FindCached(Id(11)) == nullptr);
  CHECK(cache.Find(Id(11)).value() != first);
}

TEST_CASE("an unknown attester is not found and takes no place") {
  Fixture f;
  AikCache cache(f.store, 1024);
  CHECK(cache.Find(Id(11)).error().code == Code::kNotFound);
  CHECK(cache.size() == 0);
  f.Enroll(Id(1), Id(11));
  CHECK(cache.Find(Id(11)).value() != nullptr);
}

TEST_CASE("a stale entry shows its age, and a reload shows that its key is retired") {
  Fixture f;
  f.Enroll(Id(1), Id(11));
  AikCache cache(f.store, 1024);
  CHECK(cache.Find(Id(11)).value()->host.generation == 1);
  const std::uint64_t fence = f.Enroll(Id(1), Id(12));
  CHECK(cache.Find(Id(11)).value()->host.generation < fence);
  const AikRecordPtr fresh = cache.Reload(Id(11)).value();
  CHECK(fresh->host.generation == fence);
  CHECK(fresh->aik.generation < fresh->host.generation);
  CHECK(cache.Find(Id(11)).value() == fresh);
}

TEST_CASE("an invalidated host is read again, others are not") {
  Fixture f;
  f.Enroll(Id(1), Id(11));
  f.Enroll(Id(2), Id(12));
  AikCache cache(f.store, 1024);
  const AikRecordPtr other = cache.Find(Id(12)).value();
  CHECK(cache.Find(Id(11)).value() != nullptr);
  REQUIRE(f.store.ForgetHost(Id(1)).ok());
  cache.ForgetHost(Id(1));
  CHECK(cache.Find(Id(11)).error().code == Code::kNotFound);
  CHECK(cache.Find(Id(12)).value() == other);
  CHECK(cache.size() == 1);
}

TEST_CASE("a reload of a forgotten AIK drops its entry") {
  Fixture f;
  f.Enroll(Id(1), Id(11));
  AikCache cache(f.store, 1024);
  CHECK(cache.Find(Id(11)).value() != nullptr);
  REQUIRE(f.store.ForgetHost(Id(1)).ok());
  CHECK(cache.Reload(Id(11)).error().code == Code::kNotFound);
  CHECK(cache.size() == 0);
  CHECK(cache.Find(Id(11)).error().code == Code::kNotFound);
}

TEST_CASE("the cache stays within its bound and keeps what is in use") {
  Fixture f;
  AikCache cache(f.store, 64 * 4);
  const auto attester = [](std::uint64_t n, std::uint8_t shard) {
    Writer out;
    out.U64Be(n);
    out.Put(Buffer(23, 0));
    out.U8(shard);
    return ToDigest(out.buffer()).value();
  };
  for (std::uint64_t i = 0; i < 50; ++i) {
    f.Enroll(attester(i, 0x55), attester(i, 3));
    CHECK(cache.Find(attester(i, 3)).value() != nullptr);
    CHECK(cache.Find(attester(0, 3)).value() != nullptr);  // in use all the time
    CHECK(cache.size() <= 4);
  }
  CHECK(cache.counters().evictions == 46);
  const int reads = f.store.reads;
  CHECK(cache.Find(attester(0, 3)).value() != nullptr);
  CHECK(f.store.reads == reads);
}

TEST_CASE("a store that fails and a public area that is damaged are errors, not unknown attesters") {
  Fixture f;
  f.Enroll(Id(1), Id(11));
  AikCache cache(f.store, 64);
  f.store.fault = MakeError(Code::kIo, "disk");
  CHECK(cache.Find(Id(11)).error().code == Code::kIo);
  f.store.fault.reset();
  f.store.aiks[Id(11)].public_area.pop_back();
  CHECK_FALSE(cache.Find(Id(11)).ok());
  CHECK(cache.size() == 0);
}

TEST_CASE("threads that look up while hosts are invalidated never see a wrong record") {
  Fixture f;
  for (std::uint8_t i = 1; i <= 40; ++i) f.Enroll(Id(i), Id(static_cast<std::uint8_t>(100 + i)));
  AikCache cache(f.store, 64);
  for (std::uint8_t i = 1; i <= 40; ++i) CHECK(cache.Find(Id(static_cast<std::uint8_t>(100 + i))).ok());
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  // Only hits: the store in memory is not made for threads.
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int n = 0; n < 2000; ++n) {
        const Digest id = Id(static_cast<std::uint8_t>(101 + n % 20));
        const auto entry = cache.Find(id);
        if (!entry.ok() || *entry == nullptr || (*entry)->aik.attester != id) ++wrong;
      }
    });
  }
  for (int n = 0; n < 500; ++n) cache.ForgetHost(Id(static_cast<std::uint8_t>(21 + n % 20)));
  for (auto& thread : threads) thread.join();
  CHECK(wrong == 0);
}

}  // namespace
}  // namespace assay::store
