#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""SIGKILL of the verifier before each system call of one attestation, one after the other: request read, record
written (whole, or torn in half), barrier, reply, verdict row. Between check and fence there is no call, and nothing
outside the process changes. After each restart: the trail verifies, holds what was answered, at most one record more
than was answered, and the machine attests. Arguments: BIN_DIR."""
import sys
import time

from checks import Failure, Fault, World, ask, check_answer, equal, expect, main, records, verify

MOST = 60


def attested(trail):
    return sum(1 for record in trail.values() if record["type"] == "attest")


def one_kill(world, machine, fault, order):
    """(answer, records of attestations that it added, was the verifier killed)"""
    verifier = world.verifier
    verifier.start(env=fault.env)
    before = attested(records(verifier.audit))
    fault.order(order)
    answer = machine.attest()
    end = time.monotonic() + 1  # what follows the answer, the verdict's row, gets its turn
    while verifier.process.alive() and time.monotonic() < end:
        time.sleep(0.02)
    killed = not verifier.process.alive()
    trace = fault.trace()
    fault.clear()
    verifier.stop(sig=9)
    trail = records(verifier.audit)
    added = attested(trail) - before
    expect(added <= 1, f"{order}: one submission left {added} records")
    if answer.get("tier"):
        check_answer(trail, answer)
        equal(added, 1, f"{order}: records of an answered attestation")
    return answer, added, killed, trace


def recover(world, machine, answers, order):
    """Everything that was ever answered stands in the verified trail, and the verifier serves."""
    verifier = world.verifier
    verifier.start()
    verify(verifier)
    trail = records(verifier.audit)
    for answer in answers:
        check_answer(trail, answer)
    equal(ask(verifier, "GET", "/readyz")[0], 200, f"/readyz after {order}")
    again = machine.attest()
    equal(again.get("tier"), "affirming", f"the attestation after {order}")
    answers.append(again)
    verifier.stop(sig=9)


def enumerate_kills(world, machine, fault, answers, kinds):
    """Kills before the first, second, ... call until an attestation has no more of them; the calls."""
    calls = []
    for number in range(1, MOST):
        order = f"kill {number} {kinds}"
        answer, _, killed, trace = one_kill(world, machine, fault, order)
        if answer.get("tier"):
            answers.append(answer)
        recover(world, machine, answers, order)
        if not killed:
            return calls
        calls.append(tuple(trace[-1][1:]))
    raise Failure(f"one attestation has more than {MOST} calls on {kinds}")


def killed_at_each_call(bin_dir):
    """killed before each call of one attestation, the trail stays whole and holds what was answered"""
    with World(bin_dir) as world:
        tpm = world.make_tpm("tpm")
        verifier = world.make_verifier()
        fault = Fault(world)
        machine = world.make_machine("machine", tpm)
        verifier.start()
        machine.enroll()
        machine.start_agent()
        equal(machine.attest().get("tier"), "affirming", "the first attestation")
        verifier.stop(sig=9)
        answers = []
        calls = enumerate_kills(world, machine, fault, answers, "audit")
        equal([call for call, _ in calls], ["pwrite", "fdatasync"], "calls on the trail in one attestation")
        answer, added, killed, _ = one_kill(world, machine, fault, "kill 1 reply")
        expect(killed and not answer.get("tier"), f"not killed before the reply: {answer}")
        equal(added, 1, "records when killed between barrier and reply")
        recover(world, machine, answers, "kill 1 reply")
        calls += enumerate_kills(world, machine, fault, answers, "net")
        for wanted in ("recv", "send"):
            expect(any(kind == "net" and call.startswith(wanted) for call, kind in calls), f"never killed at {wanted}: {calls}")
        print("        killed before: " + ", ".join(f"{call} of {kind}" for call, kind in calls))


def torn_record(bin_dir):
    """killed in the middle of writing a record, the torn tail is set aside and nothing answered is lost"""
    with World(bin_dir) as world:
        tpm = world.make_tpm("tpm")
        verifier = world.make_verifier()
        fault = Fault(world)
        machine = world.make_machine("machine", tpm)
        verifier.start()
        machine.enroll()
        machine.start_agent()
        answers = [machine.attest()]
        verifier.stop(sig=9)
        answer, added, killed, trace = one_kill(world, machine, fault, "tear 1 audit")
        expect(killed and trace and trace[-1][1:] == ["pwrite", "audit"], f"the record was not torn: {trace}")
        expect(not answer.get("tier"), f"answered without a record: {answer}")
        equal(added, 0, "whole records of a torn write")
        recover(world, machine, answers, "tear")


def killed_at_the_store(bin_dir):
    """killed while the verdict's row is written, the answer stands and the store serves on"""
    with World(bin_dir) as world:
        tpm = world.make_tpm("tpm")
        verifier = world.make_verifier()
        fault = Fault(world)
        machine = world.make_machine("machine", tpm)
        verifier.start()
        machine.enroll()
        machine.start_agent()
        verifier.stop(sig=9)
        answers = []
        for number in (1, 2, 3, 5):
            order = f"kill {number} store"
            answer, _, killed, trace = one_kill(world, machine, fault, order)
            expect(killed and trace[-1][2] == "store", f"{order}: not killed at the store: {trace}")
            if answer.get("tier"):
                answers.append(answer)
            recover(world, machine, answers, order)


if __name__ == "__main__":
    sys.exit(main(killed_at_each_call, torn_record, killed_at_the_store))
