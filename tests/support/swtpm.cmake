# SPDX-License-Identifier: Apache-2.0
# Software TPMs for tests, and commands sent to them behind the back of the code under test.
assay_library(assay_test_support SOURCES ${CMAKE_CURRENT_LIST_DIR}/swtpm.cc ${CMAKE_CURRENT_LIST_DIR}/swtpm_setup.cc
  ${CMAKE_CURRENT_LIST_DIR}/tpm_commands.cc DEPS assay_core)
