#!/usr/bin/env python3
"""Servers, old or lenient on purpose, each behind a gateway of its own.

usage: compare.py [--more] PORTCULLIS [BACKEND...]

Every case of Tests/HTTPScenarios/Cases of which the gateway forwards requests is sent through it
to each server. What the server says it parsed must be what the gateway forwarded, as a strict
recorder in place of the server saw it: as many requests, their methods, targets, fields and
content. Servers that make CGI variables of fields must show the gateway's verdict and no other.

A case that a server takes otherwise is in `listed.json` with its reason, by patterns of the case's
name and of what differs; one that is listed and agrees is an error too. Servers that are not
installed are named and left out. With --more it is the servers of `more_servers.py`; those that
are proxies forward to another such recorder, and what they add of their own is not compared. Python
servers are looked for in the interpreter that runs this.

Exit status: 0 when all agree, 1 when not, 2 when no server is there.
"""
import concurrent.futures
import os
import shutil
import sys
import tempfile
import time

# For `processes`, which both comparisons use.
sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from cases import accepted_cases
from judging import compare, judge, reasons
from more_servers import ORIGINS, PROXIES
from processes import end_when_told
from servers import BACKENDS, Recorder
from stand import Stand


def run(stand, accepted):
    """Sends all accepted cases; answers what differed, by the case, and how long it took."""
    faults = {}
    last = None
    begun = time.monotonic()
    ignored = getattr(stand.backend, "own_fields", frozenset())
    for name, whole, expected in accepted:
        late = stand.news()
        # Before the first case it is one of those that have found out whether the server is there.
        if late and last:
            faults[last] = "a request more, late"
        stand.play(whole)
        fault = compare(expected, stand.news(), ignored)
        if fault and fault.startswith("refused"):
            # It may have ended the connection, after an earlier case, as this one was sent.
            stand.play(whole)
            fault = compare(expected, stand.news(), ignored)
        if fault:
            faults[name] = fault
        last = name
    return faults, time.monotonic() - begun


def main():
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        return 0
    words = sys.argv[1:]
    backends = BACKENDS
    if words[0] == "--more":
        words, backends = words[1:], ORIGINS + PROXIES
    program, wanted = os.path.abspath(words[0]), words[1:]
    there, missing = [], []
    for backend in backends:
        if not wanted or backend.name in wanted:
            (there if backend.version() else missing).append(backend)
    for backend in missing:
        print(f"interoperability: NOT CHECKED, since it is not installed: {backend.name}")
    if not there:
        return 2
    stands = []
    folder = tempfile.mkdtemp(prefix="pg-")
    end_when_told(None if "INTEROP_KEEP" in os.environ else folder)
    try:
        recorder = Stand(Recorder(), program, folder)
        stands.append(recorder)
        accepted = accepted_cases(recorder)
        for backend in there:
            stands.append(Stand(backend, program, folder))
        with concurrent.futures.ThreadPoolExecutor(len(there)) as pool:
            results = list(pool.map(lambda stand: run(stand, accepted), stands[1:]))
    finally:
        for stand in reversed(stands):
            stand.stop()
        if "INTEROP_KEEP" not in os.environ:
            shutil.rmtree(folder, ignore_errors=True)
    return report(there, results, accepted)


def report(backends, results, accepted):
    wrong = []
    print(f"\n{'backend':22} {'version':20} {'cases':>6} {'agreed':>7} {'listed':>7} {'wrong':>6}"
          f" {'seconds':>8}")
    for backend, (faults, seconds) in zip(backends, results):
        found, listed = judge(backend.name, faults, accepted)
        wrong += found
        agreed = len(accepted) - len(faults)
        print(
            f"{backend.name:22} {backend.version():20} {len(accepted):6} {agreed:7}"
            f" {listed:7} {len(faults) - listed:6} {seconds:8.1f}"
        )
    print()
    for backend in backends:
        for pattern, reason in reasons(backend.name).items():
            print(f"listed: {backend.name}: {pattern}: {reason}")
    for line in wrong:
        print("WRONG:", line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
