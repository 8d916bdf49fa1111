#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `demo --keep` leaves is confirmed by the commands that it prints, with tools that share no code with Assay; and
the same commands refuse a quote or PCR values with one bit changed. Argument: BIN_DIR."""
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def shell(command):
    return subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60, check=False, env=dict(os.environ, TSS2_LOG="all+none"))


def printed_commands(output):
    lines = output.splitlines()
    lines = lines[lines.index("Confirm with other tools:") + 1:]
    commands = []
    for line in lines:
        if not line.startswith("  "):
            break
        commands.append(line.strip())
    return commands


def flip(path):
    with open(path, "r+b") as handle:
        content = handle.read()
        at = len(content) // 2
        handle.seek(at)
        handle.write(bytes([content[at] ^ 1]))


def check_commands(commands):
    faults = []
    for command in commands:
        done = shell(command)
        print(f"{done.returncode}  {command}\n{done.stdout}{done.stderr}")
        if done.returncode != 0:
            faults.append(f"failed: {command}")
    return faults


def check_refusals(commands, directory):
    """Each changed file must be refused by every command that reads it, but for the one that makes it."""
    faults = []
    for name, readers in (("quote.msg", 2), ("quote.sig", 1), ("quote.sig.raw", 1), ("pcrs.bin", 1)):
        path = os.path.join(directory, "split", name)
        shutil.copy(path, path + ".kept")
        flip(path)
        judges = [command for command in commands if any(word.rstrip(")") == path for word in command.replace("(", " ").split())]
        if len(judges) != readers:
            faults.append(f"{name} is read by {len(judges)} commands, expected {readers}")
        faults += [f"accepted a changed {name}: {command}" for command in judges if shell(command).returncode == 0]
        os.replace(path + ".kept", path)
    return faults


def check_truncation(directory):
    """Evidence cut anywhere is no evidence."""
    faults = []
    with open(os.path.join(directory, "evidence.cbor"), "rb") as handle:
        content = handle.read()
    cut = os.path.join(directory, "cut.cbor")
    for size in range(0, len(content), max(1, len(content) // 16)):
        with open(cut, "wb") as out:
            out.write(content[:size])
        done = subprocess.run([sys.executable, os.path.join(HERE, "split_evidence.py"), cut, os.path.join(directory, "cut")], capture_output=True, text=True, check=False)
        if done.returncode != 1 or "Traceback" in done.stderr:
            faults.append(f"evidence cut to {size} bytes: exit {done.returncode} {done.stderr}")
    return faults


def main():
    if shutil.which("tpm2_checkquote") is None:
        print("skipped: tpm2_checkquote (tpm2-tools) is not installed")
        return 77
    with tempfile.TemporaryDirectory(prefix="assay-kept-") as parent:
        kept = os.path.join(parent, "kept")
        demo = subprocess.run([sys.executable, os.path.join(HERE, "demo.py"), "--bin", sys.argv[1], "--keep", kept], capture_output=True, text=True, timeout=240,
                              check=False)
        if demo.returncode != 0:
            print(demo.stdout + demo.stderr)
            return 1
        commands = printed_commands(demo.stdout)
        faults = [] if len(commands) >= 7 else [f"only {len(commands)} commands are printed"]
        faults += check_commands(commands)
        if not faults:
            faults += check_refusals(commands, kept) + check_truncation(kept)
    for fault in faults:
        print("FAULT: " + fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
