# SPDX-License-Identifier: Apache-2.0
assay_test(audit_fault_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/audit_faults_test.cc ${CMAKE_CURRENT_LIST_DIR}/audit_recovery_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/audit_kill_test.cc ${CMAKE_CURRENT_LIST_DIR}/audit_power_test.cc DEPS assay_audit LABELS fault)
