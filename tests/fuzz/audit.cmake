# SPDX-License-Identifier: Apache-2.0
assay_fuzz(audit_segment SOURCE ${CMAKE_CURRENT_LIST_DIR}/audit_segment_fuzz.cc DEPS assay_audit)
