# SPDX-License-Identifier: Apache-2.0
assay_fuzz(tpm_attest SOURCE ${CMAKE_CURRENT_SOURCE_DIR}/tpm_attest_fuzz.cc DEPS assay_core)
assay_fuzz(tpm_signature SOURCE ${CMAKE_CURRENT_SOURCE_DIR}/tpm_signature_fuzz.cc DEPS assay_core)
assay_fuzz(tpm_public SOURCE ${CMAKE_CURRENT_SOURCE_DIR}/tpm_public_fuzz.cc DEPS assay_core)
