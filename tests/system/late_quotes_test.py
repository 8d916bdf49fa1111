#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Quotes taken at once and submitted late, through the programs: what the anchor lets pass, what is asked for again,
what has expired; and TPM2_ClockSet, the documented limit of the anchor, against freshness = "asked". Arguments:
BIN_DIR."""
import re
import signal
import sys
import threading

from checks import Failure, World, equal, expect, main, records, wait_for

LIFETIME_S = 14


def late(machine, seconds):
    """(code, tier) of genuine evidence that was held back for so long, and the code of sending it once more."""
    first, again, _ = machine.probe("replay", "--delay-ms", str(int(seconds * 1000)))
    return first["code"], first["tier"], again["code"]


def judged(verifier, machine_host):
    return [record for record in records(verifier.audit).values()
            if record["type"] == "attest" and record["outcome"] == "judged" and record["host"] == machine_host]


def advance_clock(machine, milliseconds):
    """TPM2_ClockSet by the owner's authorization: what root can do."""
    shown = machine.tpm.tool("tpm2_readclock").stdout
    clock = int(re.search(r"^\s*clock: (\d+)", shown, re.MULTILINE).group(1))
    machine.tpm.tool("tpm2_setclock", str(clock + milliseconds))


def anchored(machine):
    equal(machine.attest().get("tier"), "affirming", "the attestation that sets the anchor")


def one_step(machine):
    """without an anchor 6 s are asked for again"""
    equal(late(machine, 6), ("fresh_challenge_needed", "none", "fresh_challenge_needed"), "6 s late, no anchor")


def by_five_more(machine):
    """6 s pass, 5 s more do not: the anchor did not move with what passed"""
    anchored(machine)
    equal(late(machine, 6), ("ok", "affirming", "replay"), "6 s late")
    equal(late(machine, 11), ("fresh_challenge_needed", "none", "fresh_challenge_needed"), "11 s late")


def expired(machine):
    """behind its lifetime a challenge is refused"""
    anchored(machine)
    equal(late(machine, LIFETIME_S + 2), ("challenge_expired", "", "challenge_expired"), "behind the lifetime")


def clock_set(machine):
    """the documented limit: with the clock advanced by as much as it is held back, a quote passes"""
    anchored(machine)
    advance_clock(machine, 12_000)
    equal(late(machine, 12), ("ok", "affirming", "replay"), "12 s late with the clock set 12 s ahead")


def in_parallel(tests, machines):
    faults = []

    def guarded(test, machine):
        try:
            test(machine)
        except (Failure, ValueError, KeyError) as failure:
            faults.append(f"{test.__doc__}: {failure}")

    threads = [threading.Thread(target=guarded, args=pair) for pair in zip(tests, machines)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    equal(faults, [], "faults")


def late_quotes(bin_dir):
    """late quotes: passed within the anchor, asked for again beyond it, and never under freshness = asked"""
    tests = [one_step, by_five_more, expired, clock_set]
    with World(bin_dir) as world:
        tpms = [world.make_tpm(f"tpm{i}") for i in range(len(tests))]
        verifier = world.make_verifier()
        verifier.edit("verifier.toml", 'interval = "60s" ', f'challenge_lifetime = "{LIFETIME_S}s"\ninterval = "60s" ')
        verifier.start()
        machines = [world.make_machine(f"machine{i}", tpm) for i, tpm in enumerate(tpms)]
        hosts = [re.search(r'"host_id":"([0-9a-f]{64})"', machine.enroll().stdout).group(1) for machine in machines]
        for machine in machines:
            machine.start_agent()
        in_parallel(tests, machines)
        equal([len(judged(verifier, host)) for host in hosts], [0, 2, 1, 2], "records of judged evidence, host by host")
        for machine in machines:
            anchored(machine)
        verifier.edit("policy.toml", 'freshness = "prefetched"', 'freshness = "asked"')
        old = verifier.ctl("status").stdout
        verifier.process.popen.send_signal(signal.SIGHUP)
        wait_for("the policy that asks", lambda: any(record.get("event") == "policy_loaded" for record in records(verifier.audit).values()))
        expect(verifier.ctl("status").stdout != old, "the policy in force did not change")
        before = len(judged(verifier, hosts[3]))
        advance_clock(machines[3], 6_000)
        equal(late(machines[3], 6), ("fresh_challenge_needed", "none", "fresh_challenge_needed"), "6 s late with the clock set, freshness = asked")
        equal(len(judged(verifier, hosts[3])), before, "records of it")
        anchored(machines[3])


if __name__ == "__main__":
    sys.exit(main(late_quotes))
