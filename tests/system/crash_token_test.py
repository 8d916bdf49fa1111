#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""SIGKILL of the verifier while a one-time enrollment token is used: before calls on the trail, and before every third
on the store, until one enrollment gets through. Whenever it dies, the token enrolls exactly one of two machines that
try it. Arguments: BIN_DIR."""
import json
import os
import sys
import time

from checks import Failure, Fault, World, equal, expect, main, verify

MOST = 60


def try_token(world, machine, token, check=False):
    with open(world.path("token"), "w", encoding="utf-8") as out:
        out.write(token + "\n")
    os.chmod(world.path("token"), 0o600)
    return machine.enroll("--token-file", world.path("token"), check=check)


def one_round(world, machines, fault, order):
    """(was the verifier killed, did the token still work afterwards)"""
    verifier, (first, second) = world.verifier, machines
    verifier.start(env=fault.env)
    token = json.loads(verifier.ctl("--json", "tokens", "create-enrollment", "--reason", "one machine").stdout)["token"]
    fault.order(order)
    answered = try_token(world, first, token).returncode == 0
    end = time.monotonic() + 0.5
    while verifier.process.alive() and time.monotonic() < end:
        time.sleep(0.02)
    killed = not verifier.process.alive()
    fault.clear()
    verifier.stop(sig=9)
    verifier.start()
    verify(verifier)
    later = try_token(world, second, token)
    usable = later.returncode == 0
    if not usable:
        equal(json.loads(later.stdout)["code"], "enrollment_token_invalid", f"{order}: the token's second use")
    hosts = json.loads(verifier.ctl("--json", "hosts", "list").stdout)["hosts"]
    equal(len(hosts), 1, f"{order}: hosts enrolled by one token")
    expect(not (answered and usable), f"{order}: one token enrolled two machines")
    for host in hosts:
        verifier.ctl("hosts", "forget", host["host_id"], "--reason", "next round")
    for machine in machines:
        machine.enroll("remove", command="--yes", check=False)
    verifier.stop(sig=9)
    return killed, usable


def killed_while_a_token_is_used(bin_dir):
    """killed while a token is used, it enrolls one machine and never two"""
    with World(bin_dir) as world:
        tpms = [world.make_tpm(f"tpm{i}") for i in range(2)]
        verifier = world.make_verifier()
        verifier.edit("policy.toml", 'mode = "open"', 'mode = "token"')
        fault = Fault(world)
        machines = [world.make_machine(f"machine{i}", tpm) for i, tpm in enumerate(tpms)]
        for number in (1, 2):
            equal(one_round(world, machines, fault, f"kill {number} audit"), (True, True), f"killed at the trail, call {number}: the store knows nothing yet")
        seen = []
        for number in range(1, MOST, 3):
            killed, usable = one_round(world, machines, fault, f"kill {number} store")
            seen.append(usable)
            if not killed:
                break
        else:
            raise Failure(f"one enrollment has more than {MOST} calls on the store")
        expect(seen[0] and not seen[-1], f"the token was not free at first and spent at last: {seen}")
        equal(sorted(seen, reverse=True), seen, "once spent, always spent")


if __name__ == "__main__":
    sys.exit(main(killed_while_a_token_is_used))
