#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A full disk and a failing fsync below the audit trail of a running verifier: nothing is answered as judged, /readyz
and the metrics say so, a disk that works again does not bring the log back by itself, a restart does. The store is the
other way: it holds nothing that the trail does not. Arguments: BIN_DIR."""
import errno
import json
import sys

from checks import Fault, World, ask, check_answer, equal, error_code, expect, main, metric, records, verify, wait_for


def scene(world):
    tpm = world.make_tpm("tpm")
    verifier = world.make_verifier()
    fault = Fault(world)
    machine = world.make_machine("machine", tpm)
    verifier.start(env=fault.env)
    machine.enroll()
    machine.start_agent()
    return verifier, fault, machine


def stopped(verifier, machine, host):
    """What everybody sees of a verifier whose trail has stopped."""
    status, body = ask(verifier, "GET", "/readyz")
    equal((status, body), (503, b"not ready\n"), "/readyz")
    equal(ask(verifier, "GET", "/healthz")[0], 200, "/healthz")
    equal(metric(verifier, "assay_ready"), 0.0, "assay_ready")
    expect(metric(verifier, "assay_audit_failures_total") >= 1, "the metrics count no audit failure")
    again = machine.attest()
    equal(error_code(again), "audit_unavailable", f"the next attestation: {again}")
    operator = verifier.ctl("hosts", "show", host, check=False)
    expect(operator.returncode == 1 and not operator.stdout and "[unavailable]" in operator.stderr, f"an operator read host data without a record: {operator}")


def break_and_mend(bin_dir, number, first):
    with World(bin_dir) as world:
        verifier, fault, machine = scene(world)
        host = json.loads(machine.enroll(command="status").stdout)["host_id"]
        answers = [machine.attest()]
        equal(answers[0].get("tier"), "affirming", "before the fault")
        before = records(verifier.audit)
        equal(metric(verifier, "assay_ready"), 1.0, "assay_ready before the fault")
        fault.order(f"fail {number} {first} audit")
        refused = machine.attest()
        equal(error_code(refused), "audit_unavailable", f"the attestation under the fault: {refused}")
        expect(not refused.get("tier"), f"a tier was answered: {refused}")
        stopped(verifier, machine, host)
        stranger = world.make_machine("stranger", world.make_tpm("stranger-tpm"))
        enrolled = stranger.enroll(check=False)
        expect(enrolled.returncode != 0 and json.loads(enrolled.stdout)["code"] == "audit_unavailable", f"enrolled without a record: {enrolled.stdout}")
        fault.clear()
        equal(error_code(machine.attest()), "audit_unavailable", "after the disk came back, without a restart")
        equal(ask(verifier, "GET", "/readyz")[0], 503, "/readyz after the disk came back, without a restart")
        verifier.stop()
        verifier.start()
        equal(ask(verifier, "GET", "/readyz")[0], 200, "/readyz after the restart")
        verify(verifier)
        trail = records(verifier.audit)
        for sequence, record in before.items():
            equal(trail.get(sequence), record, f"record {sequence} after the restart")
        check_answer(trail, answers[0])
        listed = json.loads(verifier.ctl("hosts", "list", "--json").stdout)
        expect(host in json.dumps(listed), f"the enrolled host is gone: {listed}")
        equal(len(listed["hosts"]), 1, "hosts after the restart: the one that was not recorded must not be there")
        again = machine.attest()
        equal(again.get("tier"), "affirming", f"after the restart: {again}")
        stranger.enroll()
        check_answer(records(verifier.audit), again)


def disk_full(bin_dir):
    """a full disk while a record is written"""
    break_and_mend(bin_dir, errno.ENOSPC, 1)


def sync_fails(bin_dir):
    """a failing fdatasync: the record may be on disk, the answer is refused"""
    break_and_mend(bin_dir, errno.EIO, 2)


def store_full(bin_dir):
    """a full disk below the store: verdicts go on, for the trail holds them; enrollments are refused; both heal"""
    with World(bin_dir) as world:
        verifier, fault, machine = scene(world)
        stranger = world.make_machine("stranger", world.make_tpm("stranger-tpm"))
        equal(machine.attest().get("tier"), "affirming", "before the fault")
        fault.order(f"fail {errno.ENOSPC} 1 store")
        answer = machine.attest()
        equal(answer.get("tier"), "affirming", f"under the fault: {answer}")
        check_answer(records(verifier.audit), answer)
        wait_for("a failed row to show in the metrics", lambda: metric(verifier, "assay_verdict_write_failures") >= 1)
        enrolled = stranger.enroll(check=False)
        expect(enrolled.returncode != 0 and json.loads(enrolled.stdout)["code"] == "store_unavailable", f"enrolled without a store: {enrolled.stdout}")
        equal(ask(verifier, "GET", "/readyz")[0], 200, "/readyz: the trail takes records")
        fault.clear()
        stranger.enroll()
        again = machine.attest()
        equal(again.get("tier"), "affirming", "when the disk is there again")
        wait_for("the rows to be written", lambda: metric(verifier, "assay_verdict_write_failures") == 0)
        verifier.stop(sig=9)
        verifier.start()
        verify(verifier)
        for held in (answer, again):
            check_answer(records(verifier.audit), held)
        equal(machine.attest().get("tier"), "affirming", "after the restart")


if __name__ == "__main__":
    sys.exit(main(disk_full, sync_fails, store_full))
