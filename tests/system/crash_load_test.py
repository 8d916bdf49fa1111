#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The verifier killed with SIGKILL at random times while several machines attest: nothing that was answered is
missing from the verified trail, no evidence of before is accepted afterwards. Arguments: BIN_DIR [KILLS [SEED]]."""
import json
import random
import sys
import threading
import time

from checks import Failure, World, ask, attest_code, check_answer, equal, expect, main, records, verify

KILLS = int(sys.argv[2]) if len(sys.argv) > 2 else 15
SEED = int(sys.argv[3]) if len(sys.argv) > 3 else int(time.time())
MACHINES = 3


class Load:
    """Machines that attest without pause, each in a thread of its own; every answer with a tier is kept."""

    def __init__(self, machines):
        self.answers = []
        self.faults = []
        self.unreached = 0
        self.lock = threading.Lock()
        self.ended = threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(machine,)) for machine in machines]
        for thread in self.threads:
            thread.start()

    def run(self, machine):
        while not self.ended.is_set():
            try:
                answer = machine.attest()
            except Failure as failure:
                with self.lock:
                    self.faults.append(str(failure))
                return
            with self.lock:
                if answer.get("tier"):
                    self.answers.append(answer)
                elif answer["exit"] == 6:
                    self.unreached += 1
                else:
                    self.faults.append(json.dumps(answer))

    def end(self):
        self.ended.set()
        for thread in self.threads:
            thread.join()

    def taken(self):
        with self.lock:
            return list(self.answers)


def killed_under_load(bin_dir):
    """killed at random under load, the trail holds every answer and no old evidence is accepted"""
    print(f"        {KILLS} kills, seed {SEED}")
    dice = random.Random(SEED)
    with World(bin_dir) as world:
        tpms = [world.make_tpm(f"tpm{i}") for i in range(MACHINES)]
        verifier = world.make_verifier()
        verifier.start()
        machines = [world.make_machine(f"machine{i}", tpm) for i, tpm in enumerate(tpms)]
        for machine in machines:
            machine.enroll()
            machine.start_agent()
        saved = world.path("evidence.cbor")
        first = {step["step"]: step["code"] for step in machines[0].probe("replay", "--save", saved)}
        equal((first["first"], first["again"]), ("ok", "replay"), "the evidence that is kept for later")
        with open(saved, "rb") as handle:
            evidence = handle.read()
        load = Load(machines)
        try:
            for kill in range(KILLS):
                time.sleep(dice.uniform(0.05, 0.9))
                verifier.stop(sig=9)
                held = load.taken()
                verifier.start()
                verify(verifier, at_least=len(held))
                trail = records(verifier.audit)
                for answer in held:
                    check_answer(trail, answer)
                equal(attest_code(verifier, evidence), (403, "challenge_foreign"), f"evidence of before, after kill {kill + 1}")
        finally:
            load.end()
        equal(load.faults, [], "answers that no kill explains")
        for machine in machines:
            equal(machine.attest().get("tier"), "affirming", "at the end")
        trail = records(verifier.audit)
        for answer in load.taken():
            check_answer(trail, answer)
        expect(len(load.answers) >= KILLS, f"only {len(load.answers)} answers: that was no load")
        judged = [record for record in trail.values() if record["type"] == "attest" and record["outcome"] == "judged"]
        clocks = [(record["host"], record["reset"], record["clock"]) for record in judged]
        equal(len(set(clocks)), len(clocks), "one record for each quote")
        equal(ask(verifier, "GET", "/readyz")[0], 200, "/readyz")
        print(f"        {len(load.answers)} answers, {load.unreached} cut off, {len(trail)} records")


if __name__ == "__main__":
    sys.exit(main(killed_under_load))
