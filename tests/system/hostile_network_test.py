#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Strangers on the network against a running verifier: handshakes that never end, slow headers and bodies, garbage,
bodies too large. Whoever plays by the rules is served meanwhile. Arguments: BIN_DIR."""
import os
import socket
import ssl
import sys
import time

from checks import Client, World, ask, equal, expect, main, metric, records, refusal_code

HALF_OPEN = 200
HANDSHAKE_TIMEOUT = 8


def connect(verifier):
    return socket.create_connection(("127.0.0.1", verifier.port), timeout=15)


def tls(verifier):
    context = ssl.create_default_context(cafile=verifier.ca)
    return context.wrap_socket(connect(verifier), server_hostname="localhost")


def read_all(sock):
    """What comes until the other side closes, and how long that took."""
    started, got = time.monotonic(), b""
    try:
        while True:
            part = sock.recv(65536)
            if not part:
                break
            got += part
    except (ConnectionError, ssl.SSLError):
        pass
    return got, time.monotonic() - started


def half_a_hello(verifier):
    """A connection whose ClientHello stops in the middle."""
    sock = connect(verifier)
    sock.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + os.urandom(16))
    return sock


def still_open(sock):
    sock.setblocking(False)
    try:
        sock.recv(1, socket.MSG_PEEK)
        return False
    except BlockingIOError:
        return True
    except ConnectionError:
        return False


def half_open(world, verifier):
    machine = world.make_machine("late-comer", world.make_tpm("late-tpm"))
    started = time.monotonic()
    held = [half_a_hello(verifier) for _ in range(HALF_OPEN)]
    try:
        machine.enroll()
        machine.start_agent()
        equal(machine.attest().get("tier"), "affirming", f"attestation beside {HALF_OPEN} half-open handshakes")
        count = sum(still_open(sock) for sock in held)
        if time.monotonic() - started < HANDSHAKE_TIMEOUT:
            equal(count, HALF_OPEN, "handshakes still half open when the machine had attested")
        started = time.monotonic()
        for sock in held:
            sock.settimeout(15)
            read_all(sock)
        expect(time.monotonic() - started < 15, "half-open handshakes do not end at their deadline")
    finally:
        for sock in held:
            sock.close()


def status_of(reply):
    return int(reply.split(b" ", 2)[1]) if reply.startswith(b"HTTP/1.1 ") else None


def slow(verifier):
    started = time.monotonic()
    header, body = tls(verifier), tls(verifier)
    header.sendall(b"POST /v1/challenge HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
    body.sendall(b"POST /v1/challenge HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/cbor\r\nContent-Length: 1000\r\n\r\n")
    ended = {}
    while len(ended) < 2 and time.monotonic() - started < 10:
        for name, sock in (("header", header), ("body", body)):
            if name in ended:
                continue
            try:
                sock.sendall(b"a")  # trickles, so that no idle timer helps
                sock.settimeout(0.05)
                sock.recv(4096)  # a refusal or the end: cut either way
                ended[name] = time.monotonic() - started
            except TimeoutError:
                pass
            except (ConnectionError, ssl.SSLError):
                ended[name] = time.monotonic() - started
        time.sleep(0.1)
    header.close()
    body.close()
    for name in ("header", "body"):
        expect(name in ended and ended[name] < 8, f"a slow {name} was not cut: {ended}")
        expect(ended[name] > 1, f"a slow {name} was cut before its time of 2 s: {ended}")


def oversized(verifier):
    """Refused by the length told, before the body is sent; in chunks, at the limit."""
    for path, limit in (("/v1/challenge", 64 << 10), ("/v1/enroll/begin", 64 << 10), ("/v1/attest", 4 << 20)):
        sock = tls(verifier)
        sock.sendall(b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/cbor\r\nContent-Length: %d\r\n\r\n" % (path.encode(), limit + 1))
        reply, _ = read_all(sock)
        sock.close()
        equal(status_of(reply), 413, f"{limit + 1} bytes for {path}")
        expect(b"too_large" in reply, f"413 without its code: {reply}")
    status, body = ask(verifier, "POST", "/v1/challenge", b"\x00" * (64 << 10))
    equal((status, refusal_code(body)), (400, "malformed"), "a body at the limit")


def garbage(verifier):
    for name, sent in (("no HTTP", b"\x00\xff garbage \r\n\r\n"), ("HTTP/1.0", b"GET /healthz HTTP/0.9\r\n\r\n"), ("a huge header", b"GET / HTTP/1.1\r\nX: " + b"a" * 100_000 + b"\r\n\r\n"),
                       ("two lengths", b"POST /v1/challenge HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"),
                       ("length and chunks", b"POST /v1/challenge HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
                       ("a negative length", b"POST /v1/challenge HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n")):
        sock = tls(verifier)
        try:
            sock.sendall(sent)
        except (ConnectionError, ssl.SSLError):
            pass
        reply, seconds = read_all(sock)
        sock.close()
        status = status_of(reply)
        expect(status is None or 400 <= status < 500, f"{name}: {reply[:100]}")
        expect(reply.count(b"HTTP/1.1 ") <= 1 and seconds < 10, f"{name}: {reply[:200]} after {seconds:.1f} s")
    plain = connect(verifier)
    plain.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
    reply, _ = read_all(plain)
    plain.close()
    expect(b"HTTP/1.1 200" not in reply, f"answered without TLS: {reply}")
    for body in (b"", b"\xa0", b"\xff" * 64, b"\x9f" * 60_000, b"{\"json\":1}"):
        for path in ("/v1/challenge", "/v1/enroll/begin", "/v1/enroll/complete"):
            status, reply = ask(verifier, "POST", path, body)
            equal((status, refusal_code(reply)), (400, "malformed"), f"{body[:8]} to {path}")
        status, reply = ask(verifier, "POST", "/v1/attest", body)
        equal((status, refusal_code(reply)), (400, "evidence_malformed"), f"{body[:8]} to /v1/attest")


def methods(verifier):
    client = Client(verifier)
    for method, path, wanted in (("GET", "/v1/attest", 405), ("DELETE", "/healthz", 405), ("POST", "/healthz", 405), ("GET", "/nothing", 404),
                                 ("GET", "/v1/hosts", 404), ("POST", "/v1/policy/reload", 404), ("GET", "/../etc/passwd", 404), ("GET", "/healthz", 200)):
        status, _ = ask(verifier, method, path, b"" if method == "POST" else None)
        equal(status, wanted, f"{method} {path}")
    client.close()


def pipelined(verifier):
    """Requests sent before the answers of earlier ones: answered in order, or the connection ends; never mixed."""
    sock = tls(verifier)
    paths = [b"/healthz", b"/nothing", b"/healthz", b"/readyz"]
    sock.sendall(b"".join(b"GET %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n" % (path, b"Connection: close\r\n" if i == 3 else b"") for i, path in enumerate(paths)))
    reply, _ = read_all(sock)
    sock.close()
    got = [int(part[:3]) for part in reply.split(b"HTTP/1.1 ")[1:]]
    equal(got, [200, 404, 200, 200][:len(got)], "answers to pipelined requests")
    expect(got, "a pipelining client got no answer")


def hostile_network(bin_dir):
    """200 half-open handshakes, slow and oversized requests, garbage: refused, and the verifier serves on"""
    with World(bin_dir) as world:
        tpm = world.make_tpm("tpm")
        verifier = world.make_verifier()
        with open(verifier.path("verifier.toml"), "a", encoding="utf-8") as out:
            out.write(f'\n[limits]\nhandshake_timeout = "{HANDSHAKE_TIMEOUT}s"\nheader_timeout = "2s"\nbody_timeout = "2s"\n')
        verifier.start()
        pid = verifier.process.popen.pid
        machine = world.make_machine("machine", tpm)
        machine.enroll()
        machine.start_agent()
        equal(machine.attest().get("tier"), "affirming", "before")
        half_open(world, verifier)
        before = len(records(verifier.audit))
        for attack in (methods, garbage, oversized, pipelined, slow):
            attack(verifier)
            expect(verifier.process.alive(), f"the verifier ended under {attack.__name__}")
            equal(ask(verifier, "GET", "/healthz"), (200, b"ok\n"), f"/healthz after {attack.__name__}")
        equal(len(records(verifier.audit)), before, "records that strangers left in the trail")
        answer = machine.attest()
        equal(answer.get("tier"), "affirming", f"after: {answer}")
        expect(verifier.process.popen.pid == pid and metric(verifier, "assay_ready") == 1.0, "the verifier is not the one that was started")
        equal(verifier.stop(), 0, "exit of the verifier after SIGTERM")


if __name__ == "__main__":
    sys.exit(main(hostile_network))
