#!/usr/bin/env python3
"""Compares how Portcullis reads HTTP messages with a second reading of the RFCs.

usage: compare.py PROGRAM [--seconds N] [--seed N] [--cases FILE]

Every case of the file is compared as it is and cut at every place, then mutated for so many
seconds. PROGRAM is the fuzzing program. Exit status: 0 when nothing differs that is not allowed.
"""

import argparse
import base64
import json
import os
import random
import struct
import subprocess
import sys
import time
from collections import Counter
from dataclasses import asdict

import allowances
import mutator
import reading

BATCH_OCTETS = 24_000  # Less than a pipe holds, so that neither side waits for the other.
FINDINGS_MAX = 20


class Portcullis:
    """The program that tells how Portcullis reads."""

    def __init__(self, program):
        environment = dict(os.environ, PORTCULLIS_FUZZ_TARGET="reading")
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([program], env=environment, stdin=pipe, stdout=pipe)

    def read(self, cases):
        for kind, octets in cases:
            self.process.stdin.write(kind.encode() + struct.pack(">I", len(octets)) + octets)
        self.process.stdin.flush()
        found = []
        for kind, octets in cases:
            line = self.process.stdout.readline()
            if not line:
                sys.exit(f"compare: the program ended at one of {cases}")
            found.append(json.loads(line))
        return found

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def difference(kind, octets, ours):
    """What differs, as a short text; None when nothing does."""
    if kind != "q":
        return response(kind, octets, ours)
    what = request(octets, ours)
    if what is None or what.startswith("allowed "):
        return what
    wide = request(octets, ours, reading.WIDE)
    is_allowed = wide is None or wide.startswith("allowed ")
    return "allowed " + allowances.WIDE_TARGET if is_allowed else what


def request(octets, ours, origin_form=reading.ORIGIN):
    messages, end, opened = reading.read_requests(octets, origin_form)
    theirs = [asdict(one) for one in messages]
    for one, other in zip(ours["messages"], theirs):
        if one != other:
            return "a request differs: " + keys(one, other)
    count, other = len(ours["messages"]), len(theirs)
    if count > other:
        return f"ours takes a request more, theirs is {end}"
    refused = ours["end"] in ("rejected", "aborted")
    if refused and allowances.is_stricter(ours["reason"], octets) and (
        count < other or ours["end"] != end
    ):
        return "allowed " + ours["reason"]
    if count < other:
        return f"ours takes a request less: {ours['end']} {ours['reason']}"
    # A head that goes on may be refused at once, or when it is whole.
    early = {ours["end"], end} == {"inside-head", "rejected"}
    if ours["end"] != end and not early:
        return f"ours is {ours['end']} {ours['reason']}, theirs {end}"
    if opened and ours["open"]:
        one, other = dict(ours["open"][0], body=""), dict(asdict(opened), body="")
        if one != other:
            return "an open request differs: " + keys(one, other)
    return None


def response(kind, octets, ours):
    theirs = asdict(reading.read_response(octets, kind))
    if ours["end"] != theirs["end"]:
        if allowances.is_stricter(ours["reason"], octets):
            return "allowed " + ours["reason"]
        return f"answer: ours is {ours['end']} {ours['reason']}, theirs {theirs['end']}"
    if ours["end"] == "rejected":
        return None
    names = ["status", "interim", "framing"]
    if ours["end"] == "complete":
        names += ["body", "trailers", "leftover"]
    unlike = [name for name in names if ours[name] != theirs[name]]
    return "an answer differs: " + ", ".join(unlike) if unlike else None


def keys(one, other):
    return ", ".join(name for name in one if one[name] != other.get(name))


class Comparison:
    def __init__(self, portcullis):
        self.portcullis = portcullis
        self.count = 0
        self.used = Counter()
        self.findings = {}

    def compare(self, cases):
        for (kind, octets), ours in zip(cases, self.portcullis.read(cases)):
            self.count += 1
            what = difference(kind, octets, ours)
            if what is None:
                continue
            if what.startswith("allowed "):
                self.used[what[8:]] += 1
            elif len(self.findings) < FINDINGS_MAX and what not in self.findings:
                self.findings[what] = (kind, self.shrunk(kind, octets, what))

    def shrunk(self, kind, octets, what):
        """The case with all taken out that the difference does not need."""
        size = max(1, len(octets) // 2)
        while size:
            start = 0
            while start < len(octets):
                less = octets[:start] + octets[start + size :]
                if difference(kind, less, self.portcullis.read([(kind, less)])[0]) == what:
                    octets = less
                else:
                    start += size
            size //= 2
        return octets


def batches(cases):
    batch, octets = [], 0
    for case in cases:
        batch.append(case)
        octets += len(case[1]) + 5
        if octets > BATCH_OCTETS:
            yield batch
            batch, octets = [], 0
    if batch:
        yield batch


def load(path):
    """The cases of a file of JSON lines, those aside that are larger than a batch."""
    cases = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            one = json.loads(line)
            octets = base64.b64decode(one.get("raw_b64") or "")
            for part in (one.get("parts") or []) + (one.get("segments") or []):
                octets += base64.b64decode(part.get("b64") or "")
                octets += base64.b64decode(part.get("repeat_b64") or "") * (part.get("count") or 0)
            method = one.get("request_method") or "GET"
            kind = "q" if one["direction"] == "request" else method[0].lower()
            if one["direction"] in ("request", "response") and len(octets) < BATCH_OCTETS:
                cases.append((kind, octets))
    return cases


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10**9)
    here = os.path.dirname(os.path.abspath(__file__))
    cases = os.path.join(here, "../../HTTPScenarios/Cases/cases.jsonl")
    parser.add_argument("--cases", default=cases)
    options = parser.parse_args()
    comparison = Comparison(Portcullis(options.program))
    untrue = [
        reason
        for reason, kind, octets in allowances.examples()
        if difference(kind, octets, comparison.portcullis.read([(kind, octets)])[0])
        != "allowed " + reason
    ]
    seeds = load(options.cases)
    for batch in batches(seeds):
        comparison.compare(batch)
    short = [(kind, octets) for kind, octets in seeds if 0 < len(octets) < 200]
    cut = ((kind, octets[:end]) for kind, octets in short for end in range(len(octets)))
    for batch in batches(cut):
        comparison.compare(batch)
    source = random.Random(options.seed)
    end = time.monotonic() + options.seconds
    small = [(kind, octets) for kind, octets in seeds if len(octets) < 3000]
    while time.monotonic() < end and len(comparison.findings) < FINDINGS_MAX:
        batch = []
        for kind, octets in source.choices(small, k=40):
            batch.append((kind, mutator.mutated(source, octets)))
        for part in batches(batch):
            comparison.compare(part)
    comparison.portcullis.close()
    print(f"compared {comparison.count} messages, seed {options.seed}")
    for reason, count in sorted(comparison.used.items()):
        print(f"  allowed {count} times: {reason}")
    for what, (kind, octets) in comparison.findings.items():
        print(f"DIFFERS: {what}\n  {kind} {octets!r}")
    for reason in untrue:
        print(f"UNTRUE: its example does not need the allowance {reason} any more")
    return 1 if comparison.findings or untrue else 0


if __name__ == "__main__":
    sys.exit(main())
