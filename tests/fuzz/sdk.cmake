# SPDX-License-Identifier: Apache-2.0
foreach(target token jwks jws host_token)
  assay_fuzz(${target} SOURCE ${CMAKE_CURRENT_SOURCE_DIR}/${target}_fuzz.cc DEPS assay_core)
endforeach()
