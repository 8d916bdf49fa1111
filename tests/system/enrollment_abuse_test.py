#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Enrollment through the programs, by who should not and by who must ask an operator first: TPM cleared, TPM copied,
another EK, spent tokens, too many attempts, retired keys, a policy that changes under way. Arguments: BIN_DIR."""
import json
import os
import shutil
import signal
import sys

from checks import World, equal, error_code, expect, main, records, verify, wait_for


def host_of(verifier, host):
    return json.loads(verifier.ctl("--json", "hosts", "show", host).stdout)


def refused(done):
    """The code of an enrollment that was refused."""
    expect(done.returncode == 7, f"expected a refusal, exit {done.returncode}: {done.stdout} {done.stderr}")
    return json.loads(done.stdout)["code"]


def attests(machine, when):
    answer = machine.attest()
    equal(answer.get("tier"), "affirming", f"{when}: {answer}")
    return answer


def is_refused(machine, code, when):
    answer = machine.attest()
    equal(error_code(answer), code, f"{when}: {answer}")
    equal(answer["exit"], 5, f"exit of the relay, {when}")


def scene(world, name="machine"):
    tpm = world.make_tpm(name + "-tpm")
    verifier = world.verifier or world.make_verifier()
    if verifier.process is None:
        verifier.start()
    return verifier, world.make_machine(name, tpm)


def cleared(bin_dir):
    """a cleared TPM is refused as tpm_cleared until an operator accepts it, once"""
    with World(bin_dir) as world:
        verifier, machine = scene(world)
        host = json.loads(machine.enroll().stdout)["host_id"]
        machine.reboot()
        machine.reboot()
        attests(machine, "before the clear")
        machine.stop_agent()
        machine.tpm.tool("tpm2_clear", "-c", "p")
        machine.tpm.power_off()
        machine.tpm.power_on()
        shutil.rmtree(machine.path("state"))
        os.makedirs(machine.path("state"), mode=0o700)
        again = json.loads(machine.enroll().stdout)
        equal(again["host_id"], host, "host id of the cleared TPM: the same EK")
        machine.start_agent()
        is_refused(machine, "tpm_cleared", "after TPM2_Clear")
        is_refused(machine, "tpm_cleared", "asked twice")
        equal(verifier.ctl("hosts", "accept-reset", host, check=False).returncode, 2, "accept-reset without a reason")
        is_refused(machine, "tpm_cleared", "after a change that was refused")
        verifier.ctl("hosts", "accept-reset", host, "--reason", "board serviced, TPM cleared by us")
        attests(machine, "after the operator's consent")
        attests(machine, "and again")
        outcomes = [record["outcome"] for record in records(verifier.audit).values() if record["type"] == "attest"]
        equal(outcomes, ["judged", "tpm_cleared", "tpm_cleared", "tpm_cleared", "judged", "judged"], "what the trail says")
        verify(verifier)


def cloned(bin_dir):
    """a copied TPM that enrolls again stays cloned_state, and a restored older store does not help it"""
    with World(bin_dir) as world:
        verifier, machine = scene(world)
        host = json.loads(machine.enroll().stdout)["host_id"]
        machine.start_agent()
        attests(machine, "before the copy")
        machine.stop_agent()
        machine.tpm.power_off()
        machine.tpm.copy_state(world.path("tpm-copy"))
        verifier.stop()
        shutil.copytree(verifier.path("state"), world.path("old-state"))
        verifier.start()
        machine.tpm.power_on()
        machine.start_agent()
        machine.reboot()
        attests(machine, "two boots later")
        machine.stop_agent()
        machine.tpm.power_off()
        machine.tpm.copy_state(world.path("tpm-newest"))
        machine.tpm.restore_state(world.path("tpm-copy"))
        machine.tpm.power_on()
        shutil.rmtree(machine.path("state"))
        os.makedirs(machine.path("state"), mode=0o700)
        again = json.loads(machine.enroll("--aik-handle", "0x81010101").stdout)
        equal(again["host_id"], host, "the copy's host id")
        machine.start_agent()
        is_refused(machine, "cloned_state", "the copy, enrolled again")
        verifier.stop(sig=signal.SIGKILL)
        verifier.start()
        is_refused(machine, "cloned_state", "the copy, after a crash of the verifier")
        verifier.stop(sig=signal.SIGKILL)
        for name in os.listdir(verifier.path("state")):
            if name.startswith("store.sqlite"):
                os.unlink(verifier.path("state", name))
        for name in os.listdir(world.path("old-state")):
            if name.startswith("store.sqlite"):
                shutil.copy(os.path.join(world.path("old-state"), name), verifier.path("state", name))
        verifier.start()
        is_refused(machine, "attester_unknown", "the copy, with a store from before its enrollment")
        machine.stop_agent()
        shutil.rmtree(machine.path("state"))
        os.makedirs(machine.path("state"), mode=0o700)
        machine.enroll("--aik-handle", "0x81010102")
        machine.start_agent()
        is_refused(machine, "cloned_state", "the copy, enrolled with an older store: the trail's clocks win")
        verify(verifier)


def other_ek(bin_dir):
    """a high-range P-384 EK is refused by default, and weak where the policy names it; SIGHUP brings that policy in"""
    with World(bin_dir) as world:
        verifier, machine = scene(world)
        equal(refused(machine.enroll("--ek", "p384-high", check=False)), "ek_kind_not_allowed", "p384-high by default")
        expect(not os.path.exists(machine.record), "a refused enrollment left a record")
        shown = json.loads(verifier.ctl("--json", "status").stdout)
        with open(verifier.path("policy.toml"), encoding="utf-8") as handle:
            good = handle.read()
        with open(verifier.path("policy.toml"), "w", encoding="utf-8") as out:
            out.write(good + "\nno_such_key = 1\n")
        verifier.process.popen.send_signal(signal.SIGHUP)
        wait_for("the refusal of a bad policy", lambda: any(record.get("event") == "policy_refused" for record in records(verifier.audit).values()))
        equal(json.loads(verifier.ctl("--json", "status").stdout)["policy"], shown["policy"], "policy in force after a bad file")
        equal(refused(machine.enroll("--ek", "p384-high", check=False)), "ek_kind_not_allowed", "p384-high under the old policy")
        with open(verifier.path("policy.toml"), "w", encoding="utf-8") as out:
            out.write(good.replace('ek = "chain"\n', 'ek = "chain"\nother_eks = ["p384-high"]\n'))
        verifier.process.popen.send_signal(signal.SIGHUP)
        wait_for("the new policy", lambda: json.loads(verifier.ctl("--json", "status").stdout)["policy"] != shown["policy"])
        record = json.loads(machine.enroll("--ek", "p384-high").stdout)
        equal(record["device_id_strength"], "weak", "strength of a high-range EK")
        machine.start_agent()
        answer = machine.attest()
        equal(answer.get("tier"), "warning", f"a weak device id: {answer}")
        expect("weak_device_id" in [reason["code"] for reason in answer["reasons"]], f"the reason is not named: {answer}")


def tokens(bin_dir):
    """where the policy asks for enrollment tokens each one works once"""
    with World(bin_dir) as world:
        tpm, other_tpm = world.make_tpm("tpm"), world.make_tpm("other-tpm")
        verifier = world.make_verifier()
        verifier.edit("policy.toml", 'mode = "open"', 'mode = "token"')
        verifier.start()
        machine, other = world.make_machine("machine", tpm), world.make_machine("other", other_tpm)
        equal(refused(machine.enroll(check=False)), "enrollment_token_missing", "without a token")
        made = json.loads(verifier.ctl("--json", "tokens", "create-enrollment", "--reason", "one machine").stdout)
        secret = made["token"]
        with open(world.path("token"), "w", encoding="utf-8") as out:
            out.write(secret + "\n")
        os.chmod(world.path("token"), 0o600)
        machine.enroll("--token-file", world.path("token"))
        equal(refused(other.enroll("--token-file", world.path("token"), check=False)), "enrollment_token_invalid", "a spent token")
        with open(world.path("token"), "w", encoding="utf-8") as out:
            out.write(secret[:-1] + ("A" if secret[-1] != "A" else "B") + "\n")
        equal(refused(other.enroll("--token-file", world.path("token"), check=False)), "enrollment_token_invalid", "a token that was never made")
        equal(len(json.loads(verifier.ctl("--json", "hosts", "list").stdout)["hosts"]), 1, "hosts")
        expect(secret not in json.dumps(list(records(verifier.audit).values())), "the trail holds the token itself")


def begin_limits(bin_dir):
    """too many attempts from one source: refused by name, and others are not"""
    with World(bin_dir) as world:
        tpm = world.make_tpm("tpm")
        verifier = world.make_verifier()
        verifier.edit("verifier.toml", "begin_per_source_minute = 1000\n", "begin_per_source_minute = 3\n")
        verifier.start()
        machine = world.make_machine("machine", tpm)
        for _ in range(3):
            equal(refused(machine.enroll("--ek", "p384-high", check=False)), "ek_kind_not_allowed", "an attempt within the limit")
        equal(refused(machine.enroll(check=False)), "begin_limit_source", "the fourth attempt within a minute")
        equal(json.loads(verifier.ctl("--json", "hosts", "list").stdout)["hosts"], [], "hosts")


def life_of_a_key(bin_dir):
    """renewed, rotated, removed: the old AIK is refused as aik_retired, a removed machine is not enrolled"""
    with World(bin_dir) as world:
        verifier, machine = scene(world)
        first = json.loads(machine.enroll().stdout)
        equal(machine.enroll(check=False).returncode, 4, "exit of a second enrollment")
        renewed = json.loads(machine.enroll(command="renew").stdout)
        equal((renewed["host_id"], renewed["generation"]), (first["host_id"], first["generation"]), "renewed")
        machine.start_agent()
        attests(machine, "after a renewal")
        shutil.copytree(machine.path("state"), world.path("old-machine-state"))
        machine.stop_agent()
        rotated = json.loads(machine.enroll(command="rotate").stdout)
        equal((rotated["host_id"], rotated["generation"]), (first["host_id"], first["generation"] + 1), "rotated")
        machine.start_agent()
        attests(machine, "after a rotation")
        stale = machine.probe("impersonate", record=os.path.join(world.path("old-machine-state"), "enrollment.toml"))[0]
        equal(stale["code"], "aik_retired", f"evidence in the old AIK's name: {stale}")
        verifier.stop(sig=signal.SIGKILL)
        verifier.start()
        stale = machine.probe("impersonate", record=os.path.join(world.path("old-machine-state"), "enrollment.toml"))[0]
        equal(stale["code"], "aik_retired", f"the old AIK after a restart: {stale}")
        attests(machine, "the new AIK after a restart")
        machine.stop_agent()
        equal(machine.enroll(command="remove", check=False).returncode, 2, "exit of remove without --yes")
        machine.enroll("remove", command="--yes")
        expect(not os.path.exists(machine.record), "remove left the record")
        equal(machine.enroll(command="status", check=False).returncode, 3, "exit of status after remove")
        handles = machine.tpm.tool("tpm2_getcap", "handles-persistent").stdout
        expect("0x81010100" not in handles, f"remove left the AIK in the TPM: {handles}")
        machine.enroll()
        machine.start_agent()
        attests(machine, "enrolled anew")


if __name__ == "__main__":
    sys.exit(main(cleared, cloned, other_ek, tokens, begin_limits, life_of_a_key))
