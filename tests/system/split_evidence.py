#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""split_evidence EVIDENCE DIR: takes evidence (docs/evidence.cddl) apart so that tpm2_checkquote and openssl can judge
it without a line of Assay's own code. Writes quote.msg (TPMS_ATTEST), quote.sig (TPMT_SIGNATURE), quote.sig.raw (the
signature alone, as openssl takes it), body.cbor, pcrs.bin (the PCR values joined), pcr_digest.hex (as read from the
quote) and extra_data.hex (as read from the quote). It checks nothing but that the bytes are well formed."""
import os
import sys

UINT, BYTES, ARRAY, MAP = 0, 2, 4, 5
RSA_SCHEMES = (0x0014, 0x0016)  # TPM_ALG_RSASSA, TPM_ALG_RSAPSS
ECDSA = 0x0018
TPM_GENERATED = 0xFF544347
ST_ATTEST_QUOTE = 0x8018


class Malformed(Exception):
    pass


class Cursor:
    """Bytes taken from the front; taking more than there is raises Malformed."""

    def __init__(self, content):
        self.content = content
        self.at = 0

    def take(self, size):
        if size > len(self.content) - self.at:
            raise Malformed(f"cut off at byte {self.at}")
        self.at += size
        return self.content[self.at - size:self.at]

    def number(self, size):
        return int.from_bytes(self.take(size), "big")

    def sized(self):
        return self.take(self.number(2))

    def finish(self):
        if self.at != len(self.content):
            raise Malformed(f"{len(self.content) - self.at} stray bytes")


def cbor_item(cursor):
    """One item of the few kinds that the outer map of evidence is made of."""
    first = cursor.number(1)
    major, small = first >> 5, first & 31
    if small > 27:
        raise Malformed("an indefinite or reserved length")
    value = small if small < 24 else cursor.number(1 << (small - 24))
    if major == UINT:
        return value
    if major == BYTES:
        return cursor.take(value)
    if major == ARRAY and value <= 64:
        return [cbor_item(cursor) for _ in range(value)]
    if major == MAP and value <= 16:
        return {cbor_item(cursor): cbor_item(cursor) for _ in range(value)}
    raise Malformed(f"an item of major type {major} where none belongs")


def read_attest(quote):
    """(extraData, pcrDigest) of a TPMS_ATTEST of type quote (TPM 2.0 Part 2, 10.12.12)."""
    cursor = Cursor(quote)
    if cursor.number(4) != TPM_GENERATED or cursor.number(2) != ST_ATTEST_QUOTE:
        raise Malformed("the signed structure is no TPM quote")
    cursor.sized()                          # qualifiedSigner
    extra_data = cursor.sized()
    cursor.take(8 + 4 + 4 + 1 + 8)          # clockInfo, firmwareVersion
    for _ in range(cursor.number(4)):
        cursor.take(2)
        cursor.take(cursor.number(1))
    pcr_digest = cursor.sized()
    cursor.finish()
    return extra_data, pcr_digest


def der_integer(value):
    value = value.lstrip(b"\0") or b"\0"
    if value[0] & 0x80:
        value = b"\0" + value
    return b"\x02" + bytes([len(value)]) + value


def raw_signature(signature):
    """What openssl verifies: the RSA signature, or r and s in DER (TPM 2.0 Part 2, 11.3.4)."""
    cursor = Cursor(signature)
    scheme = cursor.number(2)
    cursor.number(2)                        # hash
    if scheme in RSA_SCHEMES:
        raw = cursor.sized()
    elif scheme == ECDSA:
        pair = der_integer(cursor.sized()) + der_integer(cursor.sized())
        raw = b"\x30" + bytes([len(pair)]) + pair
    else:
        raise Malformed(f"signature scheme {scheme:#06x}")
    cursor.finish()
    return raw


def split(content):
    cursor = Cursor(content)
    evidence = cbor_item(cursor)
    cursor.finish()
    if not isinstance(evidence, dict) or list(evidence) != [1, 2, 3, 4, 5, 6]:
        raise Malformed("not a map with the keys 1 to 6")
    body, quote, signature, values = evidence[1], evidence[2], evidence[3], evidence[6]
    if not all(isinstance(item, bytes) for item in (body, quote, signature)) or not isinstance(values, list):
        raise Malformed("a member of another type than docs/evidence.cddl says")
    extra_data, pcr_digest = read_attest(quote)
    pcrs = b"".join(value for _, value in values)
    return {"quote.msg": quote, "quote.sig": signature, "quote.sig.raw": raw_signature(signature), "body.cbor": body, "pcrs.bin": pcrs,
            "pcr_digest.hex": pcr_digest.hex().encode() + b"\n", "extra_data.hex": extra_data.hex().encode() + b"\n"}


def main():
    if len(sys.argv) != 3 or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        return 0 if sys.argv[1:2] in (["-h"], ["--help"]) else 2
    try:
        with open(sys.argv[1], "rb") as handle:
            parts = split(handle.read())
    except (Malformed, ValueError, TypeError) as fault:
        print(f"split_evidence: {sys.argv[1]}: {fault}", file=sys.stderr)
        return 1
    os.makedirs(sys.argv[2], exist_ok=True)
    for name, content in parts.items():
        with open(os.path.join(sys.argv[2], name), "wb") as out:
            out.write(content)
        print(f"{os.path.join(sys.argv[2], name)}: {len(content)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
