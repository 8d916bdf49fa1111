#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# units_test BIN_DIR UNIT...: the units are what systemd takes, with the programs of this build in their place.
set -euo pipefail
command -v systemd-analyze >/dev/null || { echo "skipped: systemd-analyze is not installed"; exit 77; }
bin=$1
shift
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
for unit in "$@"; do
  sed "s|^ExecStart=/usr/bin/|ExecStart=$bin/|" "$unit" >"$dir/$(basename "$unit")"
  grep -q "^ExecStart=$bin/" "$dir/$(basename "$unit")" || { echo "$unit starts no program of ours"; exit 1; }
done
found=$(systemd-analyze verify "$dir"/*.service 2>&1) || { echo "$found"; exit 1; }
[ -z "$found" ] || { echo "$found"; exit 1; }
echo "$# units are fine"
