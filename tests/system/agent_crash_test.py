#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The agent killed, its register extended by a stranger, its log lost: what the verifier says, and what status and
doctor tell the machine's owner. The policy judges PCR 14. Arguments: BIN_DIR."""
import json
import os
import random
import signal
import sys
import time

from checks import World, equal, expect, main, run

KILLS = 5


def scene(world):
    tpm = world.make_tpm("tpm")
    verifier = world.make_verifier()
    verifier.edit("policy.toml", '"6", "7"]', '"6", "7", "14"]')
    verifier.start()
    machine = world.make_machine("machine", tpm)
    machine.enroll()
    machine.start_agent()
    return machine


def status(machine):
    return json.loads(run([machine.program("assay-agent"), "--config", machine.path("agent.toml"), "status", "--json"]).stdout)


def doctor(machine):
    """(exit code, {check: finding})"""
    done = run([machine.program("assay-agent"), "--config", machine.path("agent.toml"), "doctor", "--json"], check=False)
    report = json.loads(done.stdout)
    equal(report["ok"], done.returncode == 0, "doctor's word and its exit code")
    return done.returncode, {finding["check"]: finding for finding in report["findings"]}


def affirming(machine, when):
    answer = machine.attest()
    equal(answer.get("tier"), "affirming", f"{when}: {answer}")


def contraindicated(machine, code, when):
    answer = machine.attest()
    equal(answer.get("tier"), "contraindicated", f"{when}: {answer}")
    reasons = {reason["code"]: reason for reason in answer["reasons"]}
    expect(code in reasons, f"{when}: no reason {code}: {answer}")
    expect(reasons[code]["fix"], f"{code} names no fix")


def pcr14(machine):
    return machine.tpm.tool("tpm2_pcrread", "sha256:14").stdout.split("0x")[-1].strip().lower()


def killed(bin_dir):
    """killed between and during attestations, the agent appends its identity and the machine stays affirming"""
    dice = random.Random(1)
    with World(bin_dir) as world:
        machine = scene(world)
        affirming(machine, "before")
        entries = status(machine)["log"]["entries"]
        equal(entries, 1, "entries of a first start")
        for number in range(KILLS):
            if number % 2 == 1:
                machine.start_relay()
                time.sleep(dice.uniform(0.0, 0.3))
            machine.stop_agent(sig=signal.SIGKILL)
            machine.stop_relay()
            machine.start_agent()
            affirming(machine, f"after kill {number + 1}")
            shown = status(machine)
            equal(shown["log"]["entries"], entries + number + 1, f"entries after kill {number + 1}: one identity each start")
            equal(shown["log"]["value"], pcr14(machine), "the register and what the log explains")
            equal(shown["log"]["faults"], [], "faults of the log")
        equal(doctor(machine)[1]["log"]["ok"], True, "doctor on the log")
        equal(doctor(machine)[0], 0, "exit of doctor")
        machine.stop_agent()
        machine.start_agent()
        affirming(machine, "after a stop in order")


def stranger(bin_dir):
    """a stranger's extend of PCR 14: runtime_log_mismatch until the machine restarts, and doctor finds it"""
    with World(bin_dir) as world:
        machine = scene(world)
        affirming(machine, "before")
        machine.tpm.tool("tpm2_pcrextend", "14:sha256=" + "5a" * 32)
        contraindicated(machine, "runtime_log_mismatch", "after a stranger's extend")
        code, findings = doctor(machine)
        equal((code, findings["log"]["ok"]), (3, False), "doctor after a stranger's extend")
        expect(findings["log"]["fix"] and "log_foreign_extend" in findings["log"]["detail"], f"doctor does not name the fault and a fix: {findings['log']}")
        machine.stop_agent(sig=signal.SIGKILL)
        machine.start_agent()
        answer = machine.attest()
        equal(answer.get("tier"), "contraindicated", f"a restart of the agent must not wash the extend away: {answer}")
        equal([fault["code"] for fault in status(machine)["log"]["faults"]], ["log_foreign_extend"], "faults after the agent's restart")
        machine.reboot()
        affirming(machine, "after a reboot")
        equal(status(machine)["log"]["faults"], [], "faults after a reboot")
        equal(doctor(machine)[0], 0, "exit of doctor after a reboot")


def lost(bin_dir):
    """a log that was removed or cut within a boot is said to be lost, and a reboot heals it"""
    with World(bin_dir) as world:
        machine = scene(world)
        affirming(machine, "before")
        for how in ("removed", "cut"):
            log = machine.path("state/runtime.log")
            machine.stop_agent(sig=signal.SIGKILL)
            if how == "removed":
                os.unlink(log)
            else:
                os.truncate(log, os.path.getsize(log) // 2)
            machine.start_agent()
            answer = machine.attest()
            equal(answer.get("tier"), "contraindicated", f"log {how}: {answer}")
            codes = [reason["code"] for reason in answer["reasons"]]
            expect("runtime_log_base" in codes, f"log {how}: {answer}")
            equal([fault["code"] for fault in status(machine)["log"]["faults"]], ["log_lost"], f"faults of a log that was {how}")
            code, findings = doctor(machine)
            equal((code, findings["log"]["ok"]), (3, False), f"doctor on a log that was {how}")
            expect("log_lost" in findings["log"]["detail"] and findings["log"]["fix"], f"doctor says {findings['log']}")
            machine.reboot()
            affirming(machine, f"after a reboot that followed a log {how}")


if __name__ == "__main__":
    sys.exit(main(killed, stranger, lost))
