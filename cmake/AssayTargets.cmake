# SPDX-License-Identifier: Apache-2.0
# One target per concept. Every target of ours gets its flags here, by name, never globally.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(SYSTEMD REQUIRED IMPORTED_TARGET libsystemd)
pkg_check_modules(OPENSSL REQUIRED IMPORTED_TARGET libssl libcrypto)

function(assay_flags target)
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR})
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Werror
    -fvisibility=hidden -fno-omit-frame-pointer
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)  # g++ 12 sees moved variants as unset at -O2
  if(ASSAY_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${ASSAY_SANITIZE} -fno-sanitize-recover=all
      $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized;-Wno-stringop-overflow;-Wno-stringop-overread;-Wno-array-bounds;-Wno-restrict>)
    target_link_options(${target} PRIVATE -fsanitize=${ASSAY_SANITIZE})
  endif()
  if(ASSAY_FUZZ)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
  if(ASSAY_HARDEN)
    target_compile_options(${target} PRIVATE -D_FORTIFY_SOURCE=2 -fstack-protector-strong -fcf-protection=full
      -fstack-clash-protection)
    target_link_options(${target} PRIVATE -Wl,-z,relro,-z,now,-z,noexecstack)
    get_target_property(kind ${target} TYPE)
    if(kind STREQUAL "EXECUTABLE")
      target_link_options(${target} PRIVATE -pie)
    endif()
  endif()
endfunction()

# assay_library(NAME SOURCES a.cc b.cc DEPS lib ... [PRIVATE_DEPS lib ...])
function(assay_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  assay_flags(${name})
  target_link_libraries(${name} PUBLIC ${ARG_DEPS} PRIVATE ${ARG_PRIVATE_DEPS})
endfunction()

# assay_program(NAME SOURCES main.cc DEPS lib ...): lands in build/<preset>/bin
function(assay_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  assay_flags(${name})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
endfunction()

# assay_test(ROOM SOURCES a_test.cc DEPS lib ... [LABELS unit] [TIMEOUT s]): one doctest binary a room
function(assay_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;DEPS;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  assay_flags(${name})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} assay_doctest_main)
  target_compile_definitions(${name} PRIVATE ASSAY_TEST_DATA="${CMAKE_SOURCE_DIR}/tests/data"
    ASSAY_BIN_DIR="${CMAKE_BINARY_DIR}/bin")
  add_test(NAME ${name} COMMAND ${name})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}" SKIP_RETURN_CODE 77)
endfunction()

# assay_fuzz(NAME SOURCE x_fuzz.cc DEPS lib ...): a libFuzzer target in the fuzz preset; elsewhere the same entry
# point run over tests/fuzz/corpus/NAME as a regression test.
function(assay_fuzz name)
  cmake_parse_arguments(ARG "" "SOURCE" "DEPS" ${ARGN})
  if(ASSAY_FUZZ)
    add_executable(fuzz_${name} ${ARG_SOURCE})
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  else()
    add_executable(fuzz_${name} ${ARG_SOURCE} ${CMAKE_SOURCE_DIR}/tests/fuzz/replay_main.cc)
    add_test(NAME fuzz_${name} COMMAND fuzz_${name} ${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/${name})
    set_tests_properties(fuzz_${name} PROPERTIES TIMEOUT 120 LABELS fuzz)
  endif()
  assay_flags(fuzz_${name})
  target_link_libraries(fuzz_${name} PRIVATE ${ARG_DEPS})
endfunction()
