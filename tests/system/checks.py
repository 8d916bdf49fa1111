# SPDX-License-Identifier: Apache-2.0
"""What the tests of whole programs share: expectations, a reader of the trail's records, a raw HTTPS client, faults."""
import http.client
import json
import os
import re
import ssl
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Failure, World, run, wait_for  # noqa: E402,F401

LINE = re.compile(rb'\{"mac":"([0-9a-f]{64})","len":"(\d{8})","epoch":"(\d{8})","seq":"(\d{16})","ack":"(\d{16})","kind":"(.)","rec":')


def expect(condition, what):
    if not condition:
        raise Failure(what)


def equal(got, wanted, what):
    if got != wanted:
        raise Failure(f"{what}: expected {wanted!r}, got {got!r}")


def records(directory):
    """{sequence: record} of the application's records, as they stand on disk; whether they hold is `verify`'s to say."""
    found = {}
    for name in sorted(os.listdir(directory)):
        path = os.path.join(directory, name)
        if not os.path.isfile(path):
            continue
        with open(path, "rb") as handle:
            content = handle.read()
        for match in LINE.finditer(content):
            if match.group(6) == b"r":
                end = match.start() + int(match.group(2))
                if content[end - 2:end] != b"}\n":  # a torn tail
                    continue
                found[int(match.group(4))] = json.loads(content[match.end():end - 2])
    return found


def verify(verifier, at_least=0):
    """The trail by assayctl, which trusts nothing that the verifier says."""
    done = verifier.ctl("audit", "verify", verifier.audit, "--key", verifier.audit_key, "--json", check=False)
    report = json.loads(done.stdout or "{}")
    expect(done.returncode == 0 and report.get("ok"), f"the trail does not verify: {done.stdout.strip()[-500:]} {done.stderr.strip()}")
    expect(report["records"] >= at_least, f"the trail holds {report['records']} records, fewer than {at_least}")
    return report


def check_answer(trail, answer):
    """An answer that a client holds must stand in the trail as it was given."""
    record = trail.get(answer["audit_sequence"])
    expect(record is not None, f"answered, but not in the trail: {answer}")
    equal((record["type"], record["outcome"], record["tier"]), ("attest", "judged", answer["tier"]), f"record {answer['audit_sequence']}")


class Client:
    """HTTPS by hand: whatever bytes a stranger may send."""

    def __init__(self, verifier, timeout=10):
        self.context = ssl.create_default_context(cafile=verifier.ca)
        self.connection = http.client.HTTPSConnection("localhost", verifier.port, context=self.context, timeout=timeout)

    def ask(self, method, path, body=None, content_type="application/cbor"):
        self.connection.request(method, path, body=body, headers={"Content-Type": content_type} if body is not None else {})
        reply = self.connection.getresponse()
        return reply.status, reply.read()

    def close(self):
        self.connection.close()


def ask(verifier, method, path, body=None):
    client = Client(verifier)
    try:
        return client.ask(method, path, body)
    finally:
        client.close()


def refusal_code(body):
    """The code of an ErrorReply: a map whose first value is a text of at most 255 bytes."""
    expect(len(body) > 4 and body[0] >> 5 == 5 and body[2] >> 5 == 3, f"no ErrorReply: {body!r}")
    length, start = (body[3], 4) if body[2] == 0x78 else (body[2] & 0x1F, 3)
    return body[start:start + length].decode()


def attest_code(verifier, evidence):
    """(status, code) of evidence sent as it is on a connection of its own."""
    status, body = ask(verifier, "POST", "/v1/attest", evidence)
    return status, "" if status == 200 else refusal_code(body)


def metric(verifier, name, labels=""):
    for line in verifier.curl("/metrics").splitlines():
        if line.startswith(name + labels + " "):
            return float(line.rsplit(" ", 1)[1])
    raise Failure(f"/metrics has no {name}{labels}")


class Fault:
    """The preloaded library of tests/fault/kill_at.c under a verifier; nothing happens before `order`."""

    def __init__(self, world):
        self.control = world.path("fault.control")
        self.trace_file = world.path("fault.trace")
        self.env = dict(os.environ, LD_PRELOAD=os.path.join(world.bin, "assay-fault-shim.so"), ASSAY_FAULT_CONTROL=self.control,
                        ASSAY_FAULT_TRACE=self.trace_file, ASAN_OPTIONS="verify_asan_link_order=0:" + os.environ.get("ASAN_OPTIONS", ""))

    def order(self, text):
        self.clear()
        with open(self.control + ".new", "w", encoding="utf-8") as out:
            out.write(text)
        os.rename(self.control + ".new", self.control)

    def clear(self):
        for path in (self.control, self.trace_file):
            if os.path.exists(path):
                os.unlink(path)

    def trace(self):
        if not os.path.exists(self.trace_file):
            return []
        with open(self.trace_file, encoding="utf-8") as handle:
            return [line.split() for line in handle]


def error_code(answer):
    return answer.get("error", {}).get("code")


def main(*tests):
    """Runs tests in order, says how long each took, and ends with 0 when all hold."""
    failed = 0
    for test in tests:
        started = time.monotonic()
        try:
            test(sys.argv[1])
            print(f"ok      {test.__doc__} ({time.monotonic() - started:.1f} s)", flush=True)
        except (Failure, OSError, KeyError, ValueError, IndexError, ssl.SSLError, http.client.HTTPException) as failure:
            failed += 1
            print(f"FAILED  {test.__doc__}: {type(failure).__name__}: {failure}", flush=True)
    return 1 if failed else 0
