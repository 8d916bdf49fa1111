# SPDX-License-Identifier: Apache-2.0
assay_fuzz(ek_certificate SOURCE ${CMAKE_CURRENT_SOURCE_DIR}/ek_certificate_fuzz.cc DEPS assay_enrollment assay_enroll assay_core)
assay_fuzz(enroll_ticket SOURCE ${CMAKE_CURRENT_SOURCE_DIR}/enroll_ticket_fuzz.cc DEPS assay_enrollment assay_core)
