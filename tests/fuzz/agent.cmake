# SPDX-License-Identifier: Apache-2.0
assay_fuzz(agent_protocol SOURCE ${CMAKE_CURRENT_SOURCE_DIR}/agent_protocol_fuzz.cc DEPS assay_core)
assay_fuzz(runtime_log SOURCE ${CMAKE_CURRENT_SOURCE_DIR}/runtime_log_fuzz.cc DEPS assay_core)
assay_fuzz(agent_log SOURCE ${CMAKE_CURRENT_SOURCE_DIR}/agent_log_fuzz.cc DEPS assay_agent)
