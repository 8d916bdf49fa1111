#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""audit_reader.py DIRECTORY KEY_FILE: verifies a trail by docs/audit.md alone, with nothing of the product: a second
opinion on the format. Prints the records and the last sequence; says where the first fault is and exits 1."""
import hashlib
import hmac
import json
import os
import re
import sys

HEAD = re.compile(rb'\{"mac":"([0-9a-f]{64})","len":"(\d{8})","epoch":"(\d{8})","seq":"(\d{16})","ack":"(\d{16})","kind":"([hrcs])","rec":')


def hkdf(key, salt, info, size):
    """RFC 5869 with SHA-256, at most one block."""
    pseudorandom = hmac.new(salt, key, hashlib.sha256).digest()
    return hmac.new(pseudorandom, info + b"\x01", hashlib.sha256).digest()[:size]


class Keys:
    def __init__(self, path):
        with open(path, encoding="ascii") as handle:
            magic, log, key = handle.read().splitlines()
        if magic != "assay-audit-key-1" or not log.startswith("log ") or not key.startswith("key "):
            raise ValueError("no key file")
        self.log, secret = bytes.fromhex(log[4:]), bytes.fromhex(key[4:])
        self.key = hkdf(secret, self.log, b"assay/audit/mac/1", 32)
        self.key_id = hkdf(secret, self.log, b"assay/audit/key-id/1", 16)

    def mac(self, segment, previous, covered):
        parts = b"assay/audit/1" + self.log + self.key_id + segment.to_bytes(8, "big") + previous + covered
        return hmac.new(self.key, parts, hashlib.sha256).digest()


class Chain:
    def __init__(self, keys):
        self.keys, self.previous, self.next, self.ack, self.epoch, self.records = keys, bytes(32), 1, 0, 0, 0

    def line(self, segment, data, at):
        """The kind and end of the line at `at`; what is wrong is a ValueError."""
        head = HEAD.match(data, at)
        if head is None:
            raise ValueError("no line")
        length, epoch, seq, ack = (int(head[i]) for i in range(2, 6))
        line = data[at:at + length]
        if len(line) != length or not line.endswith(b"}\n") or b"\n" in line[:-1]:
            raise ValueError("the line does not end where its length says")
        mac = self.keys.mac(segment, self.previous, line[8 + 64:])
        if not hmac.compare_digest(mac.hex().encode(), head[1]) or seq != self.next:
            raise ValueError("the MAC or the sequence does not continue the chain")
        if ack >= seq or ack < self.ack or epoch < self.epoch:
            raise ValueError("ack or epoch goes back")
        record = json.loads(line[head.end() - at:-2])
        if head[6] == b"h" and (record["log"] != self.keys.log.hex() or int(record["segment"]) != segment or record["previous"] != self.previous.hex()):
            raise ValueError("the header names another place")
        self.previous, self.next, self.ack, self.epoch = mac, seq + 1, ack, epoch
        self.records += head[6] == b"r"
        return head[6], at + length

    def segment(self, number, data, last):
        kind, at = self.line(number, data, 0)
        if kind != b"h":
            raise ValueError("no header")
        while at < len(data) and data[at] != 0 and kind != b"s":
            kind, at = self.line(number, data, at)
        if data[at:].strip(b"\0"):
            raise ValueError(f"bytes behind the end at {at}")
        if (kind == b"s") == last:
            raise ValueError("a seal is missing, or the successor of a sealed segment")


def main(directory, key_file):
    chain = Chain(Keys(key_file))
    names = sorted(n for n in os.listdir(directory) if re.fullmatch(r"segment-\d{8}\.log", n))
    try:
        if names != [f"segment-{i:08}.log" for i in range(1, len(names) + 1)] or not names:
            raise ValueError("segments are missing")
        for number, name in enumerate(names, 1):
            with open(os.path.join(directory, name), "rb") as handle:
                chain.segment(number, handle.read(), number == len(names))
    except ValueError as fault:
        print(f"at record {chain.next}: {fault}", file=sys.stderr)
        return 1
    print(f"records {chain.records} last {chain.next - 1} mac {chain.previous.hex()}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
