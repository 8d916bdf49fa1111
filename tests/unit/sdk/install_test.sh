#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# install_test BUILD_DIR SANITIZERS: installs the SDK into a fresh prefix, builds a C program against it with what
# pkg-config says and, with CMake's package, a second one; and looks at what libassay.so lets out.
set -euo pipefail
build=$(cd "$1" && pwd)
sanitizers=${2:-}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cmake --install "$build" --prefix "$dir/prefix" --component sdk >/dev/null
cd "$dir"
library=$(find prefix -name libassay.so)
strangers=$(nm -D --defined-only "$library" | awk '$2 != "A" && $3 !~ /^assay_/ {printf "%s ", $3}')
[ -z "$strangers" ] || { echo "FAILED: libassay.so exports $strangers"; exit 1; }
readelf -d "$library" | grep -q 'soname: \[libassay.so.0\]' || { echo "FAILED: no soname libassay.so.0"; exit 1; }

cat > program.c <<'END'
#include <assay/client.h>
#include <assay/server.h>
#include <stdio.h>
int main(void) {
  assay_keyset* keys = NULL;
  puts(assay_code_name(assay_keyset_parse("{}", 2, &keys)));
  return 0;
}
END
flags=()
[ -z "$sanitizers" ] || flags+=("-fsanitize=$sanitizers" -lstdc++)
export PKG_CONFIG_PATH=$(dirname "$library")/pkgconfig
read -ra found <<<"$(pkg-config --cflags --libs assay)"
"${CC:-cc}" -std=c11 -Wall -Wextra -pedantic -Werror program.c -o program "${found[@]}" "${flags[@]}"
[ "$(LD_LIBRARY_PATH=$(dirname "$library") ./program)" = malformed ] || { echo "FAILED: the pkg-config program"; exit 1; }

mkdir package
cp program.c package/
cat > package/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.25)
project(consumer C)
find_package(assay 0.1 REQUIRED)
add_executable(consumer program.c)
target_link_libraries(consumer PRIVATE assay::assay)
END
link=()
[ -z "$sanitizers" ] || link+=("-DCMAKE_C_FLAGS=-fsanitize=$sanitizers" -DCMAKE_C_STANDARD_LIBRARIES=-lstdc++)
cmake -S package -B consumer -DCMAKE_PREFIX_PATH="$dir/prefix" "${link[@]}" >cmake.log 2>&1 && cmake --build consumer >>cmake.log 2>&1 || { cat cmake.log; exit 1; }
[ "$(consumer/consumer)" = malformed ] || { echo "FAILED: the CMake program"; exit 1; }
echo "installed, exported and linked: $(nm -D --defined-only "$library" | grep -c ' T assay_') functions"
