# SPDX-License-Identifier: Apache-2.0
# Preloaded under whole programs by tests/system; without sanitizers, whatever the preset.
add_library(assay-fault-shim MODULE kill_at.c)
target_compile_options(assay-fault-shim PRIVATE -Wall -Wextra -Werror)
set_target_properties(assay-fault-shim PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
