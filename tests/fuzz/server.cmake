# SPDX-License-Identifier: Apache-2.0
assay_fuzz(proxy_protocol SOURCE ${CMAKE_CURRENT_SOURCE_DIR}/proxy_protocol_fuzz.cc DEPS assay_transport)
assay_fuzz(config_file SOURCE ${CMAKE_CURRENT_SOURCE_DIR}/config_file_fuzz.cc DEPS assay_config)
