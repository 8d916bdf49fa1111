# SPDX-License-Identifier: Apache-2.0
"""smoke_test.py BIN GROUP: runs one group briefly. Passes when every row of the speed table is printed with its aim
and the benchmark itself found nothing wrong. Times are not judged: a test machine has other work to do."""
import json
import os
import subprocess
import sys

ROWS = {
    "core": {
        "V: bare RSA-2048 verify": None,
        "P: bare P-256 verify": None,
        "null: an empty operation": None,
        "quote verify, cached key": 1.05,
        "digest of an 8 KB body and extraData": None,
        "evidence decode, 8 KB": 300,
        "SDK: host token accepted": 1.15,
        "SDK: host token refused, stale": 0.05,
        "SDK: host token refused, other nonce": 0.05,
        "SDK: host token refused, body is not in extraData": 0.05,
        "SDK: host token refused, edited TPMS_ATTEST": 1.1,
        "SDK: host token refused, edited signature": 1.1,
        "host token serialize": 40,
        "host token parse": 40,
        "SDK: allocations of 3 host token checks and the codec": 0,
        "SDK: ES256 result token accepted": 1.1,
        "SDK: allocations of a result token check": 0,
        "MakeCredential in software, RSA-2048 EK": 1.3,
        "AIK public area check": 3000,
        "AIK key parsed from its public area": None,
        "enrollment codec, encode begin (3 KB)": 400,
        "enrollment codec, decode begin (3 KB)": 300,
        "AIK lookup, cached": 1000,
        "AIK lookup, from SQLite": 4000,
        "AIK record from SQLite: AIK, host, key parsed": None,
        "SHA-256 of 1 MiB, speed": 0.95,
    },
    "chain": {
        "re-attestation through the daemon, routine": 3.6,
        "re-attestation through the daemon, with result token": 5.2,
        "re-attestation in process, routine": None,
        "re-attestation in process, with result token": None,
        "part: evidence decoded": None,
        "part: AIK found, policy taken": None,
        "part: challenge checked": None,
        "part: body digest and extraData": None,
        "part: quote checked": None,
        "part: fence read and passed": None,
        "part: appraised": None,
        "part: next challenge issued": None,
        "part: record's line written": None,
        "part: record made durable, all in flight": None,
        "part: reply encoded": None,
        "part: verdict row written, batched": None,
        "part: result token authorised and signed": None,
        "part: TLS, HTTP, threads (daemon less in process)": None,
        "swtpm round trip: attest, p50": None,
        "swtpm round trip: attest, p99": None,
        "swtpm round trip: enroll, p50": None,
        "swtpm round trip: enroll, p99": None,
    },
}
COUNTS = ("SDK: allocations of 3 host token checks and the codec", "SDK: allocations of a result token check")
MEMBERS = ["group", "name", "unit", "median", "low", "high", "aim", "met"]


def main():
    directory, group = sys.argv[1:3]
    program = os.path.join(directory, f"assay-{group}-bench")
    done = subprocess.run([program, "--quick", "--json"], capture_output=True, text=True, timeout=110, check=False)
    if done.returncode != 0:
        sys.exit(f"{program} exited {done.returncode}: {done.stderr.strip()}")
    rows = json.loads(done.stdout)
    found = {row["name"]: row["aim"] for row in rows}
    if found != ROWS[group]:
        sys.exit(f"rows or aims differ: {sorted(set(found.items()) ^ set(ROWS[group].items()), key=str)}")
    for row in rows:
        if list(row) != MEMBERS or row["group"] != group or not row["low"] <= row["median"] <= row["high"]:
            sys.exit(f"a faulty row: {row}")
        if isinstance(row["met"], bool) != (row["aim"] is not None):
            sys.exit(f"met does not fit the aim: {row}")
        if row["name"] in COUNTS and row["median"] != 0:
            sys.exit(f"something was allocated: {row}")
    print(f"{len(rows)} rows of group {group}")


if __name__ == "__main__":
    main()
