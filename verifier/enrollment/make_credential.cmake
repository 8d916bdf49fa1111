# SPDX-License-Identifier: Apache-2.0
assay_library(assay_make_credential SOURCES make_credential.cc DEPS assay_core)
