# SPDX-License-Identifier: Apache-2.0
assay_library(assay_test_fake_device SOURCES fake_device.cc DEPS assay_core assay_config)
