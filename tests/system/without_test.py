#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The demo run with a test build that lacks one mechanism must fail, and at exactly that mechanism's step. Arguments:
BIN_DIR MECHANISM; without a mechanism the demo must hold."""
import json
import os
import subprocess
import sys

STEPS = ["enrolled", "attested", "token_verified", "pcr_contraindicated", "replay_refused", "impersonation_refused", "clone_refused", "audit_verified"]
SHOWN_BY = {"clock": "clone_refused", "binding": "replay_refused", "selection": "pcr_contraindicated", "ek-chain": "enrolled", "audit-mac": "audit_verified"}


def main():
    bin_dir = sys.argv[1]
    mechanism = sys.argv[2] if len(sys.argv) > 2 else None
    demo = os.path.join(os.path.dirname(os.path.abspath(__file__)), "demo.py")
    done = subprocess.run([sys.executable, demo, "--bin", bin_dir, "--json", *(["--without", mechanism] if mechanism else [])], capture_output=True, text=True,
                          check=False, timeout=280)
    print(done.stderr)
    result = json.loads(done.stdout)
    failed = [step for step in STEPS if not result.get(step, False)]
    expected = [SHOWN_BY[mechanism]] if mechanism else []
    if failed != expected or result["ok"] != (not expected) or done.returncode != (1 if expected else 0):
        print(f"failed steps: {failed}, expected {expected}, exit {done.returncode}")
        return 1
    print(f"as expected: {expected or 'all steps hold'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
