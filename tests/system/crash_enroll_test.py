#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""SIGKILL of the verifier before each call on trail and store of one rotation, one after the other. After each
restart: the trail verifies; a rotation that was answered is in force; one that was not leaves the machine with a key
that attests, or that is refused as aik_retired and rotates again. Arguments: BIN_DIR."""
import json
import sys
import time

from checks import Failure, Fault, World, equal, error_code, expect, main, records, verify

MOST = 40


def rotate_and_kill(world, machine, fault, order):
    """(the record that was answered, or None; the calls counted; was the verifier killed)"""
    verifier = world.verifier
    verifier.start(env=fault.env)
    fault.order(order)
    done = machine.enroll(command="rotate", check=False)
    end = time.monotonic() + 0.5
    while verifier.process.alive() and time.monotonic() < end:
        time.sleep(0.02)
    killed = not verifier.process.alive()
    trace = fault.trace()
    fault.clear()
    verifier.stop(sig=9)
    return (json.loads(done.stdout) if done.returncode == 0 else None), trace, killed


def settle(world, machine, answered, order):
    """The machine after the crash; True when its old key had been retired unseen and it rotated again."""
    verifier = world.verifier
    verifier.start()
    verify(verifier)
    rotations = [record for record in records(verifier.audit).values() if record["type"] == "enroll" and record["outcome"] == "rotate"]
    if answered:
        expect(any(record["generation"] == answered["generation"] for record in rotations), f"{order}: answered, but not in the trail: {answered}")
    machine.start_agent()
    answer = machine.attest()
    lost = error_code(answer) == "aik_retired"
    if lost:
        expect(answered is None, f"{order}: the key of an answered rotation is refused: {answer}")
        machine.stop_agent()
        machine.enroll(command="rotate")
        machine.start_agent()
        answer = machine.attest()
    equal(answer.get("tier"), "affirming", f"{order}: {answer}")
    machine.stop_agent()
    verifier.stop(sig=9)
    return lost


def killed_while_rotating(bin_dir):
    """killed before each call of a rotation, the machine is never locked out and nothing answered is undone"""
    with World(bin_dir) as world:
        tpm = world.make_tpm("tpm")
        verifier = world.make_verifier()
        fault = Fault(world)
        machine = world.make_machine("machine", tpm)
        verifier.start()
        host = json.loads(machine.enroll().stdout)["host_id"]
        verifier.stop(sig=9)
        calls, lost = [], 0
        for number in range(1, MOST):
            order = f"kill {number} audit,store"
            answered, trace, killed = rotate_and_kill(world, machine, fault, order)
            lost += settle(world, machine, answered, order)
            if not killed:
                expect(answered is not None, "a rotation that nothing disturbed was refused")
                break
            calls.append(tuple(trace[-1][1:]))
        else:
            raise Failure(f"one rotation has more than {MOST} calls")
        for wanted in (("pwrite", "audit"), ("fdatasync", "audit")):
            expect(wanted in calls, f"never killed before {wanted}: {calls}")
        expect(any(kind == "store" for _, kind in calls), f"never killed at the store: {calls}")
        verifier.start()
        hosts = json.loads(verifier.ctl("--json", "hosts", "list").stdout)["hosts"]
        equal([entry["host_id"] for entry in hosts], [host], "hosts")
        print(f"        {len(calls)} kills, {lost} rotations whose answer was lost; before: " + ", ".join(f"{call} of {kind}" for call, kind in calls))


if __name__ == "__main__":
    sys.exit(main(killed_while_rotating))
