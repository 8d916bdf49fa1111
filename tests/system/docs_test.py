#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The documents say what the tree holds: links lead somewhere, the tests that the threat model names exist, every
configuration key and every error code of the verifier stands in its page, every metric in the operator's, every route in
openapi.yaml."""
import os
import re
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
PAGES = ["README.md", "SECURITY.md", "CONTRIBUTING.md"] + ["docs/" + name for name in sorted(os.listdir(os.path.join(ROOT, "docs"))) if name.endswith(".md")]
CONFIGS = ["verifier_config", "policy", "agent_config", "relay_config", "enroll_config"]
CODE_SOURCES = ["verifier/server/attestation.cc", "verifier/server/routes_enroll.cc", "verifier/server/routes_public.cc", "verifier/server/connection_session.h",
                "verifier/attest/check_quote.cc", "verifier/enrollment/service_begin.cc", "verifier/enrollment/service_complete.cc",
                "verifier/enrollment/begin_limits.cc", "verifier/enrollment/ek_chain.cc", "verifier/enrollment/ticket.cc", "verifier/enrollment/host_id.cc",
                "verifier/token/result_issuer.cc", "verifier/appraisal/appraise.cc"]
NOT_CODES = {"ok", "unknown", "ek_trusted", "ticket_opened", "canonical_proved", "admitted"}


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as handle:
        return handle.read()


def check_links(faults):
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", read(page)):
            if not os.path.exists(os.path.join(ROOT, os.path.dirname(page), target)):
                faults.append(f"{page}: the link {target} leads nowhere")


def check_tests(faults):
    """Names in double quotes belong to the file in backquotes before them, row by row."""
    cited = 0
    for row in read("docs/threat-model.md").splitlines():
        if not row.startswith("| "):
            continue
        content = None
        for path, name in re.findall(r'`((?:unit|fault|system)/[^`]+)`|"([^"]+)"', row):
            if path:
                content = read("tests/" + path) if os.path.exists(os.path.join(ROOT, "tests", path)) else None
                if content is None:
                    faults.append(f"threat-model.md names tests/{path}, which is not there")
            elif content is not None:
                cited += 1
                if f'TEST_CASE("{name}"' not in content:
                    faults.append(f"threat-model.md names a test that is not there: {name}")
    if cited < 40:
        faults.append(f"only {cited} tests are cited: are the names still read?")


def check_keys(faults):
    pages = read("docs/operations.md") + read("docs/agent.md")
    seen = 0
    for config in CONFIGS:
        for key in re.findall(r"(?:String|Uint|Bool|DurationMs|OneOf|Strings|Digests|Sub|Array)\(\"([a-z0-9_]+)\"", read(f"sdk/config/{config}.cc")):
            seen += 1
            if not re.search(rf"\b{key}\b", pages):
                faults.append(f"{config}: the key {key} is in neither operations.md nor agent.md")
    if seen < 80:
        faults.append(f"only {seen} configuration keys are found")


def check_codes(faults):
    page = read("docs/protocol.md")
    page = re.sub(r"`(canonical_proof)_signature`, `_magic`, `_type`, `_qualifying`", r"\1_signature \1_magic \1_type \1_qualifying", page)
    seen = 0
    for source in CODE_SOURCES:
        text = read(source)
        codes = set(re.findall(r"return \"([a-z]+(?:_[a-z0-9]+)*)\";", text))
        codes |= set(re.findall(r"(?:ErrorReply\{|Refuse\(|Unavailable\(|ErrorResponse\(\d+, |Refuse\(\d+, |\{)\"([a-z]+(?:_[a-z0-9]+)+)\", ", text))
        for code in sorted(codes - NOT_CODES):
            seen += 1
            if not re.search(rf"\b{code}\b", page):
                faults.append(f"{source}: the code {code} is not in protocol.md")
    if seen < 60:
        faults.append(f"only {seen} codes are found")


def check_metrics(faults):
    page = read("docs/operations.md")
    names = set(re.findall(r"\"(assay_[a-z_]+)\"", read("verifier/server/app.cc") + read("verifier/server/transport.cc")))
    faults += [f"the metric {name} is not in operations.md" for name in sorted(names) if name not in page]
    if len(names) < 15:
        faults.append(f"only {len(names)} metrics are found")


def check_routes(faults):
    page = read("docs/openapi.yaml")
    paths = set(re.findall(r"\[\]\s*=\s*\"(/[a-z0-9/._-]+)\";", read("sdk/core/protocol.h")))
    paths |= set(re.findall(r"^// (?:GET|POST) +(/v1/operator/[a-z{}/_-]+)", read("verifier/server/operator_api.h"), re.MULTILINE))
    paths |= set(re.findall(r"get\(\"(/[a-z]+)\"", read("verifier/server/routes_public.cc")))
    paths = {path.replace("{old}", "{id}") for path in paths}
    faults += [f"the route {path} is not in openapi.yaml" for path in sorted(paths) if f"\n  {path}:\n" not in page]
    described = set(re.findall(r"^  (/[^:]+):$", page, re.MULTILINE))
    faults += [f"openapi.yaml describes {path}, which is no route" for path in sorted(described - paths)]
    if len(paths) < 18:
        faults.append(f"only {len(paths)} routes are found")


def main():
    faults = []
    for check in (check_links, check_tests, check_keys, check_codes, check_metrics, check_routes):
        check(faults)
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
