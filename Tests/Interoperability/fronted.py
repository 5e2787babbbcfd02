#!/usr/bin/env python3
"""Compares what applications execute with what was signed, where a proxy is in front of the gateway.

usage: fronted.py PORTCULLIS [PROXY...]

Each attack of applications.py is sent to the proxy, which forwards to the gateway, which forwards to
an application that writes down what it executes. A proxy may refuse a request, and may change it, so
that the gateway refuses it. What runs must be what was signed, once. The table says how many of the
genuine requests ran, too; a line names each of the others.

Exit status: 0 when nothing else was executed, 1 when something was or does not start, 2 when no proxy
or application is there.
"""
import concurrent.futures
import os
import re
import shutil
import socket
import sys
import tempfile
import time

import judge
import trial
from attacks import ATTACKS
from backends import BACKENDS
from client import Client
from gateway import devices
from processes import end_when_told, free_port
from report import table
from stand import Stand

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "parsers"))
from more_servers import PROXIES

# Applications that take a request differently: by their routes, their servers and their languages.
APPLICATIONS = ["gunicorn gthread, Django", "Express", "php -S"]
# These are about Apple's answers, or the limits of addresses, and pass no proxy.
LEFT_OUT = {"devices", "address", "neighbours"}
# A proxy that waits for the rest of a request answers nothing.
PATIENCE = 4.0
SIDE_BY_SIDE = 5


class Behind(Stand):
    """One application behind a gateway behind a proxy. What attacks ask goes to the proxy."""

    def __init__(self, proxy, backend, program, folder, keys):
        self.proxy = proxy
        super().__init__(backend, program, folder, keys)

    def begin(self, program, devices):
        super().begin(program, devices)
        self.front = free_port()
        place = os.path.join(self.folder, "proxy")
        os.mkdir(place)
        os.chmod(place, 0o777)
        self.processes.start(self.proxy.command(self.front, self.gateway.port, place))
        self.processes.wait(self.connect, self.proxy.name)
        # Of an attack nothing may be lost because a program in Java is slow to begin.
        deadline = time.monotonic() + 30
        while not (answer := self.ask("GET", "/open")) or answer.status != 200:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{self.proxy.name} forwards nothing: {answer and answer.status}")

    def connect(self):
        client = Client(socket.create_connection(("127.0.0.1", self.front)))
        client.connection.settimeout(PATIENCE)
        return client


class Outcome:
    """`genuine`: how many requests that are what they should be ran, and of how many; `refused`: the
    others, and why."""

    def __init__(self, attacks, ran, genuine, unsafe, refused=()):
        self.attacks, self.ran, self.genuine, self.unsafe, self.refused = attacks, ran, genuine, unsafe, refused


def examine(proxy, backend, program, folder, keys, attacks):
    stand = Behind(proxy, backend, program, folder, keys)
    try:
        results = trial.run(stand, attacks)
        records = stand.records()
    finally:
        stand.stop()
    for promise in stand.promises.values():
        # A proxy may end content that its client has broken off. Then it has to be what was signed.
        promise.broken = False
    ran, genuine, unsafe, refused = 0, 0, [], []
    for result in results:
        tokens = [result.token, *stand.kin.get(result.token, [])]
        lines = [line for token in tokens for line in records.get(token, [])]
        executed = bool(judge.ran(lines))
        ran += executed
        genuine += executed and result.attack.runs
        if result.attack.runs and not executed and not result.why:
            refused.append(f"{result.attack.name}: {result.faults[:1]}")
        # What is said of the answer alone is the proxy's to decide.
        found = [fault for token in tokens
                 for fault in judge.faults(records.get(token, []), stand.promises.get(token))]
        if found and not result.streamed and not result.known:
            unsafe.append(f"{result.attack.group}: {result.attack.name}: {found[-1]}")
    asked = sum(result.attack.runs and not result.why for result in results)
    return Outcome(len(results), ran, (genuine, asked), unsafe, refused)


def main():
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        return 0
    program, wanted = os.path.abspath(sys.argv[1]), sys.argv[2:]
    proxies = [proxy for proxy in PROXIES if proxy.version() and (not wanted or proxy.name in wanted)]
    backends = [backend for backend in BACKENDS if backend.name in APPLICATIONS and backend.version()]
    if not proxies or not backends:
        return 2
    attacks = [attack for attack in ATTACKS if attack.group not in LEFT_OUT and not attack.once]
    keys = devices(2 * len(attacks) + 120)
    folder = tempfile.mkdtemp(prefix="pg-")
    os.chmod(folder, 0o755)
    end_when_told(None if "INTEROP_KEEP" in os.environ else folder)

    def one(pair):
        proxy, backend = pair
        place = os.path.join(folder, re.sub("[^a-z0-9]", "", proxy.name.lower()))
        os.makedirs(place, exist_ok=True)
        os.chmod(place, 0o755)
        try:
            return examine(proxy, backend, program, place, keys, attacks)
        except (OSError, RuntimeError) as error:
            return Outcome(len(attacks), 0, (0, 0), [f"does not run: {error}"])

    pairs = [(proxy, backend) for proxy in proxies for backend in backends]
    try:
        with concurrent.futures.ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            outcomes = list(pool.map(one, pairs))
    finally:
        if "INTEROP_KEEP" not in os.environ:
            shutil.rmtree(folder, ignore_errors=True)
    print()
    table([["in front", "application", "attacks", "executed", "genuine ones executed", "unsafe"]] + [
        [proxy.name, backend.name, str(outcome.attacks), str(outcome.ran), "%d of %d" % outcome.genuine,
         str(len(outcome.unsafe))]
        for (proxy, backend), outcome in zip(pairs, outcomes)
    ])
    for (proxy, backend), outcome in zip(pairs, outcomes):
        for genuine in outcome.refused:
            print(f"refused: {proxy.name}: {backend.name}: {genuine}")
    for (proxy, backend), outcome in zip(pairs, outcomes):
        for fault in outcome.unsafe:
            print(f"UNSAFE: {proxy.name}: {backend.name}: {fault}")
    return 1 if any(outcome.unsafe for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
