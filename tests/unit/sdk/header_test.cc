// SPDX-License-Identifier: Apache-2.0
// The public headers as C++, each on its own first.
#include <assay/client.h>
#include <assay/server.h>
#include <doctest/doctest.h>

#include <type_traits>

extern "C" int assay_test_from_c(void);

namespace {

TEST_CASE("the headers serve C11 and the library answers from C") { CHECK(assay_test_from_c() == 0); }

TEST_CASE("no function of the ABI throws and the structs are plain") {
  static_assert(noexcept(assay_verify_result_token(nullptr, nullptr, 0, nullptr, nullptr)));
  static_assert(noexcept(assay_client_status(nullptr, nullptr, nullptr, 0, nullptr)));
  static_assert(std::is_standard_layout_v<assay_result> && std::is_trivially_copyable_v<assay_result>);
  static_assert(std::is_standard_layout_v<assay_heartbeat> && std::is_trivially_copyable_v<assay_heartbeat>);
  CHECK(ASSAY_OK == 0);
}

}  // namespace
