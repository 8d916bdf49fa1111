# SPDX-License-Identifier: Apache-2.0
assay_fuzz(evidence SOURCE ${CMAKE_CURRENT_SOURCE_DIR}/evidence_fuzz.cc DEPS assay_core)
assay_fuzz(protocol SOURCE ${CMAKE_CURRENT_SOURCE_DIR}/protocol_fuzz.cc DEPS assay_core)
