#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The main job, end to end, on a real TPM protocol: eight steps, each with the evidence for it. Run by scripts/demo."""
import argparse
import json
import os
import shutil
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Failure, Manufacturer, Process, World, run, wait_for  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
ZEROS = "0" * 64
MECHANISMS = {"clock": 7, "binding": 5, "selection": 4, "ek-chain": 1, "audit-mac": 8}  # and the step each one carries


def expect(condition, what):
    if not condition:
        raise Failure(what)


class Demo:
    def __init__(self, world, without, say):
        self.world = world
        self.without = without
        self.say = say
        self.evidence = {}
        self.machine = None

    def note(self, line):
        self.evidence.setdefault(self.step, []).append(line)
        self.say("     " + line)

    # -- what the steps share
    def reasons(self, answer):
        return ", ".join(reason["code"] for reason in answer.get("reasons", [])) or "no reasons"

    def affirming(self, when):
        answer = self.machine.attest()
        expect(answer.get("tier") == "affirming", f"{when}: expected affirming, got {answer}")
        return answer

    def join(self, *game_arguments, server_arguments=(), machine=None):
        """One player joins the example game server; (server's JSON, game's JSON)."""
        world, verifier = self.world, self.world.verifier
        machine = machine or self.machine
        with open(world.path("jwks.json"), "w", encoding="utf-8") as out:
            out.write(verifier.curl("/.well-known/jwks.json"))
        with open(world.path("revocations.jws"), "w", encoding="utf-8") as out:
            out.write(verifier.curl("/v1/revocations"))
        port_file = world.path("game-server.port")
        if os.path.exists(port_file):
            os.unlink(port_file)
        log = world.path("game-server.log")
        if os.path.exists(log):
            os.unlink(log)
        server = Process([os.path.join(world.bin, "assay-example-server"), "--jwks", world.path("jwks.json"), "--revocations", world.path("revocations.jws"),
                          "--issuer", self.issuer, "--audience", "demo-title", "--title-key", verifier.path("keys", "title.key"), "--match", "match-7",
                          "--port", "0", "--port-file", port_file, *server_arguments], log)
        try:
            def port_of():
                if not os.path.exists(port_file):
                    return ""
                with open(port_file, encoding="utf-8") as handle:
                    return handle.read().strip()

            port = wait_for("the game server", port_of)
            game = run([os.path.join(world.bin, "assay-example-game"), "--port", port, "--agent-socket", machine.socket, *game_arguments], check=False)
            server.popen.wait(30)
        finally:
            server.stop()
        with open(log, encoding="utf-8") as handle:
            lines = [line for line in handle.read().splitlines() if line.startswith("{")]
        expect(lines, f"the game server printed no verdict; the game said: {game.stdout.strip()} {game.stderr.strip()}")
        return json.loads(lines[-1]), game.stdout.strip()

    # -- the steps
    def enrolled(self):
        """enrolled by credential activation against the EK chain"""
        world = self.world
        record = json.loads(self.machine.enroll("--label", "demo-machine").stdout)
        self.host = record["host_id"]
        expect(record["device_id_strength"] == "strong", f"the EK was not proved canonical: {record}")
        self.note(f"host id {self.host[:16]}..., AIK generation {record['generation']}, EK proved canonical by TPM2_CertifyCreation")
        run(["openssl", "x509", "-in", record["certificate"], "-noout", "-subject"])
        self.note("the AIK certificate is X.509: " + record["certificate"].replace(world.directory, "DIR"))
        stranger = world.make_tpm("stranger-tpm", Manufacturer(world.path("unknown-manufacturer")))
        refused = world.make_machine("stranger", stranger).enroll(check=False)
        code = json.loads(refused.stdout or "{}").get("code", "")
        expect(refused.returncode != 0 and code == "ek_chain_untrusted", f"a TPM of an unknown manufacturer was not refused: {refused.stdout}")
        self.note(f"a TPM whose EK certificate chains to no configured root: refused, {code}")

    def attested(self):
        """attested: affirming, under a policy that says by name that it asks nothing of the runtime"""
        self.machine.start_agent()
        answer = self.affirming("a clean machine")
        self.note(f"tier affirming, audit record {answer['audit_sequence']}, {self.reasons(answer)}")
        shown = json.loads(self.world.verifier.ctl("status", "--json").stdout)
        policy = shown.get("policy", str(shown))
        expect("asks nothing of the runtime" in json.dumps(shown), f"the policy does not say what it asks: {shown}")
        self.note(f"policy in force: {policy[:60]}")

    def token_verified(self):
        """a game server verified the result token and a host token offline"""
        self.machine.start_relay()
        try:
            verdict, _ = self.join("--key", self.world.path("player1.pem"), "--save-token", self.world.path("player1.token"), server_arguments=("--save-nonce", self.world.path("player1.nonce")))
        finally:
            self.machine.stop_relay()
        expect(verdict["accepted"] and verdict["result_token"] == "ok" and verdict["host_token"] == "ok", f"the player was not accepted: {verdict}")
        self.note(f"result token: tier {verdict['tier']}, device id {verdict['device_id'][:12]}..., runtime_anchor {verdict['runtime_anchor']}, gate {verdict['gate']}")
        self.note(f"host token: a fresh quote at TPM clock {verdict['tpm_clock_ms']} ms, same boot, same PCRs")

    def pcr_contraindicated(self):
        """a PCR extended outside the policy: contraindicated, the reason names PCR and values"""
        self.machine.tpm.tool("tpm2_pcrextend", "4:sha256=" + "ab" * 32)
        try:
            self.tampered()
        finally:
            self.machine.reboot()
        self.affirming("after a reboot")
        self.note("after a reboot: affirming again")

    def tampered(self):
        answer = self.machine.attest()
        reason = next((r for r in answer.get("reasons", []) if r["code"] == "pcr_value"), None)
        expect(answer.get("tier") == "contraindicated" and reason, f"expected contraindicated with pcr_value: {answer}")
        expect("PCR 4" in reason["detail"] and ZEROS in reason["detail"], f"the reason does not name PCR and values: {reason}")
        self.note("contraindicated: " + reason["detail"][:74] + "...")
        steps = self.machine.probe("omit-pcr", "--pcr", "4")
        expect(steps[0]["code"] == "pcr_selection_mismatch", f"a quote that leaves PCR 4 out was not refused: {steps}")
        self.note("root leaves PCR 4 out of the quote and lies about it: refused, pcr_selection_mismatch")

    def replay_refused(self):
        """replayed and forwarded evidence refused; another player's result token refused"""
        steps = {step["step"]: step for step in self.machine.probe("replay", "--save", self.world.path("evidence.cbor"))}
        expect(steps["first"]["code"] == "ok", f"genuine evidence was refused: {steps}")
        expect(steps["again"]["code"] == "replay", f"the same evidence was accepted twice: {steps}")
        self.note("the same evidence again: refused, replay")
        forwarded = self.machine.probe("forward")[0]
        expect(forwarded["code"] == "binding_mismatch", f"evidence of another connection was accepted: {forwarded}")
        self.note("fresh evidence on another connection: refused, binding_mismatch")
        verdict, _ = self.join("--key", self.world.path("player2.pem"), "--present-token", self.world.path("player1.token"),
                               server_arguments=("--nonce-from", self.world.path("player1.nonce"), "--no-host-token"))
        expect(not verdict["accepted"] and "key" in verdict["code"], f"another player's token was not refused for its cnf: {verdict}")
        self.note(f"another player's result token on this channel: refused, {verdict['code']}")

    def impersonation_refused(self):
        """a second TPM presenting the first host's AIK certificate, and one claiming its id, refused"""
        world = self.world
        second = world.make_tpm("second-tpm")
        other = world.make_machine("second", second)
        own = json.loads(other.enroll().stdout)
        expect(own["host_id"] != self.host, "two TPMs have one host id")
        shutil.copy(self.machine.record, world.path("stolen-record.toml"))
        answer = other.probe("impersonate", tcti=second.tcti, record=world.path("stolen-record.toml"))[0]
        expect(answer["code"] == "signature_invalid", f"another TPM's quote under the first host's AIK was accepted: {answer}")
        self.note("its quote under the first host's AIK: refused, signature_invalid")
        third = world.make_tpm("third-tpm")
        nv = world.path("victim-ek.der")
        self.machine.tpm.tool("tpm2_nvread", "0x1c00002", "-o", nv)
        claimed = world.make_machine("third", third).enroll("--ek-certificate", nv, check=False)
        code = json.loads(claimed.stdout or "{}").get("code", "")
        expect(claimed.returncode != 0 and code == "ek_key_mismatch", f"a TPM that presents another's EK certificate was not refused: {claimed.stdout} {claimed.stderr}")
        self.note(f"a third TPM that presents the first's EK certificate: refused, {code}")

    def clone_refused(self):
        """a copied TPM state refused by its counters; a power cut is not refused"""
        machine, tpm = self.machine, self.machine.tpm
        self.affirming("before the copy")
        machine.stop_agent()
        tpm.power_off()
        tpm.copy_state(self.world.path("tpm-copy"))
        for boot in (1, 2):
            tpm.power_on()
            machine.start_agent()
            self.affirming(f"boot {boot} after the copy")
            machine.stop_agent()
            tpm.cut_power() if boot == 2 else tpm.power_off()
        tpm.power_on()
        machine.start_agent()
        answer = self.affirming("after a power cut")
        self.note(f"after a power cut (SIGKILL of the TPM): affirming, {self.reasons(answer)}")
        machine.stop_agent()
        tpm.power_off()
        tpm.copy_state(self.world.path("tpm-newest"))
        tpm.restore_state(self.world.path("tpm-copy"))
        tpm.power_on()
        machine.start_agent()
        try:
            refused = machine.attest()
        finally:
            machine.stop_agent()
            tpm.power_off()
            tpm.restore_state(self.world.path("tpm-newest"))
            tpm.power_on()
            machine.start_agent()
        code = refused.get("error", {}).get("code")
        expect(code == "cloned_state", f"the restored copy was not refused: {refused}")
        self.note(f"the first copy, two boots behind: refused, {code}")
        self.affirming("the original")
        self.note("the original: affirming")

    def audit_verified(self):
        """the audit trail verified, then one byte flipped in a copy and the break located"""
        world, verifier = self.world, self.world.verifier
        ctl = "assayctl-without-audit-mac" if self.without == "audit-mac" else "assayctl"
        whole = json.loads(verifier.ctl("audit", "verify", verifier.audit, "--key", verifier.audit_key, "--json", program=ctl).stdout)
        expect(whole["ok"], f"the trail does not verify: {whole}")
        self.note(f"{whole['records']} records verified")
        copy = world.path("audit-copy")
        shutil.copytree(verifier.audit, copy)
        wanted = b'"tier":"contraindicated"'
        segment = next(path for path in sorted(os.path.join(copy, name) for name in os.listdir(copy)) if wanted in open(path, "rb").read())
        with open(segment, "r+b") as handle:
            content = handle.read()
            at = content.index(wanted) + len(b'"tier":"')
            handle.seek(at)
            handle.write(bytes([content[at] ^ 1]))
        broken = verifier.ctl("audit", "verify", copy, "--key", verifier.audit_key, "--json", check=False, program=ctl)
        report = json.loads(broken.stdout)
        expect(broken.returncode != 0 and not report["ok"] and report["faults"], "a flipped byte in the trail was not found")
        fault = report["faults"][0]
        self.note(f"one byte flipped in a copy: {fault['class']} in segment {fault['segment']}, record {fault['record']}, byte {fault['offset']}")
        expect(fault["offset"] <= at, f"the fault is placed behind the flipped byte {at}: {fault}")

    def run(self):
        world = self.world
        self.say("0    making a TPM with a manufacturer's EK certificate, a verifier and its policy")
        tpm = world.make_tpm("tpm")
        verifier = world.make_verifier()
        verifier.judge_pcr(4, ZEROS)
        self.issuer = next(line.split('"')[1] for line in open(verifier.path("verifier.toml"), encoding="utf-8") if line.startswith("issuer"))
        verifier.start()
        self.machine = world.make_machine("machine", tpm)
        results = {}
        steps = [self.enrolled, self.attested, self.token_verified, self.pcr_contraindicated, self.replay_refused, self.impersonation_refused,
                 self.clone_refused, self.audit_verified]
        for number, step in enumerate(steps, 1):
            self.step = step.__name__
            self.say(f"{number}    {step.__doc__}")
            try:
                step()
                results[self.step] = True
                self.say("     ok")
            except (Failure, OSError, KeyError, ValueError, IndexError) as failure:
                results[self.step] = False
                self.evidence.setdefault(self.step, []).append("FAILED: " + str(failure))
                self.say("     FAILED: " + str(failure))
        return results


def kept_commands(world):
    d = world.directory
    return f"""Kept in {d}:
  evidence.cbor, player1.token, jwks.json, revocations.jws, machine/state/ (enrollment record and AIK certificate),
  verifier/ (configuration, policy, keys, store, audit trail)
Confirm with other tools:
  openssl x509 -in {d}/machine/state/aik.pem -noout -subject -dates
  openssl verify -CAfile {d}/verifier/keys/enroll_ca.pem {d}/machine/state/aik.pem
  openssl x509 -in {d}/machine/state/aik.pem -noout -pubkey > {d}/aik.pub
  python3 {HERE}/split_evidence.py {d}/evidence.cbor {d}/split
  tpm2_checkquote -u {d}/aik.pub -m {d}/split/quote.msg -s {d}/split/quote.sig -g sha256 -q $(cat {d}/split/extra_data.hex)
  openssl dgst -sha256 -verify {d}/aik.pub -signature {d}/split/quote.sig.raw {d}/split/quote.msg
  test "$(openssl dgst -sha256 -r {d}/split/pcrs.bin | cut -c1-64)" = "$(cat {d}/split/pcr_digest.hex)"
  grep -a '"type":"attest"' {d}/verifier/state/audit/*"""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one summary object at the end, nothing else on stdout")
    parser.add_argument("--keep", metavar="DIR", help="keep quotes, keys, tokens and trail in this empty directory")
    parser.add_argument("--without", choices=sorted(MECHANISMS), help="use a test build with this mechanism disabled: must fail at exactly its step")
    parser.add_argument("--bin", required=True, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    say = (lambda line: print(line, file=sys.stderr)) if arguments.json else print
    program = "assay-verifier"
    if arguments.without and arguments.without != "audit-mac":
        program = "assay-verifier-without-" + arguments.without
    started = time.monotonic()
    results = {}
    evidence = {}
    try:
        with World(arguments.bin, keep=os.path.abspath(arguments.keep) if arguments.keep else None, verifier_program=program) as world:
            demo = Demo(world, arguments.without, say)
            results = demo.run()
            evidence = demo.evidence
            if arguments.keep:
                say(kept_commands(world))
    except Failure as failure:
        say("FAILED: " + str(failure))
    ok = len(results) == 8 and all(results.values())
    if arguments.json:
        print(json.dumps({"ok": ok, **results, "evidence": evidence, "seconds": round(time.monotonic() - started, 1)}))
    else:
        failed = [name for name, value in results.items() if not value]
        print(f"{'All eight steps hold' if ok else 'FAILED: ' + ', '.join(failed)} ({time.monotonic() - started:.0f} s)")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
